// SPDX-License-Identifier: Apache-2.0
//
// What the device below a directory gives to a program that does nothing but its transfers: passes
// over a nameless O_DIRECT file by io_uring, several blocks in flight, into few or many buffers;
// and single OS pages, one at a time.  The buffers are huge pages, as Hanare's frames are.  A pager
// that keeps the data in memory of the same size can hardly do better.  Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "bench/random_reads.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"
#include "sys/uring.hpp"

namespace hanare::bench {

struct RawDeviceOptions {
    std::string directory;
    uint64_t file_bytes = 0;
    uint64_t pool_bytes = 0;       // of the many buffers
    uint64_t in_flight_bytes = 0;  // of a pass
    double pass_s_max = 10;        // a pass that takes longer is stopped
};

class RawDevice {
public:
    static constexpr uint64_t kBlockBytes = 256 * kKiB;
    static constexpr uint64_t kHotBuffers = 16;

    // Also writes the whole file once.  NOT_SUPPORTED without O_DIRECT or io_uring.
    static Result<std::unique_ptr<RawDevice>> open(const RawDeviceOptions& options);

    // kTriad: what a = b + c costs a pager, over the thirds of the file.  All is read, also what
    // will be overwritten, and a third is written.
    enum class Transfers { kReads, kWrites, kTriad };
    enum class Buffers { kPool, kHot };
    // Bytes per second; with kTriad those of the arrays, of which one is transferred twice.
    Result<double> pass(Transfers transfers, Buffers buffers);

    enum class Wait { kCall, kSpin };  // pread(2), or a ring that is polled
    Result<AccessTimes> random_reads(Wait wait, uint64_t count, uint64_t seed);

private:
    explicit RawDevice(const RawDeviceOptions& options) : options_(options) {}

    Result<void> prepare();
    Result<void> fill_buffers();
    struct Transfer {
        uint64_t offset;
        bool write;
    };
    uint64_t count_of(Transfers transfers) const;
    Transfer transfer(Transfers transfers, uint64_t number) const;
    uint64_t depth() const;
    uint64_t buffer_count(Buffers buffers) const;
    int read_page(Wait wait, uint64_t offset);

    RawDeviceOptions options_;
    sys::FileDescriptor file_;
    sys::Mapping pool_;
    std::unique_ptr<sys::Uring> ring_;
};

}  // namespace hanare::bench
