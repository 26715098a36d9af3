// SPDX-License-Identifier: Apache-2.0
#include "sys/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

hanare_status status_of(int error) {
    if (error == EACCES || error == EPERM) return HANARE_STATUS_PERMISSION;
    return error == ENOENT ? HANARE_STATUS_NOT_FOUND : HANARE_STATUS_SYSTEM;
}

}  // namespace

Result<std::string> read_private_file(const std::string& path, size_t bytes_max) {
    // A FIFO would wait for somebody who writes.
    const FileDescriptor file(
        above_standard(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
    if (!file.is_open()) return fail_errno(status_of(errno), errno, "opening %.150s", path.c_str());
    struct stat status = {};
    if (fstat(file.number(), &status) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "looking at %.150s", path.c_str());
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(HANARE_STATUS_PERMISSION, "%.150s is not a regular file", path.c_str());
    }
    if (status.st_uid != geteuid()) {
        return fail(HANARE_STATUS_PERMISSION, "%.150s belongs to another user", path.c_str());
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return fail(HANARE_STATUS_PERMISSION,
                    "%.150s can be used by others (mode %03o); chmod 600 helps", path.c_str(),
                    status.st_mode & 0777);
    }
    Result<std::string> text = read_to_end(file.number(), bytes_max);
    if (text) return text;
    return fail(text.error().status, "%.150s: %.90s", path.c_str(), text.error().text);
}

Result<std::string> read_to_end(int descriptor, size_t bytes_max) {
    std::string text;
    char part[512];
    ssize_t got = 0;
    while ((got = read(descriptor, part, sizeof part)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) text.append(part, static_cast<size_t>(got));
        if (text.size() > bytes_max) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "more than %zu bytes", bytes_max);
        }
    }
    const int error = errno;
    explicit_bzero(part, sizeof part);
    if (got < 0) return fail_errno(HANARE_STATUS_SYSTEM, error, "reading");
    return text;
}

}  // namespace hanare::sys
