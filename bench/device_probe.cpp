// SPDX-License-Identifier: Apache-2.0
#include "bench/device_probe.hpp"

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "bench/statistics.hpp"
#include "sys/file.hpp"
#include "sys/file_mapping.hpp"
#include "sys/memory.hpp"

namespace hanare::bench {
namespace {

// One buffer per transfer in flight, with random content.  In huge pages: a transfer of contiguous
// memory costs a virtual disk several times less than one that is scattered over 4 KiB pages.
Result<sys::Mapping> random_buffers(uint64_t bytes) {
    constexpr size_t kHugePageBytes = 2 * kMiB;
    HANARE_TRY_ASSIGN(sys::Mapping buffers,
                      sys::Mapping::reserve(round_up(bytes, kHugePageBytes), kHugePageBytes));
    sys::advise_huge_pages(buffers, true);
    Prng prng(bytes);
    auto* words = reinterpret_cast<uint64_t*>(buffers.address());
    for (size_t i = 0; i < buffers.bytes() / sizeof *words; ++i) words[i] = prng.next();
    return buffers;
}

// One pass over the file by `depth` threads that take the next transfer each; bytes per second.
Result<double> pass(int file, bool write, const DeviceProbeOptions& options,
                    const sys::Mapping& buffers, const std::function<bool()>& stop) {
    std::atomic<uint64_t> next{0};
    std::atomic<int> error{0};
    const auto work = [&](std::byte* memory) {
        const size_t bytes = options.transfer_bytes;
        while (error == 0 && !stop()) {
            const uint64_t offset = next.fetch_add(bytes);
            if (offset + bytes > options.file_bytes) return;
            const int failed = write ? sys::write_at(file, offset, memory, bytes)
                                     : sys::read_at(file, offset, memory, bytes);
            if (failed != 0) error = failed;
        }
    };
    const auto start = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> threads;
        try {
            for (int i = 0; i < options.depth; ++i) {
                threads.emplace_back(
                    work, buffers.address() + static_cast<uint64_t>(i) * options.transfer_bytes);
            }
        } catch (const std::system_error& refused) {
            error = refused.code().value();  // the others end with that
        }
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (error != 0) {
        return fail_errno(HANARE_STATUS_STORE_IO, error, "probing the device below %s",
                          options.directory.c_str());
    }
    if (stop()) return fail(HANARE_STATUS_BUSY, "interrupted");
    return static_cast<double>(options.file_bytes / options.transfer_bytes *
                               options.transfer_bytes) /
           elapsed.count();
}

}  // namespace

double DeviceBandwidth::seconds_for(uint64_t read_bytes, uint64_t written_bytes) const {
    return static_cast<double>(read_bytes) / read_bytes_per_s +
           static_cast<double>(written_bytes) / write_bytes_per_s;
}

Result<DeviceBandwidth> probe_device(const DeviceProbeOptions& options,
                                     const std::function<bool()>& stop) {
    HANARE_TRY(sys::check_file_bytes("a file", options.file_bytes));
    sys::FileDescriptor file;
    if (const int error = sys::open_unnamed(options.directory, file)) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %s",
                          options.directory.c_str());
    }
    if (const int error = sys::bypass_page_cache(file.number())) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error, "O_DIRECT in %s",
                          options.directory.c_str());
    }
    if (const int error = sys::preallocate(file.number(), 0, options.file_bytes)) {
        return fail_errno(HANARE_STATUS_STORE_FULL, error, "allocating %s in %s",
                          format_size(options.file_bytes).c_str(), options.directory.c_str());
    }
    HANARE_TRY_ASSIGN(
        const sys::Mapping buffers,
        random_buffers(static_cast<uint64_t>(options.depth) * options.transfer_bytes));
    // The first writes also initialise the file's extents and are not counted.
    HANARE_TRY(pass(file.number(), true, options, buffers, stop));
    std::vector<double> writes;
    std::vector<double> reads;
    for (int i = 0; i < options.passes; ++i) {
        HANARE_TRY_ASSIGN(const double written, pass(file.number(), true, options, buffers, stop));
        HANARE_TRY_ASSIGN(const double read, pass(file.number(), false, options, buffers, stop));
        writes.push_back(written);
        reads.push_back(read);
    }
    return DeviceBandwidth{summarize(reads).median, summarize(writes).median};
}

}  // namespace hanare::bench
