// SPDX-License-Identifier: Apache-2.0
#include "sys/descriptor_passing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/inject.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {
namespace {

// Room for more than is taken: who sends too many must not make the others vanish unclosed.
constexpr size_t kRoomFor = 8;
union Control {
    cmsghdr header;
    std::byte bytes[CMSG_SPACE(kRoomFor * sizeof(int))];
};

void take_descriptors(msghdr& message, std::span<FileDescriptor> wanted) noexcept {
    size_t taken = 0;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(each) + i * sizeof number, sizeof number);
            FileDescriptor file(above_standard(number));
            if (taken < wanted.size()) wanted[taken++] = std::move(file);
        }
    }
}

}  // namespace

int send_message(int socket, std::span<const std::byte> message,
                 std::span<const int> descriptors) noexcept {
    if (const int injected = inject::next_errno(inject::Call::kMessage); injected > 0) {
        return injected;
    }
    const int saved_errno = errno;
    iovec data = {const_cast<std::byte*>(message.data()), message.size()};
    msghdr header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    Control control = {};
    const size_t count = std::min(descriptors.size(), kPassedMax);
    if (count != 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const passed = CMSG_FIRSTHDR(&header);
        passed->cmsg_level = SOL_SOCKET;
        passed->cmsg_type = SCM_RIGHTS;
        passed->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(passed), descriptors.data(), count * sizeof(int));
    }
    long sent = 0;
    do {
        sent = raw::syscall(SYS_sendmsg, socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    int error = 0;
    if (sent < 0) {
        error = errno;
    } else if (static_cast<size_t>(sent) != message.size()) {
        error = EPIPE;  // half of it: nothing that follows would be understood
    }
    errno = saved_errno;
    return error;
}

ptrdiff_t receive_message(int socket, std::span<std::byte> room,
                          std::span<FileDescriptor> descriptors) noexcept {
    const int saved_errno = errno;
    iovec data = {room.data(), room.size()};
    Control control = {};
    msghdr header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    const long got = raw::syscall(SYS_recvmsg, socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    ptrdiff_t result = got;
    if (got < 0) result = errno == EINTR ? -EAGAIN : -errno;
    if (got >= 0) take_descriptors(header, descriptors);
    errno = saved_errno;
    return result;
}

int peer_process(int socket) noexcept {
    const int saved_errno = errno;
    ucred peer = {};
    socklen_t bytes = sizeof peer;
    const bool is_known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0;
    errno = saved_errno;
    return is_known ? peer.pid : 0;
}

}  // namespace hanare::sys
