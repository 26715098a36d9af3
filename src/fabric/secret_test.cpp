// SPDX-License-Identifier: Apache-2.0
#include "fabric/secret.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "sys/test_support.hpp"

namespace hanare::fabric {
namespace {

class SecretTest : public testing::Test {
protected:
    ~SecretTest() override { sys::testing::Leftovers::remove(file_slot_); }

    hanare_status status_of(const std::string& text, mode_t mode = 0600) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
        EXPECT_EQ(chmod(path.c_str(), mode), 0);
        const Result<Secret> secret = Secret::read_file(path);
        return secret ? HANARE_STATUS_OK : secret.error().status;
    }

    const sys::testing::TemporaryDirectory directory;
    const std::string path = directory.path() + "/secret";

private:
    const size_t file_slot_ = sys::testing::Leftovers::add(path);
};

TEST_F(SecretTest, TextAndBytes) {
    const Secret made = Secret::make().value();
    EXPECT_EQ(status_of(made.text() + "\n"), HANARE_STATUS_OK);
    EXPECT_TRUE(std::ranges::equal(Secret::read_file(path).value().bytes(), made.bytes()));
    std::string bytes(Secret::kBytes, 'x');
    bytes.back() = '\n';  // is one of the bytes
    EXPECT_EQ(status_of(bytes), HANARE_STATUS_OK);
    EXPECT_EQ(Secret::read_file(path).value().bytes().back(), std::byte{'\n'});
    EXPECT_FALSE(std::ranges::equal(Secret::make().value().bytes(), made.bytes()));
}

TEST_F(SecretTest, OthersMayNotReadOrChangeIt) {
    const std::string text = Secret::make().value().text();
    EXPECT_EQ(status_of(text, 0600), HANARE_STATUS_OK);
    EXPECT_EQ(status_of(text, 0400), HANARE_STATUS_OK);
    for (const mode_t mode : {0640, 0604, 0620, 0602, 0666}) {
        EXPECT_EQ(status_of(text, mode), HANARE_STATUS_PERMISSION) << mode;
    }
    EXPECT_EQ(Secret::read_file("/dev/zero").error().status, HANARE_STATUS_PERMISSION);
    EXPECT_EQ(Secret::read_file("/nowhere/at/all").error().status, HANARE_STATUS_NOT_FOUND);
    if (geteuid() != 0) GTEST_SKIP() << "files of other users need root";
    ASSERT_EQ(status_of(text), HANARE_STATUS_OK);
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(Secret::read_file(path).error().status, HANARE_STATUS_PERMISSION);
}

TEST_F(SecretTest, OtherTexts) {
    const std::string text = Secret::make().value().text();
    for (const std::string& wrong :
         {std::string(), text.substr(1), text + "0", text + "\n\n", std::string(64, 'g'),
          std::string(31, 'x'), std::string(33, 'x'), std::string(100'000, '0')}) {
        EXPECT_EQ(status_of(wrong), HANARE_STATUS_INVALID_ARGUMENT) << wrong.size();
    }
}

TEST_F(SecretTest, FromADescriptor) {
    const Secret made = Secret::make().value();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string text = made.text();
    ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
    EXPECT_TRUE(std::ranges::equal(Secret::read_descriptor(ends[0]).value().bytes(), made.bytes()));
    close(ends[0]);
    EXPECT_EQ(Secret::read_descriptor(-1).error().status, HANARE_STATUS_SYSTEM);
}

}  // namespace
}  // namespace hanare::fabric
