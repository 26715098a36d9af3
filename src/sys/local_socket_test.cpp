// SPDX-License-Identifier: Apache-2.0
#include "sys/local_socket.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

constexpr int kPatience_ms = 10'000;

bool wait_for(const FileDescriptor& file) {
    pollfd state = {.fd = file.number(), .events = POLLIN, .revents = 0};
    return poll(&state, 1, kPatience_ms) == 1;
}

// A question and its answer.
void converse(const FileDescriptor& listener, const std::string& address) {
    const auto client = connect_local(address);
    ASSERT_TRUE(client) << client.error().text;
    ASSERT_TRUE(wait_for(listener));
    FileDescriptor server = accept_local(listener);
    ASSERT_TRUE(server.is_open());
    EXPECT_FALSE(accept_local(listener).is_open());
    char text[16];
    EXPECT_EQ(receive_some(server, text, sizeof text), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(send_some(*client, "question"), 8);
    ASSERT_TRUE(wait_for(server));
    EXPECT_EQ(receive_some(server, text, sizeof text), 8);
    EXPECT_EQ(send_some(server, "answer"), 6);
    EXPECT_FALSE(is_abandoned(*client));
    EXPECT_FALSE(read_answer(*client, 100, 1));  // not at its end yet
    EXPECT_EQ(send_some(server, " and more"), 9);
    server.close();
    EXPECT_TRUE(is_abandoned(*client));
    const auto answer = read_answer(*client, 100, kPatience_ms);
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(*answer, " and more");
    EXPECT_EQ(send_some(*client, "nobody there"), -1);  // and no SIGPIPE
}

TEST(LocalSocket, WithAFile) {
    const testing::TemporaryDirectory directory;
    const std::string address = directory.path() + "/a.sock";
    const size_t slot = testing::Leftovers::add(address);
    auto listener = listen_local(address);
    ASSERT_TRUE(listener) << listener.error().text;
    converse(*listener, address);
    listener->close();
    const auto refused = connect_local(address);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().os_errno, ECONNREFUSED);
    EXPECT_TRUE(listen_local(address));  // in the place of what was left
    EXPECT_EQ(directory.entry_count(), 1u);
    testing::Leftovers::remove(slot);
}

TEST(LocalSocket, WithoutAFile) {
    const std::string name = "hanare-test-" + std::to_string(getpid());
    const std::string address = "@" + name;
    const auto is_listed = [&] {
        const auto found = nameless_addresses("hanare-test-");
        return std::find(found.begin(), found.end(), address) != found.end();
    };
    EXPECT_FALSE(is_listed());
    auto listener = listen_local(address);
    ASSERT_TRUE(listener) << listener.error().text;
    EXPECT_FALSE(listen_local(address));
    EXPECT_TRUE(is_listed());
    converse(*listener, address);
    listener->close();
    EXPECT_FALSE(is_listed());
    EXPECT_EQ(connect_local(address).error().os_errno, ECONNREFUSED);
}

TEST(LocalSocket, AddressesThatCannotBe) {
    EXPECT_FALSE(listen_local(std::string(200, 'x')));
    EXPECT_FALSE(connect_local(""));
    EXPECT_FALSE(listen_local("/nonexistent/a.sock"));
}

TEST(LocalSocket, PrivateDirectories) {
    const testing::TemporaryDirectory parent;
    const std::string path = parent.path() + "/private";
    const size_t slot = testing::Leftovers::add(path);
    EXPECT_FALSE(is_private_directory(path));
    EXPECT_TRUE(make_private_directory(path));
    EXPECT_TRUE(make_private_directory(path));
    EXPECT_TRUE(is_private_directory(path));
    ASSERT_EQ(chmod(path.c_str(), 0750), 0);
    EXPECT_FALSE(make_private_directory(path));
    EXPECT_FALSE(make_private_directory(parent.path() + "/no/such"));
    testing::Leftovers::remove(slot);
}

}  // namespace
}  // namespace hanare::sys
