// SPDX-License-Identifier: Apache-2.0
#include "sys/memory.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/file.hpp"
#include "sys/inject.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

// MAP_STACK: where `hanare run` adopts a program's memory, a pool of the program's own is none.
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;

// Whether the kernel takes the caller's own ranges by process_madvise(2).
std::atomic<bool> takes_several{true};

}  // namespace

Result<Mapping> Mapping::reserve(size_t bytes, size_t alignment) {
    const size_t slack = alignment > kOsPageBytes ? alignment : 0;
    void* raw = MAP_FAILED;
    if (const int injected = inject::next_errno(inject::Call::kMmap); injected != 0) {
        errno = injected;
    } else if (bytes + slack > bytes || slack == 0) {
        raw = raw::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    } else {
        errno = ENOMEM;
    }
    if (raw == MAP_FAILED) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "cannot reserve %s of address space",
                          format_size(bytes).c_str());
    }
    const auto start = reinterpret_cast<uintptr_t>(raw);
    const uintptr_t aligned = round_up(start, alignment);
    const uintptr_t end = start + bytes + slack;
    if (aligned > start) raw::munmap(raw, aligned - start);
    if (end > aligned + bytes)
        raw::munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
    return Mapping(reinterpret_cast<std::byte*>(aligned), bytes);
}

Result<Mapping> Mapping::reserve_shared(size_t bytes) {
    void* mapped = MAP_FAILED;
    if (const int injected = inject::next_errno(inject::Call::kMmap); injected != 0) {
        errno = injected;
    } else {
        mapped = raw::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (mapped != MAP_FAILED) return Mapping(static_cast<std::byte*>(mapped), bytes);
    return fail_errno(HANARE_STATUS_NO_MEMORY, errno,
                      "cannot reserve %s of memory shared with children",
                      format_size(bytes).c_str());
}

Result<Mapping> Mapping::reserve_at(std::byte* address, size_t bytes) {
    void* raw =
        raw::mmap(address, bytes, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (raw == address) return Mapping(address, bytes);
    if (raw != MAP_FAILED) raw::munmap(raw, bytes);  // a kernel before 4.17
    return fail_errno(HANARE_STATUS_NO_MEMORY, raw == MAP_FAILED ? errno : EEXIST,
                      "cannot reserve %s of address space at %p", format_size(bytes).c_str(),
                      static_cast<void*>(address));
}

Mapping::~Mapping() {
    if (address_ != nullptr) raw::munmap(address_, bytes_);
}

int Mapping::renew() const noexcept {
    const int saved_errno = errno;
    const void* mapped = raw::mmap(address_, bytes_, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    const int error = mapped == MAP_FAILED ? errno : 0;
    errno = saved_errno;
    return error;
}

Result<void> Mapping::hide_from_children() const {
    const int error = advise(MADV_DONTFORK);
    if (error == 0) return {};
    return fail_errno(HANARE_STATUS_SYSTEM, error, "madvise(MADV_DONTFORK) of %s",
                      format_size(bytes_).c_str());
}

int Mapping::lock() const noexcept {
    const int saved_errno = errno;
    const int error = mlock(address_, bytes_) == 0 ? 0 : errno;
    errno = saved_errno;
    return error;
}

int Mapping::advise(int advice) const noexcept { return sys::advise(address_, bytes_, advice); }

int map_fresh(void* address, size_t bytes, bool populated) noexcept {
    const int saved_errno = errno;
    const void* mapped = raw::mmap(address, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    int error = mapped == MAP_FAILED ? errno : 0;
    for (size_t done = 0; error == 0 && populated && done < bytes; done += kOsPageBytes) {
        static_cast<volatile std::byte*>(address)[done] = std::byte{0};
    }
    errno = saved_errno;
    return error;
}

int advise(void* address, size_t bytes, int advice) noexcept {
    const int saved_errno = errno;
    int error = 0;
    do {
        error = raw::madvise(address, bytes, advice) == 0 ? 0 : errno;
    } while (error == EAGAIN || error == EINTR);
    errno = saved_errno;
    return error;
}

bool are_pages_swapped_out() noexcept {
    const int saved_errno = errno;
    struct sysinfo of_machine{};
    const bool is_known = raw::syscall(SYS_sysinfo, &of_machine) == 0;
    errno = saved_errno;
    return !is_known || of_machine.freeswap != of_machine.totalswap;
}

int advise_each(const MemoryRange* ranges, size_t count, int advice) noexcept {
    constexpr size_t kMost = 64;
    constexpr int kOwnProcess = -10000;  // PIDFD_SELF_THREAD
    HANARE_ASSERT(count <= kMost);
    int refusal = 0;
    if (count > 1 && takes_several.load(std::memory_order_relaxed)) {
        std::array<iovec, kMost> vector;
        size_t bytes = 0;
        for (size_t i = 0; i < count; ++i) {
            vector[i] = {ranges[i].address, ranges[i].bytes};
            bytes += ranges[i].bytes;
        }
        const int saved_errno = errno;
        errno = inject::next_errno(inject::Call::kSeveral);
        const long done = errno != 0 ? -1
                                     : raw::syscall(SYS_process_madvise, kOwnProcess, vector.data(),
                                                    count, advice, 0);
        refusal = done < 0 ? errno : 0;
        errno = saved_errno;
        if (done == static_cast<long>(bytes)) return 0;
    }
    int error = 0;
    for (size_t i = 0; i < count; ++i) {
        const int failed = advise(ranges[i].address, ranges[i].bytes, advice);
        if (error == 0) error = failed;
    }
    // An older kernel, or a filter of system calls.
    const bool is_transient = refusal == EAGAIN || refusal == EINTR || refusal == ENOMEM;
    if (refusal != 0 && error == 0 && !is_transient) {
        takes_several.store(false, std::memory_order_relaxed);
    }
    return error;
}

int unmap_pages(void* address, size_t bytes) noexcept {
    return advise(address, bytes, MADV_DONTNEED);
}

int protect(void* address, size_t bytes, int protection) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kProtect); injected > 0) {
        return injected;
    }
    const int saved_errno = errno;
    const int error = raw::mprotect(address, bytes, protection) == 0 ? 0 : errno;
    errno = saved_errno;
    return error;
}

int move_mapping(void* target, void* source, size_t bytes, int protection) noexcept {
    const int saved_errno = errno;
    int error = inject::next_errno(inject::Call::kRemap);
    if (error == 0) {
        const void* moved = raw::mremap(source, bytes, bytes,
                                        MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target);
        error = moved == MAP_FAILED ? errno : 0;
    }
    if (error != 0) {
        const base::UnseenByTsan unseen;
        // Refused as long as the target is mapped.
        const void* again =
            raw::mmap(target, bytes, protection, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
        if (again != MAP_FAILED) advise(target, bytes, MADV_DONTFORK);
    }
    errno = saved_errno;
    return error;
}

int make_inaccessible(void* address, size_t bytes) noexcept {
    const base::UnseenByTsan unseen;  // to it, this writes to the pages
    const int saved_errno = errno;
    const void* mapped = raw::mmap(address, bytes, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    const int error = mapped == MAP_FAILED ? errno : 0;
    errno = saved_errno;
    return error;
}

int poison(void* address, size_t bytes) noexcept {
    const int saved_errno = errno;
    const int empty = above_standard(memfd_create("hanare-poison", MFD_CLOEXEC));
    void* mapped = MAP_FAILED;
    if (empty >= 0) {
        mapped = raw::mmap(address, bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED | MAP_NORESERVE, empty, 0);
        close(empty);
    }
    if (mapped == MAP_FAILED) {
        mapped = raw::mmap(address, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    }
    const int error = mapped == MAP_FAILED ? errno : 0;
    errno = saved_errno;
    return error;
}

}  // namespace hanare::sys
