// SPDX-License-Identifier: Apache-2.0
#include "sys/aio.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace

Result<std::unique_ptr<Aio>> Aio::open(uint32_t entries, int file) {
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, entries, &context) != 0) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, errno, "io_setup");
    }
    return std::unique_ptr<Aio>(new Aio(context, file));
}

Aio::~Aio() { syscall(SYS_io_destroy, context_); }

size_t Aio::start(const Read* reads, size_t count) noexcept {
    const int saved_errno = errno;
    std::array<iocb, kStartMax> blocks{};
    std::array<iocb*, kStartMax> list{};
    count = std::min(count, kStartMax);
    for (size_t i = 0; i < count; ++i) {
        blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
        blocks[i].aio_fildes = static_cast<uint32_t>(file_);
        blocks[i].aio_buf = reinterpret_cast<uint64_t>(reads[i].memory);
        blocks[i].aio_nbytes = reads[i].bytes;
        blocks[i].aio_offset = static_cast<int64_t>(reads[i].offset);
        blocks[i].aio_data = reads[i].tag;
        list[i] = &blocks[i];
    }
    const long started = syscall(SYS_io_submit, context_, count, list.data());
    errno = saved_errno;
    return started > 0 ? static_cast<size_t>(started) : 0;
}

bool Aio::is_empty() const noexcept {
    const auto* ring = reinterpret_cast<const RingHead*>(context_);
    if (ring->magic != kRingMagic) return false;
    return __atomic_load_n(&ring->head, __ATOMIC_RELAXED) ==
           __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
}

size_t Aio::collect(Completion* completions, size_t count, bool wait) noexcept {
    if (!wait && is_empty()) return 0;
    const int saved_errno = errno;
    std::array<io_event, kCollectMax> events;
    timespec no_time{};
    const long got = syscall(SYS_io_getevents, context_, wait ? 1L : 0L,
                             static_cast<long>(std::min(count, kCollectMax)), events.data(),
                             wait ? nullptr : &no_time);
    errno = saved_errno;
    for (long i = 0; i < got; ++i) {
        completions[i] = {events[static_cast<size_t>(i)].data, events[static_cast<size_t>(i)].res};
    }
    return got > 0 ? static_cast<size_t>(got) : 0;
}

}  // namespace hanare::sys
