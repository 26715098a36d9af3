// SPDX-License-Identifier: Apache-2.0
//
// A pool and its regions for tests, through the C API; what should not fail throws with the
// library's own text.  Also patterns to recognise memory by, and parameters to repeat tests with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <sched.h>
#include <string>
#include <vector>

#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "hanare/hanare.h"
#include "sys/test_support.hpp"

namespace hanare::api_test {

inline constexpr uint64_t kFramesMin = 16;

struct PoolSetup {
    const char* engine = "sigbus-move";
    uint64_t block_bytes = 64 * kKiB;
};

std::string last_error();
// Throws unless the status is OK.
void must(hanare_status status);

// A field of /proc/self/status in bytes.
uint64_t status_bytes(const std::string& field);

// A budget that holds `frames` blocks and the tables of a region of `region_bytes`, and few more.
uint64_t budget_for(uint64_t frames, uint64_t block_bytes, uint64_t region_bytes);

// Open options with the texts they point to.
struct PoolConfig {
    std::string engine = "sigbus-move";
    std::string store;
    hanare_pool_options options = {
        sizeof(hanare_pool_options), 0, nullptr, 0, nullptr, 0, 0, nullptr, nullptr};

    const hanare_pool_options* c_options() {
        options.engine = engine.c_str();
        options.store = store.c_str();
        return &options;
    }
};

class FarPool {
public:
    // `frames` blocks for regions that are `region_bytes` large together; read-ahead off unless
    // `read_ahead_blocks` says otherwise.  The store is a file, or what HANARE_TEST_STORE says.
    FarPool(const PoolSetup& setup, uint64_t frames, uint64_t region_bytes,
            uint32_t read_ahead_blocks = HANARE_READ_AHEAD_OFF);
    explicit FarPool(PoolConfig config);
    FarPool(const FarPool&) = delete;
    FarPool& operator=(const FarPool&) = delete;
    ~FarPool();

    hanare_pool* get() const { return pool_; }
    // Where the store's unnamed file was made; gone already, so that nothing is left when the
    // process dies, as some scenarios do.
    const std::string& directory() const { return directory_; }
    // Opens that file once more, without O_DIRECT; -1 if there is none.
    int open_store_file() const;

    std::byte* alloc(uint64_t bytes, uint64_t block_bytes = 0);
    uint64_t* alloc_words(uint64_t bytes, uint64_t block_bytes = 0) {
        return reinterpret_cast<uint64_t*>(alloc(bytes, block_bytes));
    }
    hanare_counters stats(const void* address = nullptr) const;
    // Flushes and releases the frames: afterwards every block of the range is absent.
    void make_absent(const void* address, uint64_t bytes);

private:
    std::string directory_;
    hanare_pool* pool_ = nullptr;
};

// What word `index` of memory filled with `tag` holds; never 0.
inline uint64_t pattern(uint64_t tag, uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u + tag * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 32)) | 1;
}
void fill(uint64_t* words, uint64_t bytes, uint64_t tag);
// The number of words that differ.
uint64_t mismatches(const uint64_t* words, uint64_t bytes, uint64_t tag);
uint64_t non_zeros(const uint64_t* words, uint64_t bytes);

// Until `condition` holds; false after half a minute.  For what happens in the background and has
// no event to wait for.
bool eventually(const std::function<bool()>& condition);

// Runs the bodies in a thread each and joins them.
void run_threads(const std::vector<std::function<void()>>& bodies);

// Reads or writes one word of block `index`.
inline uint64_t touch(const std::byte* region, uint64_t block_bytes, uint64_t index) {
    return *reinterpret_cast<const volatile uint64_t*>(region + index * block_bytes);
}
inline void poke(std::byte* region, uint64_t block_bytes, uint64_t index, uint64_t value) {
    *reinterpret_cast<volatile uint64_t*>(region + index * block_bytes) = value;
}

// Every engine that may be asked for.
std::vector<const char*> all_engines();
// Why no pool with this engine can be opened here; empty when it can.
std::string engine_refusal(const char* engine);

// Whether blocks may be sparse.
bool serves_parts(const std::string& engine);
// Whether system calls find absent memory present.
bool serves_system_calls(const std::string& engine);

// Every test of a suite derived from these runs with every engine, and with several block sizes.
// Those of an engine that is refused here are skipped, with the reason.  A SetUp() of a suite calls
// these first and returns if IsSkipped().
class EngineTest : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (const auto refusal = engine_refusal(GetParam()); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
    }
    static PoolSetup setup(uint64_t block_bytes = 64 * kKiB) { return {GetParam(), block_bytes}; }
};
class SetupTest : public testing::TestWithParam<PoolSetup> {
protected:
    void SetUp() override {
        if (const auto refusal = engine_refusal(GetParam().engine); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
    }
};

std::string engine_test_name(const testing::TestParamInfo<const char*>& info);
std::string setup_test_name(const testing::TestParamInfo<PoolSetup>& info);
std::vector<PoolSetup> all_setups();

#define API_TEST_WITH_ENGINES(suite)                                                      \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(hanare::api_test::all_engines()), \
                             hanare::api_test::engine_test_name)
#define API_TEST_WITH_SETUPS(suite)                                                      \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(hanare::api_test::all_setups()), \
                             hanare::api_test::setup_test_name)

// The call must fail so, with a text that contains all the parts.
testing::AssertionResult fails_with(hanare_status expected, const std::vector<std::string>& parts,
                                    hanare_status status);

}  // namespace hanare::api_test
