// SPDX-License-Identifier: Apache-2.0
#include "sys/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

// What systemd has: a socket at which datagrams arrive.
class ServiceManager : public testing::Test {
protected:
    ~ServiceManager() override {
        unsetenv("NOTIFY_SOCKET");
        if (!path_.empty()) unlink(path_.c_str());
    }

    void listen_at(const std::string& address) {
        sockaddr_un name = {};
        name.sun_family = AF_UNIX;
        std::memcpy(name.sun_path, address.data(), address.size());
        const bool has_file = address.front() == '/';
        if (has_file) path_ = address;
        if (!has_file) name.sun_path[0] = '\0';
        socket_ = FileDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
        ASSERT_EQ(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&name), bytes), 0)
            << std::strerror(errno);
        setenv("NOTIFY_SOCKET", address.c_str(), 1);
    }
    // What lies there; sending has put it there.
    std::string received() const {
        char text[200];
        const ssize_t got = recv(socket_.number(), text, sizeof text, 0);
        return got < 0 ? "nothing" : std::string(text, static_cast<size_t>(got));
    }

private:
    FileDescriptor socket_;
    std::string path_;
};

TEST_F(ServiceManager, WithoutAnyNothingHappens) {
    unsetenv("NOTIFY_SOCKET");
    EXPECT_TRUE(tell_service_manager("READY=1"));
    setenv("NOTIFY_SOCKET", "", 1);
    EXPECT_TRUE(tell_service_manager("READY=1"));
}

TEST_F(ServiceManager, AtAFile) {
    listen_at("/tmp/hanare-service-test-" + std::to_string(getpid()));
    ASSERT_TRUE(tell_service_manager("READY=1\nSTATUS=tcp://127.0.0.1:7077"));
    EXPECT_EQ(received(), "READY=1\nSTATUS=tcp://127.0.0.1:7077");
    ASSERT_TRUE(tell_service_manager("STOPPING=1"));
    EXPECT_EQ(received(), "STOPPING=1");
    EXPECT_EQ(received(), "nothing");
}

TEST_F(ServiceManager, AtANameWithoutFile) {
    listen_at("@hanare-service-test-" + std::to_string(getpid()));
    ASSERT_TRUE(tell_service_manager("READY=1"));
    EXPECT_EQ(received(), "READY=1");
}

TEST_F(ServiceManager, NobodyThereIsAnError) {
    setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    const auto told = tell_service_manager("READY=1");
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().status, HANARE_STATUS_SYSTEM);
    EXPECT_EQ(std::string(told.error().text),
              "cannot tell $NOTIFY_SOCKET, /nonexistent/socket, that READY=1: No such file or "
              "directory");
}

TEST_F(ServiceManager, WhatIsNoAddress) {
    for (const std::string& address : {std::string("relative"), "/" + std::string(107, 'x')}) {
        setenv("NOTIFY_SOCKET", address.c_str(), 1);
        EXPECT_FALSE(tell_service_manager("READY=1")) << address;
    }
}

}  // namespace
}  // namespace hanare::sys
