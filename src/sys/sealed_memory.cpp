// SPDX-License-Identifier: Apache-2.0
#include "sys/sealed_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace hanare::sys {
namespace {

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<FileDescriptor> sealed_memory_holding(std::span<const std::byte> bytes) {
    FileDescriptor file(
        above_standard(memfd_create("hanare-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!file.is_open()) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot create memory to be sealed");
    }
    // Who finds it in /proc has to be its user.
    if (fchmod(file.number(), S_IRUSR | S_IWUSR) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot close memory to others");
    }
    // Without moving the offset.
    const ssize_t written = pwrite(file.number(), bytes.data(), bytes.size(), 0);
    if (written != static_cast<ssize_t>(bytes.size())) {
        return fail_errno(HANARE_STATUS_SYSTEM, written < 0 ? errno : ENOSPC,
                          "cannot write %zu bytes of memory to be sealed", bytes.size());
    }
    if (fcntl(file.number(), F_ADD_SEALS, kSeals) == 0) return file;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot seal memory");
}

bool is_sealed_memory(int descriptor) noexcept {
    const int saved_errno = errno;
    const int seals = fcntl(descriptor, F_GET_SEALS);
    errno = saved_errno;
    return seals >= 0 && (seals & kSeals) == kSeals;
}

Result<std::string> read_sealed_memory(int descriptor, size_t bytes_max) {
    std::string text(bytes_max + 1, '\0');
    size_t done = 0;
    ssize_t got = 0;
    do {
        got = pread(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
        if (got > 0) done += static_cast<size_t>(got);
    } while (done < text.size() && (got > 0 || (got < 0 && errno == EINTR)));
    if (done < text.size() && got < 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "reading sealed memory");
    }
    if (done > bytes_max) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "more than %zu bytes", bytes_max);
    }
    text.resize(done);
    return text;
}

}  // namespace hanare::sys
