// SPDX-License-Identifier: Apache-2.0
#include "sys/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sys/file.hpp"

namespace hanare::sys {

Result<void> tell_service_manager(std::string_view assignments) {
    const char* const variable = std::getenv("NOTIFY_SOCKET");
    if (variable == nullptr || *variable == '\0') return {};
    const std::string_view name = variable;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if ((name.front() != '/' && name.front() != '@') || name.size() >= sizeof address.sun_path) {
        return fail(HANARE_STATUS_SYSTEM, "$NOTIFY_SOCKET, %.150s, is no address of a Unix socket",
                    variable);
    }
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';  // a name without a file
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());

    const FileDescriptor socket(above_standard(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    ssize_t sent = -1;
    if (socket.is_open()) {
        do {
            sent = sendto(socket.number(), assignments.data(), assignments.size(), MSG_NOSIGNAL,
                          reinterpret_cast<const sockaddr*>(&address), bytes);
        } while (sent < 0 && errno == EINTR);
    }
    if (sent >= 0) return {};
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot tell $NOTIFY_SOCKET, %.120s, that %.60s",
                      variable, std::string(assignments).c_str());
}

}  // namespace hanare::sys
