// SPDX-License-Identifier: Apache-2.0
#include "sys/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hanare::sys {
namespace {

hanare_status status_of(int error) {
    if (error == EACCES || error == EPERM || error == EROFS) return HANARE_STATUS_PERMISSION;
    return error == ENOENT ? HANARE_STATUS_NOT_FOUND : HANARE_STATUS_SYSTEM;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno(status_of(errno), errno, "opening %s", path.c_str());
    std::string text;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) text.append(buffer, static_cast<size_t>(got));
    }
    const int error = errno;
    close(fd);
    if (got < 0) return fail_errno(status_of(error), error, "reading %s", path.c_str());
    return text;
}

Result<void> write_text_file(const std::string& path, std::string_view text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno(status_of(errno), errno, "opening %s", path.c_str());
    const ssize_t put = write(fd, text.data(), text.size());
    const int error = errno;
    close(fd);
    if (put < 0) return fail_errno(status_of(error), error, "writing %s", path.c_str());
    if (static_cast<size_t>(put) != text.size()) {
        return fail(HANARE_STATUS_SYSTEM, "writing %s: only %zd of %zu bytes", path.c_str(), put,
                    text.size());
    }
    return {};
}

}  // namespace hanare::sys
