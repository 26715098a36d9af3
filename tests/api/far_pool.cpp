// SPDX-License-Identifier: Apache-2.0
#include "api/far_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "config/options.hpp"

namespace hanare::api_test {

std::string last_error() {
    std::string text(hanare_last_error(nullptr, 0), '\0');
    hanare_last_error(text.data(), text.size() + 1);
    return text;
}

void must(hanare_status status) {
    if (status == HANARE_STATUS_OK) return;
    throw std::runtime_error(std::string(hanare_status_name(status)) + ": " + last_error());
}

uint64_t status_bytes(const std::string& field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind(field + ":", 0) == 0)
            return std::stoull(line.substr(field.size() + 1)) * kKiB;
    }
    return 0;
}

uint64_t budget_for(uint64_t frames, uint64_t block_bytes, uint64_t region_bytes) {
    constexpr uint64_t kFrameDescriptorBytesMax = 384;
    constexpr uint64_t kTableBytesPerBlock = 16 + 64 * 4;
    return frames * (block_bytes + kFrameDescriptorBytesMax) +
           region_bytes / block_bytes * kTableBytesPerBlock + 2 * kOsPageBytes;
}

FarPool::FarPool(const PoolSetup& setup, uint64_t frames, uint64_t region_bytes,
                 uint32_t read_ahead_blocks) {
    const sys::testing::TemporaryDirectory directory;
    directory_ = directory.path();
    PoolConfig config;
    config.engine = setup.engine;
    const char* const other = std::getenv("HANARE_TEST_STORE");
    config.store = other != nullptr ? other : "file:" + directory_;
    config.options.block_bytes = setup.block_bytes;
    config.options.local_bytes = budget_for(frames, setup.block_bytes, region_bytes);
    config.options.read_ahead_blocks = read_ahead_blocks;
    must(hanare_pool_open(config.c_options(), &pool_));
}

FarPool::FarPool(PoolConfig config) { must(hanare_pool_open(config.c_options(), &pool_)); }

int FarPool::open_store_file() const {
    DIR* const descriptors = opendir("/proc/self/fd");
    int found = -1;
    while (const dirent* entry = readdir(descriptors)) {
        const std::string link = std::string("/proc/self/fd/") + entry->d_name;
        char target[512] = {};
        if (readlink(link.c_str(), target, sizeof target - 1) <= 0) continue;
        if (std::strncmp(target, directory_.c_str(), directory_.size()) != 0) continue;
        if (std::strstr(target, "(deleted)") == nullptr) continue;
        found = open(link.c_str(), O_RDWR | O_CLOEXEC);
    }
    closedir(descriptors);
    return found;
}

FarPool::~FarPool() { EXPECT_EQ(hanare_pool_close(pool_), HANARE_STATUS_OK) << last_error(); }

std::byte* FarPool::alloc(uint64_t bytes, uint64_t block_bytes) {
    const hanare_alloc_options options = {sizeof options, block_bytes, nullptr};
    void* address = nullptr;
    must(hanare_alloc(pool_, bytes, &options, &address));
    return static_cast<std::byte*>(address);
}

hanare_counters FarPool::stats(const void* address) const {
    hanare_counters counters = {};
    counters.struct_size = sizeof counters;
    must(hanare_stats(pool_, address, &counters));
    return counters;
}

void FarPool::make_absent(const void* address, uint64_t bytes) {
    must(hanare_advise(pool_, address, bytes, HANARE_ADVICE_DONTNEED));
}

void fill(uint64_t* words, uint64_t bytes, uint64_t tag) {
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) words[i] = pattern(tag, i);
}

uint64_t mismatches(const uint64_t* words, uint64_t bytes, uint64_t tag) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) count += words[i] != pattern(tag, i);
    return count;
}

uint64_t non_zeros(const uint64_t* words, uint64_t bytes) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) count += words[i] != 0;
    return count;
}

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

void run_threads(const std::vector<std::function<void()>>& bodies) {
    std::vector<std::thread> threads;
    for (const auto& body : bodies) threads.emplace_back(body);
    for (std::thread& thread : threads) thread.join();
}

std::vector<const char*> all_engines() {
    static const std::vector<std::string> names = config::engine_names();
    std::vector<const char*> engines;
    for (const std::string& name : names) engines.push_back(name.c_str());
    return engines;
}

bool serves_parts(const std::string& engine) {
    return engine != "segv-remap" && engine != "shared";
}

bool serves_system_calls(const std::string& engine) { return engine == "thread"; }

std::string engine_refusal(const char* engine) {
    const sys::testing::TemporaryDirectory directory;
    PoolConfig config;
    config.engine = engine;
    config.store = "file:" + directory.path();
    config.options.local_bytes = 16 * kMiB;
    hanare_pool* pool = nullptr;
    const hanare_status status = hanare_pool_open(config.c_options(), &pool);
    if (status == HANARE_STATUS_NOT_SUPPORTED) return last_error();
    must(status);
    must(hanare_pool_close(pool));
    return "";
}

std::string engine_test_name(const testing::TestParamInfo<const char*>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string setup_test_name(const testing::TestParamInfo<PoolSetup>& info) {
    std::string name = info.param.engine;
    std::replace(name.begin(), name.end(), '-', '_');
    return name + "_" + std::to_string(info.param.block_bytes / kKiB) + "K";
}

std::vector<PoolSetup> all_setups() {
    std::vector<PoolSetup> setups;
    for (const char* engine : all_engines()) {
        for (const uint64_t block_bytes : {4 * kKiB, 64 * kKiB, 256 * kKiB, 4 * kMiB}) {
            setups.push_back({engine, block_bytes});
        }
    }
    return setups;
}

testing::AssertionResult fails_with(hanare_status expected, const std::vector<std::string>& parts,
                                    hanare_status status) {
    if (status != expected) {
        return testing::AssertionFailure()
               << "status is " << hanare_status_name(status) << ", not "
               << hanare_status_name(expected)
               << (status == HANARE_STATUS_OK ? "" : ": " + last_error());
    }
    const std::string text = last_error();
    for (const std::string& part : parts) {
        if (text.find(part) == std::string::npos) {
            return testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
        }
    }
    return testing::AssertionSuccess();
}

}  // namespace hanare::api_test
