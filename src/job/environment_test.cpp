// SPDX-License-Identifier: Apache-2.0
#include "job/environment.hpp"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <sys/stat.h>

#include "job/test_support.hpp"
#include "sys/sealed_memory.hpp"
#include "sys/test_support.hpp"

namespace hanare::job {
namespace {

class Environment : public ::testing::Test {
protected:
    testing::CleanEnvironment environment;
};

std::string error_of(const Error& error) { return error.text; }

TEST_F(Environment, NumbersAreChecked) {
    EXPECT_EQ(parse_number("x", "7", 0, 7).value(), 7u);
    for (const char* text : {"", " 1", "1 ", "+1", "-1", "1x", "0x1", "8", "99999999999"}) {
        const auto value = parse_number("NAME", text, 1, 7);
        ASSERT_FALSE(value) << text;
        EXPECT_EQ(value.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        const std::string error = error_of(value.error());
        EXPECT_NE(error.find("NAME"), error.npos) << error;
        EXPECT_NE(error.find(std::string("'") + text + "'"), error.npos) << error;
        EXPECT_NE(error.find("allowed is a number from 1 to 7"), error.npos) << error;
    }
}

TEST_F(Environment, RankAndSizeBelongTogether) {
    environment.set({{"HANARE_RANK", "3"}, {"HANARE_SIZE", "4"}});
    const Place place = place_variables(kRankVariable, kSizeVariable).value();
    EXPECT_EQ(place.rank, 3u);
    EXPECT_EQ(place.size, 4u);
    environment.set({{"HANARE_RANK", "7"}});
    const auto beyond = place_variables(kRankVariable, kSizeVariable);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(error_of(beyond.error()),
              "HANARE_RANK (with HANARE_SIZE 4): '7' is out of range; allowed is a number from 0 "
              "to 3");
    environment.set({{"HANARE_SIZE", "70000"}});
    EXPECT_FALSE(place_variables(kRankVariable, kSizeVariable));
    unsetenv("HANARE_SIZE");
    const auto missing = place_variables(kRankVariable, kSizeVariable);
    ASSERT_FALSE(missing);
    EXPECT_EQ(error_of(missing.error()),
              "HANARE_RANK is set and HANARE_SIZE is not; both are needed");
}

TEST_F(Environment, Endpoints) {
    const Endpoint four = parse_endpoint("x", "127.0.0.1:80").value();
    EXPECT_EQ(four.host, "127.0.0.1");
    EXPECT_EQ(four.port, 80);
    const Endpoint six = parse_endpoint("x", "[::1]:65535").value();
    EXPECT_EQ(six.host, "::1");
    EXPECT_EQ(text_of(six), "[::1]:65535");
    EXPECT_EQ(text_of(parse_endpoint("x", "head:1").value()), "head:1");
    for (const char* text : {"", "host", ":80", "host:", "host:0", "host:65536", "host:x", "::1:80",
                             "[::1]", "[]:80", "[::1:80", "::1]:80", "[[::1]]:80"}) {
        EXPECT_FALSE(parse_endpoint("x", text)) << text;
    }
}

TEST_F(Environment, HostIsNumeric) {
    EXPECT_FALSE(host_variable().value());
    environment.set({{"HANARE_HOST", "::1"}});
    EXPECT_EQ(**host_variable(), "::1");
    environment.set({{"HANARE_HOST", "node7"}});
    const auto name = host_variable();
    ASSERT_FALSE(name);
    EXPECT_NE(error_of(name.error()).find("HANARE_HOST: 'node7'"), std::string::npos);
}

TEST_F(Environment, SecretOfADescriptorIsReadOnce) {
    const fabric::Secret made = fabric::Secret::make().value();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(write(ends[1], made.bytes().data(), made.bytes().size()), 32);
    close(ends[1]);
    environment.set({{"HANARE_SECRET_FD", std::to_string(ends[0])}});
    const auto secret = take_secret().value();
    ASSERT_TRUE(secret);
    EXPECT_TRUE(std::ranges::equal(secret->bytes(), made.bytes()));
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    EXPECT_EQ(getenv("HANARE_SECRET_FD"), nullptr);
    EXPECT_FALSE(take_secret().value());
}

// For the next program of the same task.
TEST_F(Environment, SecretOfSealedMemoryStays) {
    const fabric::Secret made = fabric::Secret::make().value();
    const auto file = sys::sealed_memory_holding(made.bytes()).value();
    environment.set({{"HANARE_SECRET_FD", std::to_string(file.number())}});
    for (int i = 0; i < 2; ++i) {
        const auto secret = take_secret().value();
        ASSERT_TRUE(secret);
        EXPECT_TRUE(std::ranges::equal(secret->bytes(), made.bytes()));
        EXPECT_GE(fcntl(file.number(), F_GETFD), 0);
        EXPECT_NE(getenv("HANARE_SECRET_FD"), nullptr);
    }
    const auto wrong = sys::sealed_memory_holding(made.bytes().first(31)).value();
    environment.set({{"HANARE_SECRET_FD", std::to_string(wrong.number())}});
    EXPECT_EQ(take_secret().error().status, HANARE_STATUS_INVALID_ARGUMENT);
}

TEST_F(Environment, WrongSecrets) {
    for (const char* text : {"0", "2", "-1", "x", "", "2000000"}) {
        environment.set({{"HANARE_SECRET_FD", text}});
        const auto secret = take_secret();
        ASSERT_FALSE(secret) << text;
        EXPECT_EQ(secret.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(error_of(secret.error()).find("HANARE_SECRET_FD"), std::string::npos);
    }
    environment.set({{"HANARE_SECRET_FILE", "/nowhere"}});
    const auto both = take_secret();
    ASSERT_FALSE(both);
    EXPECT_NE(error_of(both.error()).find("are both set"), std::string::npos);
    unsetenv("HANARE_SECRET_FD");
    EXPECT_EQ(take_secret().error().status, HANARE_STATUS_NOT_FOUND);
    // Closed: whoever was meant to have it does not.
    environment.set({{"HANARE_SECRET_FD", "1000"}});
    unsetenv("HANARE_SECRET_FILE");
    EXPECT_EQ(take_secret().error().status, HANARE_STATUS_SYSTEM);
}

TEST_F(Environment, SecretOfAFileThatOthersCanRead) {
    const sys::testing::TemporaryDirectory directory;
    const std::string path = directory.path() + "/secret";
    const size_t slot = sys::testing::Leftovers::add(path);
    std::ofstream(path) << fabric::Secret::make().value().text();
    environment.set({{"HANARE_SECRET_FILE", path}});
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
    const auto open = take_secret();
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().status, HANARE_STATUS_PERMISSION);
    EXPECT_NE(error_of(open.error()).find("HANARE_SECRET_FILE"), std::string::npos);
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    EXPECT_TRUE(take_secret().value());
    sys::testing::Leftovers::remove(slot);
}

}  // namespace
}  // namespace hanare::job
