// SPDX-License-Identifier: Apache-2.0
#include "sys/network_namespace.hpp"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "sys/clock.hpp"
#include "sys/file.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

// The one user and the one group of a new user namespace.
Result<void> map_ids(uid_t user, gid_t group) {
    HANARE_TRY(write_text_file("/proc/self/setgroups", "deny"));
    HANARE_TRY(write_text_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1"));
    return write_text_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
}

bool is_running(const std::string& name) {
    const FileDescriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request = {};
    name.copy(request.ifr_name, sizeof request.ifr_name - 1);
    return any.is_open() && ioctl(any.number(), SIOCGIFFLAGS, &request) == 0 &&
           (request.ifr_flags & IFF_RUNNING) != 0;
}

// A user namespace.
bool are_ours(const FileDescriptor& users) {
    struct stat theirs = {};
    struct stat ours = {};
    return fstat(users.number(), &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

}  // namespace

Result<void> enter_own_network() {
    if (unshare(CLONE_NEWNET) == 0) return {};
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
        if (const auto mapped = map_ids(user, group); !mapped) {
            return fail(HANARE_STATUS_PERMISSION, "cannot make a network of its own: %s",
                        mapped.error().text);
        }
        return {};
    }
    return fail_errno(HANARE_STATUS_PERMISSION, errno,
                      "cannot make a network of its own; it takes root, or user namespaces "
                      "(user.max_user_namespaces, kernel.unprivileged_userns_clone)");
}

Result<void> enter_network_of(pid_t process) {
    const std::string path = "/proc/" + std::to_string(process) + "/ns/";
    const FileDescriptor network(open((path + "net").c_str(), O_RDONLY | O_CLOEXEC));
    const FileDescriptor users(open((path + "user").c_str(), O_RDONLY | O_CLOEXEC));
    if (!network.is_open() || !users.is_open()) {
        return fail_errno(HANARE_STATUS_NOT_FOUND, errno, "the network of process %d",
                          static_cast<int>(process));
    }
    const bool is_entered = (are_ours(users) || setns(users.number(), CLONE_NEWUSER) == 0) &&
                            setns(network.number(), CLONE_NEWNET) == 0;
    if (is_entered) return {};
    return fail_errno(HANARE_STATUS_PERMISSION, errno, "cannot enter the network of process %d",
                      static_cast<int>(process));
}

Result<void> await_running_link(const std::string& name, int timeout_ms) {
    // It tells of every change.
    const FileDescriptor changes(
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl address = {};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    if (!changes.is_open() ||
        bind(changes.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "netlink");
    }
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    while (!is_running(name)) {
        const uint64_t now = now_ns();
        if (now >= end_ns) {
            return fail(HANARE_STATUS_TIMEOUT, "the interface %s does not run", name.c_str());
        }
        pollfd waited = {changes.number(), POLLIN, 0};
        if (poll(&waited, 1, static_cast<int>((end_ns - now) / kNsPerMs) + 1) < 0) {
            return fail_errno(HANARE_STATUS_BUSY, errno, "waiting for the interface %s",
                              name.c_str());
        }
        char ignored[8192];
        while (recv(changes.number(), ignored, sizeof ignored, 0) > 0) {
        }
    }
    return {};
}

Result<void> show_own_network() {
    const bool is_shown = unshare(CLONE_NEWNS) == 0 &&
                          mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
                          mount("hanare", "/sys", "sysfs", MS_RDONLY, nullptr) == 0;
    if (is_shown) return {};
    return fail_errno(HANARE_STATUS_PERMISSION, errno,
                      "cannot mount /sys so that it shows a network of its own");
}

}  // namespace hanare::sys
