// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_device.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <deque>
#include <vector>

#include "base/prng.hpp"
#include "sys/file_mapping.hpp"

namespace hanare::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDepthMax = 1024;

// Of a triad, for a block of each array.
constexpr uint64_t kTriadArrays = 3;
constexpr uint64_t kTriadTransfers = kTriadArrays + 1;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<RawDevice>> RawDevice::open(const RawDeviceOptions& options) {
    std::unique_ptr<RawDevice> device(new RawDevice(options));
    HANARE_TRY(device->prepare());
    // The first writes also initialise the file's extents.
    HANARE_TRY(device->pass(Transfers::kWrites, Buffers::kHot));
    return device;
}

Result<void> RawDevice::prepare() {
    options_.file_bytes = round_down(options_.file_bytes, kBlockBytes);
    const char* const directory = options_.directory.c_str();
    if (const int error = sys::open_unnamed(options_.directory, file_)) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %s",
                          directory);
    }
    if (const int error = sys::bypass_page_cache(file_.number())) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error, "O_DIRECT in %s", directory);
    }
    if (const int error = sys::preallocate(file_.number(), 0, options_.file_bytes)) {
        return fail_errno(HANARE_STATUS_STORE_FULL, error, "allocating %s in %s",
                          format_size(options_.file_bytes).c_str(), directory);
    }
    HANARE_TRY_ASSIGN(
        ring_, sys::Uring::open(static_cast<uint32_t>(std::bit_ceil(depth())), file_.number()));
    return fill_buffers();
}

Result<void> RawDevice::fill_buffers() {
    const uint64_t bytes = buffer_count(Buffers::kPool) * kBlockBytes;
    HANARE_TRY_ASSIGN(pool_,
                      sys::Mapping::reserve(round_up(bytes, kHugePageBytes), kHugePageBytes));
    sys::advise_huge_pages(pool_, true);
    Prng random(bytes);
    auto* const words = reinterpret_cast<uint64_t*>(pool_.address());
    for (size_t i = 0; i < pool_.bytes() / sizeof *words; ++i) words[i] = random.next();
    return {};
}

uint64_t RawDevice::depth() const {
    return std::clamp<uint64_t>(options_.in_flight_bytes / kBlockBytes, 1, kDepthMax);
}

uint64_t RawDevice::buffer_count(Buffers buffers) const {
    const uint64_t wanted =
        buffers == Buffers::kHot ? kHotBuffers : options_.pool_bytes / kBlockBytes;
    return std::max(wanted, depth());
}

uint64_t RawDevice::count_of(Transfers transfers) const {
    const uint64_t blocks = options_.file_bytes / kBlockBytes;
    return transfers == Transfers::kTriad ? blocks / kTriadArrays * kTriadTransfers : blocks;
}

RawDevice::Transfer RawDevice::transfer(Transfers transfers, uint64_t number) const {
    if (transfers != Transfers::kTriad) {
        return {number * kBlockBytes, transfers == Transfers::kWrites};
    }
    const uint64_t third = options_.file_bytes / kBlockBytes / kTriadArrays;
    const uint64_t step = number % kTriadTransfers;
    const uint64_t array = step % kTriadArrays;
    return {(array * third + number / kTriadTransfers) * kBlockBytes, step == kTriadArrays};
}

Result<double> RawDevice::pass(Transfers transfers, Buffers buffers) {
    std::deque<uint64_t> free_buffers;  // the one that was used last comes last
    for (uint64_t i = 0; i < buffer_count(buffers); ++i) free_buffers.push_back(i);
    uint64_t queued = 0;
    uint64_t done = 0;
    uint64_t blocks = count_of(transfers);
    const auto start = Clock::now();
    while (done < blocks) {
        while (queued < blocks && queued - done < depth()) {
            const uint64_t buffer = free_buffers.front();
            free_buffers.pop_front();
            std::byte* const memory = pool_.address() + buffer * kBlockBytes;
            const auto [offset, write] = transfer(transfers, queued++);
            if (write) {
                ring_->queue_write(offset, memory, kBlockBytes, buffer);
            } else {
                ring_->queue_read(offset, memory, kBlockBytes, buffer);
            }
        }
        ring_->submit_and_wait(-1);
        sys::Uring::Completion completion;
        while (ring_->next_completion(completion)) {
            ++done;
            free_buffers.push_back(completion.tag);
            if (completion.result == static_cast<int32_t>(kBlockBytes)) continue;
            return fail_errno(HANARE_STATUS_STORE_IO,
                              completion.result < 0 ? -completion.result : EIO,
                              "raw transfers in %s", options_.directory.c_str());
        }
        if (seconds_since(start) > options_.pass_s_max) blocks = queued;
    }
    const double seconds = seconds_since(start);
    if (transfers == Transfers::kTriad) blocks = blocks / kTriadTransfers * kTriadArrays;
    return static_cast<double>(blocks * kBlockBytes) / seconds;
}

// 0 or an errno value.
int RawDevice::read_page(Wait wait, uint64_t offset) {
    if (wait == Wait::kCall) {
        return sys::read_at(file_.number(), offset, pool_.address(), kOsPageBytes);
    }
    ring_->queue_read(offset, pool_.address(), kOsPageBytes, 0);
    ring_->submit();
    sys::Uring::Completion completion;
    while (!ring_->next_completion(completion)) {
    }
    if (completion.result == static_cast<int32_t>(kOsPageBytes)) return 0;
    return completion.result < 0 ? -completion.result : EIO;
}

Result<AccessTimes> RawDevice::random_reads(Wait wait, uint64_t count, uint64_t seed) {
    Prng random(seed);
    std::vector<uint32_t> times_ns;
    const auto begin = Clock::now();
    for (uint64_t i = 0; i < count && seconds_since(begin) < options_.pass_s_max; ++i) {
        const uint64_t offset = random.below(options_.file_bytes / kOsPageBytes) * kOsPageBytes;
        const auto start = Clock::now();
        if (const int error = read_page(wait, offset)) {
            return fail_errno(HANARE_STATUS_STORE_IO, error, "raw reads in %s",
                              options_.directory.c_str());
        }
        times_ns.push_back(static_cast<uint32_t>(seconds_since(start) * 1e9));
    }
    return access_times(std::move(times_ns));
}

}  // namespace hanare::bench
