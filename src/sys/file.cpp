// SPDX-License-Identifier: Apache-2.0
#include "sys/file.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/inject.hpp"
#include "sys/own_descriptors.hpp"
#include "sys/raw_call.hpp"
#include "sys/signal.hpp"

namespace hanare::sys {

namespace {

// Runs a call that returns -1 and sets errno on failure: 0 or the errno value, errno as before.
template <typename Attempt>
int call(inject::Call kind, Attempt attempt) {
    const int saved_errno = errno;
    int error = 0;
    do {
        error = inject::next_errno(kind);
        if (error == 0 && attempt() < 0) error = errno;
    } while (error == EINTR);
    errno = saved_errno;
    return error;
}

template <typename Attempt>
int call(Attempt attempt) {
    const int saved_errno = errno;
    int error = 0;
    do {
        error = attempt() < 0 ? errno : 0;
    } while (error == EINTR);
    errno = saved_errno;
    return error;
}

// For file systems without O_TMPFILE.  Nothing may interrupt us while the file has a name.
int open_and_unlink(const std::string& directory, FileDescriptor& file) {
    std::string path = directory + "/.hanare-XXXXXX";
    const SignalBlock block;
    int number = -1;
    const int error = call(inject::Call::kOpen, [&] {
        number = mkostemp(path.data(), O_CLOEXEC);
        return number;
    });
    if (error != 0) return error;
    const int unlinked = call([&] { return unlink(path.c_str()); });
    const int kept = call([&] { return number = above_standard(number); });
    if (kept == 0) file = FileDescriptor(number);
    return kept != 0 ? kept : unlinked;
}

// `once(done, part)` moves up to `part` bytes and returns like pread(2).
template <typename Once>
int transfer_all(inject::Call kind, size_t bytes, Once once) noexcept {
    const int saved_errno = errno;
    size_t done = 0;
    int error = 0;
    while (done < bytes && error == 0) {
        const int injected = inject::next_errno(kind);
        const size_t rest = bytes - done;
        long moved = -1;
        if (injected > 0) {
            errno = injected;
        } else {
            moved = once(done, injected == inject::kShort ? short_part(rest) : rest);
        }
        if (moved > 0) {
            done += static_cast<size_t>(moved);
        } else if (moved == 0) {
            error = EIO;
        } else if (!is_transient(errno)) {
            error = errno;
        }
    }
    errno = saved_errno;
    return error;
}

}  // namespace

int above_standard(int number) noexcept {
    const bool apart = own_descriptors.is_on();
    const int floor = apart ? OwnDescriptors::kFloor : STDERR_FILENO + 1;
    if (number < 0 || number >= floor) return number;
    int kept = fcntl(number, F_DUPFD_CLOEXEC, floor);
    // Where the limit of descriptors is low, any will do.
    if (kept < 0 && apart) kept = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    raw::syscall(SYS_close, number);
    errno = error;
    own_descriptors.add(kept);
    return kept;
}

FileDescriptor duplicate(const FileDescriptor& file) noexcept {
    return FileDescriptor(above_standard(fcntl(file.number(), F_DUPFD_CLOEXEC, 0)));
}

int open_missing_standard() noexcept {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
        if (call([&] { return fcntl(number, F_GETFD); }) != EBADF) continue;
        // The lowest free number is this one.
        const int error = call([&] { return open("/dev/null", O_RDWR | O_CLOEXEC); });
        if (error != 0) return error;
    }
    return 0;
}

void close_own(int number) noexcept {
    own_descriptors.remove(number);
    raw::syscall(SYS_close, number);
}

void FileDescriptor::close() noexcept {
    if (number_ < 0) return;
    const int saved_errno = errno;
    close_own(std::exchange(number_, -1));  // EINTR closes, too
    errno = saved_errno;
}

int open_unnamed(const std::string& directory, FileDescriptor& file) {
    int number = -1;
    const int error = call(inject::Call::kOpen, [&] {
        number = above_standard(
            open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
        return number;
    });
    // EISDIR is how kernels and file systems that do not know the flag answer.
    if (error == EOPNOTSUPP || error == EISDIR) return open_and_unlink(directory, file);
    if (error == 0) file = FileDescriptor(number);
    return error;
}

int bypass_page_cache(int file) {
    if (file_bytes_max() < kOsPageBytes) return EFBIG;
    int flags = 0;
    if (const int error = call([&] { return flags = fcntl(file, F_GETFL); }); error != 0)
        return error;
    const auto set_flags = [&](int value) { return fcntl(file, F_SETFL, value); };
    if (const int error = call(inject::Call::kOpen, [&] { return set_flags(flags | O_DIRECT); });
        error != 0) {
        return error;
    }
    alignas(kOsPageBytes) static constexpr std::byte page[kOsPageBytes] = {};
    const int error = call([&] { return pwrite(file, page, sizeof page, 0); });
    if (error == EINVAL) {
        call([&] { return set_flags(flags); });
        return error;
    }
    return set_length(file, 0);
}

int preallocate(int file, uint64_t offset, uint64_t bytes) {
    return call(inject::Call::kFallocate, [&] {
        return fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    });
}

int punch_hole(int file, uint64_t offset, uint64_t bytes) {
    return call([&] {
        return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(offset), static_cast<off_t>(bytes));
    });
}

int zero_range(int file, uint64_t offset, uint64_t bytes) {
    return call([&] {
        return fallocate(file, FALLOC_FL_ZERO_RANGE, static_cast<off_t>(offset),
                         static_cast<off_t>(bytes));
    });
}

int extend(int file, uint64_t bytes) {
    struct stat status{};
    if (fstat(file, &status) != 0) return errno;
    if (static_cast<uint64_t>(status.st_size) >= bytes) return 0;
    const int error = preallocate(file, bytes - kOsPageBytes, kOsPageBytes);
    // Without it, two at a time could make the file shorter; the next write makes it longer again.
    return error == EOPNOTSUPP ? set_length(file, bytes) : error;
}

int set_length(int file, uint64_t bytes) {
    return call([&] { return ftruncate(file, static_cast<off_t>(bytes)); });
}

int file_system_of(int file, FileSystem& result) {
    struct statfs system;
    if (const int error = call([&] { return fstatfs(file, &system); }); error != 0) return error;
    const auto unit =
        static_cast<uint64_t>(system.f_frsize != 0 ? system.f_frsize : system.f_bsize);
    result.magic = static_cast<uint32_t>(system.f_type);
    result.in_memory = result.magic == TMPFS_MAGIC || result.magic == RAMFS_MAGIC;
    result.room_known = system.f_blocks != 0;
    result.free_bytes = static_cast<uint64_t>(system.f_bavail) * unit;
    result.no_more_files = system.f_files != 0 && system.f_ffree == 0;
    return 0;
}

uint64_t file_bytes_max() noexcept {
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

int allocated_bytes(int file, uint64_t& bytes) {
    struct stat status;
    if (const int error = call([&] { return fstat(file, &status); }); error != 0) return error;
    constexpr uint64_t kStatBlockBytes = 512;  // whatever st_blksize says
    bytes = static_cast<uint64_t>(status.st_blocks) * kStatBlockBytes;
    return 0;
}

Result<void> check_file_bytes(const char* what, uint64_t bytes) {
    const uint64_t bytes_max = file_bytes_max();
    if (bytes <= bytes_max) return {};
    return fail(HANARE_STATUS_STORE_FULL,
                "%s of %s is wanted, this process may write files of %s: raise the limit "
                "(ulimit -f)",
                what, format_size(bytes).c_str(), format_size(bytes_max).c_str());
}

// Not pread(3): that is a cancellation point and may be interposed; and not what intercept would
// take for a call of the program's: the memory may be the program's, on its way to the store.
int read_at(int file, uint64_t offset, std::byte* memory, size_t bytes) noexcept {
    return transfer_all(inject::Call::kRead, bytes, [&](size_t done, size_t part) {
        return raw::syscall(SYS_pread64, file, memory + done, part, offset + done);
    });
}

int write_at(int file, uint64_t offset, const std::byte* memory, size_t bytes) noexcept {
    const int error = transfer_all(inject::Call::kWrite, bytes, [&](size_t done, size_t part) {
        return raw::syscall(SYS_pwrite64, file, memory + done, part, offset + done);
    });
    if (error == EFBIG) drop_pending_signal(SIGXFSZ);
    return error;
}

bool is_transient(int os_errno) noexcept {
    return os_errno == EINTR || os_errno == EAGAIN || os_errno == ECANCELED;
}

size_t short_part(size_t bytes) noexcept {
    const size_t half = round_down(bytes / 2, kOsPageBytes);
    return half == 0 ? bytes : half;
}

}  // namespace hanare::sys
