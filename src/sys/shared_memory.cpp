// SPDX-License-Identifier: Apache-2.0
#include "sys/shared_memory.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/inject.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<void> map_over(const Mapping& mapping, int protection, int flags, int file) {
    void* mapped = MAP_FAILED;
    if (const int injected = inject::next_errno(inject::Call::kMmap); injected != 0) {
        errno = injected;
    } else {
        mapped = mmap(mapping.address(), mapping.bytes(), protection,
                      flags | MAP_FIXED | MAP_NORESERVE, file, 0);
    }
    if (mapped != MAP_FAILED) return {};
    return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "cannot map %s of shared memory",
                      format_size(mapping.bytes()).c_str());
}

// Holes stay holes.  0 or an errno value.
int copy_content(int from, const std::byte* memory, size_t bytes, int to) {
    const auto end = static_cast<off_t>(bytes);
    for (off_t at = 0; at < end;) {
        at = lseek(from, at, SEEK_DATA);
        if (at < 0) return errno == ENXIO ? 0 : errno;
        const off_t behind = lseek(from, at, SEEK_HOLE);
        if (behind < 0) return errno;
        while (at < behind) {
            if (const int injected = inject::next_errno(inject::Call::kWrite); injected > 0) {
                return injected;
            }
            const ssize_t written = pwrite(to, memory + at, static_cast<size_t>(behind - at), at);
            if (written < 0 && errno != EINTR) return errno;
            if (written > 0) at += written;
        }
    }
    return 0;
}

}  // namespace

Result<FileDescriptor> create_shared_memory(size_t bytes) {
    HANARE_TRY(check_file_bytes("the memory of a shared region", bytes));
    FileDescriptor file(
        above_standard(memfd_create("hanare-region", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!file.is_open() || ftruncate(file.number(), static_cast<off_t>(bytes)) != 0 ||
        fchmod(file.number(), S_IRUSR | S_IWUSR) != 0 ||
        fcntl(file.number(), F_ADD_SEALS, kSeals) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create %s of shared memory",
                          format_size(bytes).c_str());
    }
    return file;
}

Result<void> map_shared(const Mapping& mapping, const FileDescriptor& file) {
    return map_over(mapping, PROT_READ | PROT_WRITE, MAP_SHARED, file.number());
}

int copy_from_file(int file, uint64_t offset, std::byte* memory, size_t bytes) noexcept {
    const int saved_errno = errno;
    int error = 0;
    for (size_t done = 0; error == 0 && done < bytes;) {
        const long got = syscall(SYS_pread64, file, memory + done, bytes - done, offset + done);
        if (got > 0) {
            done += static_cast<size_t>(got);
        } else if (got == 0 || errno != EINTR) {
            error = got == 0 ? EIO : errno;
        }
    }
    errno = saved_errno;
    return error;
}

int remove_pages(std::byte* memory, size_t bytes) noexcept {
    return advise(memory, bytes, MADV_REMOVE);
}

Result<FileDescriptor> reopen_read_only(const FileDescriptor& file) {
    const std::string path = "/proc/self/fd/" + std::to_string(file.number());
    FileDescriptor again(above_standard(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    if (again.is_open()) return again;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot open %s for reading", path.c_str());
}

FileDescriptor open_shared_file(const char* path) noexcept {
    return FileDescriptor(open(path, O_RDWR | O_CLOEXEC));
}

Result<Mapping> map_shared_file(const char* path, size_t bytes) {
    const FileDescriptor file = open_shared_file(path);
    struct stat status{};
    if (!file.is_open() || fstat(file.number(), &status) != 0 ||
        static_cast<uint64_t>(status.st_size) < bytes) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "cannot open %s", path);
    }
    void* const mapped =
        raw::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (mapped == MAP_FAILED) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot map %s", path);
    }
    return Mapping::take_over(static_cast<std::byte*>(mapped), bytes);
}

Result<size_t> shared_memory_bytes(int file) {
    struct stat status = {};
    if (fstat(file, &status) != 0) {
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, errno, "descriptor %d", file);
    }
    const int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals || status.st_size <= 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "descriptor %d is not one of hanare_region_export", file);
    }
    return static_cast<size_t>(status.st_size);
}

Result<FileDescriptor> replace_shared_memory(std::span<std::byte> memory,
                                             const FileDescriptor& file) {
    HANARE_TRY_ASSIGN(FileDescriptor fresh, create_shared_memory(memory.size()));
    if (const int error = copy_content(file.number(), memory.data(), memory.size(), fresh.number());
        error != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, error, "cannot copy %s of shared memory",
                          format_size(memory.size()).c_str());
    }
    void* const mapped = raw::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fresh.number(), 0);
    if (mapped != MAP_FAILED) return fresh;
    return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "cannot map %s of shared memory",
                      format_size(memory.size()).c_str());
}

// Private, and never written to: the same memory, but userfaultfd takes it without the right to
// write to the file.
Result<Mapping> map_read_only(int file, size_t bytes) {
    HANARE_TRY_ASSIGN(auto mapping, Mapping::reserve(bytes, kOsPageBytes));
    HANARE_TRY(map_over(mapping, PROT_READ, MAP_PRIVATE, file));
    return mapping;
}

}  // namespace hanare::sys
