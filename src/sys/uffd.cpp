// SPDX-License-Identifier: Apache-2.0
#include "sys/uffd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/units.hpp"
#include "sys/file.hpp"
#include "sys/inject.hpp"
#include "sys/memory.hpp"
#include "sys/raw_call.hpp"

// In kernel headers since 6.8.
#ifndef UFFDIO_MOVE
#define UFFDIO_MOVE_MODE_DONTWAKE (static_cast<__u64>(1) << 0)
struct uffdio_move {
    __u64 dst;
    __u64 src;
    __u64 len;
    __u64 mode;
    __s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

// Since 6.4.
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP (static_cast<__u64>(1) << 1)
#endif

// Since 6.6.
#ifndef UFFDIO_POISON
struct uffdio_poison {
    struct uffdio_range range;
    __u64 mode;
    __s64 updated;
};
#define UFFDIO_POISON_MODE_DONTWAKE (static_cast<__u64>(1) << 0)
#define UFFDIO_POISON _IOWR(UFFDIO, 0x08, struct uffdio_poison)
#endif

// Since 6.1: the device whose permissions decide who gets the faults of system calls.
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

namespace hanare::sys {

namespace {

constexpr __u64 kSharedMemory =
    UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;

__u64 address_of(const void* pointer) { return reinterpret_cast<__u64>(pointer); }

int try_to_open(int flags) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kUserfaultfd); injected > 0) {
        return -injected;
    }
    const int descriptor = above_standard(static_cast<int>(raw::syscall(SYS_userfaultfd, flags)));
    return descriptor >= 0 ? descriptor : -errno;
}

// A descriptor, or a negative errno value.
int open_descriptor() noexcept {
    constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
    const int descriptor = try_to_open(kFlags | UFFD_USER_MODE_ONLY);
    // Kernels before 5.11 do not know the flag, nor the restriction that it lifts.
    return descriptor == -EINVAL ? try_to_open(kFlags) : descriptor;
}

// One that gets the faults of system calls as well, or a negative errno value.
int open_privileged_descriptor() noexcept {
    constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
    const int descriptor = try_to_open(kFlags);
    if (descriptor != -EPERM) return descriptor;
    const FileDescriptor device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    if (device.number() < 0) return -EPERM;
    const int made = above_standard(ioctl(device.number(), USERFAULTFD_IOC_NEW, kFlags));
    return made >= 0 ? made : -errno;
}

// Keeps errno for the interrupted program and returns the call's own.
int call(int descriptor, unsigned long request, void* argument) noexcept {
    const int saved_errno = errno;
    const int error = raw::syscall(SYS_ioctl, descriptor, request, argument) == 0 ? 0 : errno;
    errno = saved_errno;
    return error;
}

// Of private anonymous memory; one that is swapped out may count as missing.
bool is_missing(const std::byte* page) noexcept {
    const int saved_errno = errno;
    unsigned char present = 0;
    long result = 0;
    do {
        result = raw::syscall(SYS_mincore, page, kOsPageBytes, &present);
    } while (result != 0 && errno == EAGAIN);
    errno = saved_errno;
    return result == 0 && (present & 1) == 0;
}

// As opposed to one that is poisoned; not for a missing one.
bool is_page(std::byte* page) noexcept {
    return advise(page, kOsPageBytes, MADV_POPULATE_READ) == 0;
}

// Repeats request(done, bytes, &filled) until everything is filled.
template <typename Request>
int fill(size_t bytes, size_t* filled_bytes, Request request) noexcept {
    size_t done = 0;
    int error = 0;
    while (done < bytes && error == 0) {
        const int injected = inject::next_errno(inject::Call::kFill);
        // Of one page the kernel fills all or nothing.
        if (injected != 0 && bytes - done <= kOsPageBytes) error = injected;
        if (error != 0) break;
        int64_t filled = 0;
        error = request(done, injected != 0 ? kOsPageBytes : bytes - done, &filled);
        if (filled > 0) done += static_cast<size_t>(filled);
        if (error == EAGAIN) error = 0;
        if (error == 0) error = injected;
    }
    *filled_bytes = done;
    return error;
}

}  // namespace

Userfault::Support Userfault::probe() noexcept {
    Support support;
    const int privileged = open_privileged_descriptor();
    if (privileged >= 0) close_own(privileged);
    support.system_calls_errno = privileged >= 0 ? 0 : -privileged;
    const int descriptor = open_descriptor();
    if (descriptor < 0) {
        support.os_errno = -descriptor;
        return support;
    }
    uffdio_api api = {UFFD_API, 0, 0};
    support.os_errno = call(descriptor, UFFDIO_API, &api);
    close_own(descriptor);
    if (support.os_errno != 0) return support;
    support.available = true;
    support.sigbus = (api.features & UFFD_FEATURE_SIGBUS) != 0;
    support.write_protect = (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0;
    support.move = (api.features & UFFD_FEATURE_MOVE) != 0;
    support.shared_memory = (api.features & kSharedMemory) == kSharedMemory;
    if (const int injected = inject::next_errno(inject::Call::kMove); injected > 0) {
        support.move = false;
    }
    return support;
}

Result<Userfault> Userfault::open(Features features) {
    const int descriptor = features.events ? open_privileged_descriptor() : open_descriptor();
    if (descriptor < 0) {
        const bool may_not = features.events && descriptor == -EPERM;
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, -descriptor, "userfaultfd %s",
                          may_not ? "for system calls is refused: it needs root (CAP_SYS_PTRACE), "
                                    "access to /dev/userfaultfd, or sysctl "
                                    "vm.unprivileged_userfaultfd=1 and no seccomp filter"
                                  : "is refused (an old kernel or a seccomp filter?)");
    }
    Userfault userfault(descriptor);
    const int injected = features.move ? inject::next_errno(inject::Call::kMove) : 0;
    if (injected > 0) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, injected, "userfaultfd without UFFDIO_MOVE");
    }
    uffdio_api api = {UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP, 0};
    api.features |= features.events ? UFFD_FEATURE_THREAD_ID : UFFD_FEATURE_SIGBUS;
    if (features.move) api.features |= UFFD_FEATURE_MOVE;
    if (features.shared_memory) api.features |= kSharedMemory;
    if (const int error = call(descriptor, UFFDIO_API, &api); error != 0) {
        return fail_errno(
            HANARE_STATUS_NOT_SUPPORTED, error, "userfaultfd without %s, write protection%s%s",
            features.events ? "thread ids" : "SIGBUS", features.move ? " or UFFDIO_MOVE" : "",
            features.shared_memory ? " or faults of shared memory" : "");
    }
    return userfault;
}

Userfault::Userfault(Userfault&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

Userfault& Userfault::operator=(Userfault&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

Userfault::~Userfault() { close(); }

void Userfault::close() noexcept {
    if (descriptor_ >= 0) close_own(std::exchange(descriptor_, -1));
}

int Userfault::register_range(void* address, size_t bytes, Faults faults) const noexcept {
    uffdio_register range = {};
    range.range = {address_of(address), bytes};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (faults != kMissing) range.mode |= UFFDIO_REGISTER_MODE_WP;
    if (faults == kShared) range.mode |= UFFDIO_REGISTER_MODE_MINOR;
    return call(descriptor_, UFFDIO_REGISTER, &range);
}

int Userfault::move(void* target, const void* source, size_t bytes,
                    size_t* moved_bytes) const noexcept {
    size_t done = 0;
    int error = 0;
    const int injected = inject::next_errno(inject::Call::kMove);
    if (injected > 0 && bytes > kOsPageBytes) bytes = kOsPageBytes;
    while (done < bytes) {
        uffdio_move request = {address_of(target) + done, address_of(source) + done, bytes - done,
                               UFFDIO_MOVE_MODE_DONTWAKE, 0};
        error = call(descriptor_, UFFDIO_MOVE, &request);
        if (request.move > 0) done += static_cast<size_t>(request.move);
        // Linux 6.18 moves pages and then fails because they are there, when it has to try one
        // again that somebody changed meanwhile (move_pages in mm/userfaultfd.c keeps the -EAGAIN).
        // Nobody else fills the target, so a page that is there now has come from the source.
        if (error == EEXIST && is_missing(static_cast<const std::byte*>(source) + done) &&
            is_page(static_cast<std::byte*>(target) + done)) {
            done += kOsPageBytes;
            error = 0;
        }
        if (error != 0 && error != EAGAIN) break;
        error = 0;
    }
    *moved_bytes = done;
    return error == 0 ? injected : error;
}

int Userfault::copy(void* target, const void* source, size_t bytes, bool write_protected,
                    size_t* copied_bytes) const noexcept {
    return fill(bytes, copied_bytes, [&](size_t done, size_t step_bytes, int64_t* copied) {
        uffdio_copy request = {};
        request.dst = address_of(target) + done;
        request.src = address_of(source) + done;
        request.len = step_bytes;
        request.mode = UFFDIO_COPY_MODE_DONTWAKE;
        if (write_protected) request.mode |= UFFDIO_COPY_MODE_WP;
        const int error = call(descriptor_, UFFDIO_COPY, &request);
        *copied = request.copy;
        return error;
    });
}

int Userfault::zero(void* target, size_t bytes, size_t* filled_bytes) const noexcept {
    return fill(bytes, filled_bytes, [&](size_t done, size_t step_bytes, int64_t* filled) {
        uffdio_zeropage request = {};
        request.range = {address_of(target) + done, step_bytes};
        request.mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE;
        const int error = call(descriptor_, UFFDIO_ZEROPAGE, &request);
        *filled = request.zeropage;
        return error;
    });
}

bool Userfault::next_event(Event* event) const noexcept {
    const int saved_errno = errno;
    uffd_msg message = {};
    long got = 0;
    do {
        got = syscall(SYS_read, descriptor_, &message, sizeof message);
    } while (got < 0 && errno == EINTR);
    errno = saved_errno;
    if (got != sizeof message || message.event != UFFD_EVENT_PAGEFAULT) return false;
    event->page = reinterpret_cast<std::byte*>(message.arg.pagefault.address);
    event->write = (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0;
    event->missing = (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) == 0;
    event->thread_id = message.arg.pagefault.feat.ptid;
    return true;
}

int Userfault::wake(void* address, size_t bytes) const noexcept {
    uffdio_range range = {address_of(address), bytes};
    return call(descriptor_, UFFDIO_WAKE, &range);
}

int Userfault::poison(void* address, size_t bytes) const noexcept {
    if (const int injected = inject::next_errno(inject::Call::kPoison); injected > 0) {
        return injected;
    }
    int error = EAGAIN;
    while (error == EAGAIN) {
        uffdio_poison request = {};
        request.range = {address_of(address), bytes};
        request.mode = UFFDIO_POISON_MODE_DONTWAKE;
        error = call(descriptor_, UFFDIO_POISON, &request);
    }
    return error;
}

int Userfault::map_present(void* address, size_t bytes, bool write_protected) const noexcept {
    int error = EAGAIN;
    while (error == EAGAIN) {
        uffdio_continue request = {};
        request.range = {address_of(address), bytes};
        request.mode = UFFDIO_CONTINUE_MODE_DONTWAKE;
        if (write_protected) request.mode |= UFFDIO_CONTINUE_MODE_WP;
        error = call(descriptor_, UFFDIO_CONTINUE, &request);
    }
    return error;
}

int Userfault::write_protect(void* address, size_t bytes, bool on) const noexcept {
    for (;;) {
        uffdio_writeprotect request = {};
        request.range = {address_of(address), bytes};
        request.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
        const int error = call(descriptor_, UFFDIO_WRITEPROTECT, &request);
        if (error != EAGAIN) return error;
    }
}

}  // namespace hanare::sys
