// SPDX-License-Identifier: Apache-2.0
#include "sys/descriptor_passing.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/shared_memory.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

class DescriptorPassingTest : public ::testing::Test {
protected:
    DescriptorPassingTest() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        one = FileDescriptor(ends[0]);
        other = FileDescriptor(ends[1]);
    }
    static size_t open_descriptors() {
        size_t count = 0;
        for (int number = 0; number < 256; ++number) count += fcntl(number, F_GETFD) >= 0 ? 1 : 0;
        return count;
    }

    FileDescriptor one, other;
    const std::array<std::byte, 3> message = {std::byte{1}, std::byte{2}, std::byte{3}};
};

TEST_F(DescriptorPassingTest, TheFileIsTheSame) {
    const FileDescriptor file = create_shared_memory(4096).value();
    ASSERT_EQ(pwrite(file.number(), "x", 1, 100), 1);
    const std::array<int, 2> sent = {file.number(), one.number()};
    ASSERT_EQ(send_message(one.number(), message, sent), 0);
    std::array<std::byte, 8> room{};
    std::array<FileDescriptor, 2> passed;
    ASSERT_EQ(receive_message(other.number(), room, passed), 3);
    EXPECT_EQ(room[2], std::byte{3});
    ASSERT_TRUE(passed[0].is_open() && passed[1].is_open());
    EXPECT_NE(fcntl(passed[0].number(), F_GETFD) & FD_CLOEXEC, 0);
    char byte = 0;
    ASSERT_EQ(pread(passed[0].number(), &byte, 1, 100), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(peer_process(one.number()), getpid());
}

TEST_F(DescriptorPassingTest, WhatIsNotWantedIsClosed) {
    const size_t before = open_descriptors();
    const std::array<int, 2> sent = {one.number(), other.number()};
    ASSERT_EQ(send_message(one.number(), message, sent), 0);
    std::array<std::byte, 8> room{};
    std::array<FileDescriptor, 1> passed;
    ASSERT_EQ(receive_message(other.number(), room, passed), 3);
    EXPECT_EQ(open_descriptors(), before + 1);
    ASSERT_EQ(send_message(one.number(), message, sent), 0);
    ASSERT_EQ(receive_message(other.number(), room), 3);
    EXPECT_EQ(open_descriptors(), before + 1);
}

TEST_F(DescriptorPassingTest, NothingAndTheEnd) {
    std::array<std::byte, 8> room{};
    EXPECT_EQ(receive_message(other.number(), room), -EAGAIN);
    one.close();
    EXPECT_EQ(receive_message(other.number(), room), 0);
    EXPECT_EQ(send_message(other.number(), message), EPIPE);
}

TEST_F(DescriptorPassingTest, AFullSocketTakesNothing) {
    int error = 0;
    size_t sent = 0;
    for (; error == 0; ++sent) error = send_message(one.number(), message);
    EXPECT_EQ(error, EAGAIN);
    std::array<std::byte, 4096> room{};
    size_t received = 0;
    for (ptrdiff_t got = 0; (got = receive_message(other.number(), room)) > 0;) {
        received += static_cast<size_t>(got);
    }
    EXPECT_EQ(received, (sent - 1) * message.size());
}

}  // namespace
}  // namespace hanare::sys
