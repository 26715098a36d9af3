// SPDX-License-Identifier: Apache-2.0
#include "sys/aio.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

// The head of the ring, laid out by the kernel and known to other users of it by this magic number.
struct RingHead {
    uint32_t id;
    uint32_t entries;
    uint32_t head;
    uint32_t tail;
    uint32_t magic;
};
constexpr uint32_t kRingMagic = 0xa10a10a1;

constexpr size_t kCollectMax = 32;

// Contexts of one size that nobody uses.  To end one takes the kernel tens of milliseconds, and a
// context serves any file.  Lock-free; a child of fork() has none of them, so each is kept with the
// process that it belongs to, in the low bits of its address and the high bits that it leaves.
class IdleContexts {
public:
    // 0 if there is none.
    aio_context_t take() noexcept {
        for (std::atomic<uint64_t>& entry : entries_) {
            if (entry.load(std::memory_order_relaxed) == 0) continue;
            const uint64_t found = entry.exchange(0, std::memory_order_acquire);
            if (found != 0 && (found & kPidMask) == own_pid()) {
                return found >> kPidBits << kPageBits;
            }
        }
        return 0;
    }
    // False if there are enough.
    bool put(aio_context_t context) noexcept {
        const uint64_t kept = context >> kPageBits << kPidBits | own_pid();
        for (std::atomic<uint64_t>& entry : entries_) {
            uint64_t empty = 0;
            if (entry.compare_exchange_strong(empty, kept, std::memory_order_release,
                                              std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }

private:
    static constexpr int kPidBits = 22;  // PID_MAX_LIMIT
    static constexpr int kPageBits = 12;
    static constexpr uint64_t kPidMask = (uint64_t{1} << kPidBits) - 1;

    static uint64_t own_pid() noexcept { return static_cast<uint64_t>(getpid()) & kPidMask; }

    std::array<std::atomic<uint64_t>, 16> entries_{};
};

constinit IdleContexts idle_many;
constinit IdleContexts idle_one;

IdleContexts& idle_of(Aio::Kind kind) { return kind == Aio::Kind::kMany ? idle_many : idle_one; }

// Others may give contexts (fs.aio-max-nr) or memory back.
bool is_transient_refusal(int error) { return error == EAGAIN || error == ENOMEM; }

}  // namespace

Aio::~Aio() {
    const uint64_t context = context_.load();
    if (context == 0) return;
    if (in_flight_.load() == 0 && idle_of(kind_).put(context)) return;
    raw::syscall(SYS_io_destroy, context);
}

// Returns the context, 0 if there is none.
uint64_t Aio::set_up() noexcept {
    const uint64_t there = context_.load(std::memory_order_acquire);
    if (there != 0 || is_refused()) return there;
    const int saved_errno = errno;
    aio_context_t context = idle_of(kind_).take();
    const uint32_t entries = kind_ == Kind::kMany ? kManyTransfers : 1;
    int error = 0;
    if (context == 0 && raw::syscall(SYS_io_setup, entries, &context) != 0) {
        error = errno;
        context = 0;
    }
    errno = saved_errno;
    if (context == 0) {
        // To do without shared transfers is better than to prepare each in vain.
        const bool is_for_good = kind_ == Kind::kMany || !is_transient_refusal(error);
        if (is_for_good) is_refused_.store(true, std::memory_order_relaxed);
        return context_.load(std::memory_order_acquire);
    }
    uint64_t others = 0;
    if (context_.compare_exchange_strong(others, context, std::memory_order_acq_rel)) {
        return context;
    }
    if (!idle_of(kind_).put(context)) raw::syscall(SYS_io_destroy, context);
    return others;
}

size_t Aio::start(const Transfer* transfers, size_t count) noexcept {
    const uint64_t context = set_up();
    if (context == 0) return 0;
    const int saved_errno = errno;
    std::array<iocb, kStartMax> blocks{};
    std::array<iocb*, kStartMax> list{};
    count = std::min(count, kStartMax);
    for (size_t i = 0; i < count; ++i) {
        blocks[i].aio_lio_opcode = transfers[i].writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
        blocks[i].aio_fildes = static_cast<uint32_t>(file_);
        blocks[i].aio_buf = reinterpret_cast<uint64_t>(transfers[i].memory);
        blocks[i].aio_nbytes = transfers[i].bytes;
        blocks[i].aio_offset = static_cast<int64_t>(transfers[i].offset);
        blocks[i].aio_data = transfers[i].tag;
        list[i] = &blocks[i];
    }
    const long started = raw::syscall(SYS_io_submit, context, count, list.data());
    errno = saved_errno;
    if (started <= 0) return 0;
    in_flight_.fetch_add(started, std::memory_order_relaxed);
    return static_cast<size_t>(started);
}

bool Aio::is_empty() const noexcept {
    const uint64_t context = context_.load(std::memory_order_acquire);
    if (context == 0) return true;
    const auto* ring = reinterpret_cast<const RingHead*>(context);
    if (ring->magic != kRingMagic) return false;
    return __atomic_load_n(&ring->head, __ATOMIC_RELAXED) ==
           __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

size_t Aio::collect(Completion* completions, size_t count, bool wait) noexcept {
    const uint64_t context = context_.load(std::memory_order_acquire);
    if (context == 0 || (!wait && is_empty())) return 0;
    const int saved_errno = errno;
    std::array<io_event, kCollectMax> events;
    timespec no_time{};
    const long got = raw::syscall(SYS_io_getevents, context, wait ? 1L : 0L,
                                  static_cast<long>(std::min(count, kCollectMax)), events.data(),
                                  wait ? nullptr : &no_time);
    errno = saved_errno;
    for (long i = 0; i < got; ++i) {
        completions[i] = {events[static_cast<size_t>(i)].data, events[static_cast<size_t>(i)].res};
    }
    if (got <= 0) return 0;
    in_flight_.fetch_sub(got, std::memory_order_relaxed);
    return static_cast<size_t>(got);
}

}  // namespace hanare::sys
