// SPDX-License-Identifier: Apache-2.0
//
// io_uring(7) on one registered file, by raw system calls: no library of ours may be found in a
// program's signal handlers, and a few dozen lines are all that is needed.
//
// A ring is opened by any thread and then used by exactly one, the first that calls submit() or
// wait(): with SINGLE_ISSUER the kernel binds it to that thread and refuses others.  A ring does
// not exist in the child of a fork: its memory is not inherited.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "sys/file.hpp"

struct io_uring_params;
struct io_uring_sqe;
struct io_uring_cqe;

namespace hanare::sys {

class Uring {
public:
    struct Completion {
        uint64_t tag = 0;
        int32_t result = 0;  // bytes, or a negative errno value
    };

    // `entries` is a power of two; at most that many operations may be in the ring.  Transfers go
    // to and from `file`, which stays open as long as the ring.
    static Result<std::unique_ptr<Uring>> open(uint32_t entries, int file);
    // Whether this process may use rings: sets one up and sends an empty operation through it, as
    // seccomp profiles refuse some of the calls and not others.  0 or an errno value.
    static int probe();
    Uring(const Uring&) = delete;
    Uring& operator=(const Uring&) = delete;
    // The operations in flight must have completed, or their memory must outlive the process.
    ~Uring();

    // Readable while there are completions.
    int number() const noexcept { return ring_.number(); }

    void queue_read(uint64_t offset, std::byte* memory, size_t bytes, uint64_t tag) noexcept;
    void queue_write(uint64_t offset, const std::byte* memory, size_t bytes, uint64_t tag) noexcept;
    // Completes once, when `file` is readable.
    void queue_poll(int file, uint64_t tag) noexcept;

    // Hands what is queued to the kernel.
    void submit() noexcept;
    // The same, and sleeps until a completion is there or `timeout_ms` (negative: no limit) have
    // passed.  May return earlier, for instance after a signal.
    void submit_and_wait(int timeout_ms) noexcept;

    // False when there is none; may enter the kernel to fetch what is ready, but never waits.
    bool next_completion(Completion& completion) noexcept;

    // In the child of a fork: closes the descriptor.  Async-signal-safe.
    void abandon_in_child() noexcept;

private:
    Uring() = default;

    int set_up(uint32_t entries, int file) noexcept;
    int map_rings(const io_uring_params& parameters) noexcept;
    io_uring_sqe& next_entry() noexcept;
    void queue_transfer(uint8_t operation, uint64_t offset, const std::byte* memory, size_t bytes,
                        uint64_t tag) noexcept;
    void enter(uint32_t complete_min, uint32_t flags, int timeout_ms) noexcept;
    int enter_kernel(uint32_t complete_min, uint32_t flags, int timeout_ms) noexcept;
    bool take_completion(Completion& completion) noexcept;

    FileDescriptor ring_;
    bool enabled_ = false;
    uint32_t entry_count_ = 0;

    std::byte* rings_ = nullptr;  // submission and completion ring, one mapping
    size_t rings_bytes_ = 0;
    io_uring_sqe* entries_ = nullptr;
    size_t entries_bytes_ = 0;

    // Words shared with the kernel; see io_uring(7) for who writes which.
    uint32_t* submission_head_ = nullptr;
    uint32_t* submission_tail_ = nullptr;
    uint32_t* submission_flags_ = nullptr;
    uint32_t* completion_head_ = nullptr;
    uint32_t* completion_tail_ = nullptr;
    io_uring_cqe* completions_ = nullptr;
    uint32_t completion_mask_ = 0;
};

}  // namespace hanare::sys
