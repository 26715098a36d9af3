// SPDX-License-Identifier: Apache-2.0
#include "sys/uring.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "sys/inject.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

// Completions are posted when our thread asks for them, not by interrupting it: kernel 6.1.
constexpr uint32_t kQuietSetup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED;
// All there since 5.11; older kernels get no ring.
constexpr uint32_t kNeededFeatures =
    IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG;

int set_up_ring(uint32_t entries, io_uring_params& parameters) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kUringSetup); injected > 0) {
        errno = injected;
        return -1;
    }
    return above_standard(static_cast<int>(raw::syscall(SYS_io_uring_setup, entries, &parameters)));
}

int register_with(int ring, uint32_t operation, const void* argument, uint32_t count) noexcept {
    return static_cast<int>(raw::syscall(SYS_io_uring_register, ring, operation, argument, count));
}

uint32_t load_acquire(uint32_t* word) noexcept {
    return std::atomic_ref(*word).load(std::memory_order_acquire);
}

void store_release(uint32_t* word, uint32_t value) noexcept {
    std::atomic_ref(*word).store(value, std::memory_order_release);
}

}  // namespace

Result<std::unique_ptr<Uring>> Uring::open(uint32_t entries, int file) {
    std::unique_ptr<Uring> ring(new Uring);
    const int saved_errno = errno;
    const int error = ring->set_up(entries, file);
    errno = saved_errno;
    if (error != 0)
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error, "cannot set up an io_uring");
    return ring;
}

int Uring::set_up(uint32_t entries, int file) noexcept {
    io_uring_params parameters = {};
    parameters.flags = kQuietSetup;
    int number = set_up_ring(entries, parameters);
    if (number < 0 && errno == EINVAL) {
        parameters = {};
        number = set_up_ring(entries, parameters);
    }
    if (number < 0) return errno;
    ring_ = FileDescriptor(number);
    enabled_ = (parameters.flags & IORING_SETUP_R_DISABLED) == 0;
    if ((parameters.features & kNeededFeatures) != kNeededFeatures) return EOPNOTSUPP;
    if (const int error = map_rings(parameters); error != 0) return error;
    return register_with(number, IORING_REGISTER_FILES, &file, 1) < 0 ? errno : 0;
}

int Uring::map_rings(const io_uring_params& parameters) noexcept {
    const auto& submission = parameters.sq_off;
    const auto& completion = parameters.cq_off;
    const auto map = [this](size_t bytes, off_t offset) {
        return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    ring_.number(), offset);
    };
    const size_t submission_bytes = submission.array + parameters.sq_entries * sizeof(uint32_t);
    const size_t completion_bytes = completion.cqes + parameters.cq_entries * sizeof(io_uring_cqe);
    const size_t rings_bytes = std::max(submission_bytes, completion_bytes);
    void* const rings = map(rings_bytes, IORING_OFF_SQ_RING);
    if (rings == MAP_FAILED) return errno;
    rings_ = static_cast<std::byte*>(rings);
    rings_bytes_ = rings_bytes;
    const size_t entries_bytes = parameters.sq_entries * sizeof(io_uring_sqe);
    void* const entries = map(entries_bytes, IORING_OFF_SQES);
    if (entries == MAP_FAILED) return errno;
    entries_ = static_cast<io_uring_sqe*>(entries);
    entries_bytes_ = entries_bytes;
    // A child that shared the words could start transfers into the parent's memory.
    if (madvise(rings_, rings_bytes_, MADV_DONTFORK) != 0) return errno;
    if (madvise(entries_, entries_bytes_, MADV_DONTFORK) != 0) return errno;

    const auto word = [this](uint32_t offset) {
        return reinterpret_cast<uint32_t*>(rings_ + offset);
    };
    submission_head_ = word(submission.head);
    submission_tail_ = word(submission.tail);
    submission_flags_ = word(submission.flags);
    completion_head_ = word(completion.head);
    completion_tail_ = word(completion.tail);
    completion_mask_ = *word(completion.ring_mask);
    completions_ = reinterpret_cast<io_uring_cqe*>(rings_ + completion.cqes);
    entry_count_ = parameters.sq_entries;
    for (uint32_t i = 0; i < entry_count_; ++i) word(submission.array)[i] = i;
    return 0;
}

Uring::~Uring() {
    const int saved_errno = errno;
    // Otherwise the file would stay open until the kernel gets round to the ring's remains.
    if (ring_.is_open()) register_with(ring_.number(), IORING_UNREGISTER_FILES, nullptr, 0);
    if (entries_ != nullptr) munmap(entries_, entries_bytes_);
    if (rings_ != nullptr) munmap(rings_, rings_bytes_);
    errno = saved_errno;
}

void Uring::abandon_in_child() noexcept {
    ring_.close();
    rings_ = nullptr;
    entries_ = nullptr;
}

io_uring_sqe& Uring::next_entry() noexcept {
    const uint32_t tail = *submission_tail_;
    HANARE_ASSERT(tail - load_acquire(submission_head_) < entry_count_);
    io_uring_sqe& entry = entries_[tail & (entry_count_ - 1)];
    std::memset(&entry, 0, sizeof entry);
    // The kernel looks at the tail only when we enter it, so the caller may still fill the entry.
    store_release(submission_tail_, tail + 1);
    return entry;
}

void Uring::queue_transfer(uint8_t operation, uint64_t offset, const std::byte* memory,
                           size_t bytes, uint64_t tag) noexcept {
    io_uring_sqe& entry = next_entry();
    entry.opcode = operation;
    entry.flags = IOSQE_FIXED_FILE;
    entry.fd = 0;  // index among the registered files
    entry.off = offset;
    entry.addr = reinterpret_cast<uint64_t>(memory);
    constexpr size_t kTransferBytesMax = 1u << 30;  // what is cut off comes as a short transfer
    entry.len = static_cast<uint32_t>(std::min(bytes, kTransferBytesMax));
    entry.user_data = tag;
}

void Uring::queue_read(uint64_t offset, std::byte* memory, size_t bytes, uint64_t tag) noexcept {
    queue_transfer(IORING_OP_READ, offset, memory, bytes, tag);
}

void Uring::queue_write(uint64_t offset, const std::byte* memory, size_t bytes,
                        uint64_t tag) noexcept {
    queue_transfer(IORING_OP_WRITE, offset, memory, bytes, tag);
}

void Uring::queue_poll(int file, uint64_t tag) noexcept {
    io_uring_sqe& entry = next_entry();
    entry.opcode = IORING_OP_POLL_ADD;
    entry.fd = file;
    entry.poll32_events = POLLIN;
    entry.user_data = tag;
}

void Uring::submit() noexcept {
    if (*submission_tail_ != load_acquire(submission_head_)) enter(0, 0, 0);
}

void Uring::submit_and_wait(int timeout_ms) noexcept {
    enter(1, IORING_ENTER_GETEVENTS, timeout_ms);
}

void Uring::enter(uint32_t complete_min, uint32_t flags, int timeout_ms) noexcept {
    const int saved_errno = errno;
    const int error = enter_kernel(complete_min, flags, timeout_ms);
    // Memory is short or completions wait to be taken: what was not submitted stays queued.  Any
    // other error means that the ring was used by two threads or after its end.
    HANARE_ASSERT(error == 0 || error == ETIME || error == EINTR || error == EAGAIN ||
                  error == EBUSY || error == ENOMEM);
    errno = saved_errno;
}

int Uring::enter_kernel(uint32_t complete_min, uint32_t flags, int timeout_ms) noexcept {
    if (!enabled_) {
        if (register_with(ring_.number(), IORING_REGISTER_ENABLE_RINGS, nullptr, 0) < 0)
            return errno;
        enabled_ = true;
    }
    __kernel_timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000LL};
    io_uring_getevents_arg argument = {};
    argument.sigmask_sz = _NSIG / 8;
    if (complete_min > 0 && timeout_ms >= 0) argument.ts = reinterpret_cast<uint64_t>(&timeout);
    const uint32_t count = *submission_tail_ - load_acquire(submission_head_);
    const long taken = raw::syscall(SYS_io_uring_enter, ring_.number(), count, complete_min,
                                    flags | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    return taken < 0 ? errno : 0;
}

bool Uring::take_completion(Completion& completion) noexcept {
    const uint32_t head = *completion_head_;
    if (head == load_acquire(completion_tail_)) return false;
    const io_uring_cqe& entry = completions_[head & completion_mask_];
    completion = {entry.user_data, entry.res};
    store_release(completion_head_, head + 1);
    return true;
}

bool Uring::next_completion(Completion& completion) noexcept {
    if (take_completion(completion)) return true;
    constexpr uint32_t kKernelHasMore = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
    if ((load_acquire(submission_flags_) & kKernelHasMore) == 0) return false;
    enter(0, IORING_ENTER_GETEVENTS, 0);
    return take_completion(completion);
}

int Uring::probe() {
    constexpr int kEmptySlot = -1;
    const auto ring = open(1, kEmptySlot);
    if (!ring) return ring.error().os_errno;
    (*ring)->next_entry().opcode = IORING_OP_NOP;
    const int saved_errno = errno;
    const int error = (*ring)->enter_kernel(1, IORING_ENTER_GETEVENTS, -1);
    errno = saved_errno;
    return error == EINTR ? 0 : error;
}

}  // namespace hanare::sys
