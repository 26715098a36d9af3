// SPDX-License-Identifier: Apache-2.0
#include "sys/life_lock.hpp"

#include <gtest/gtest.h>

#include "sys/file.hpp"
#include "sys/inject.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

class LifeLockTest : public ::testing::Test {
protected:
    LifeLockTest() { EXPECT_EQ(open_unnamed(directory_.path(), file_), 0); }
    ~LifeLockTest() override { inject::disarm_all(); }

    int file() const { return file_.number(); }
    bool is_taken(uint32_t number) const {
        bool result = false;
        EXPECT_EQ(LifeLock::look(file(), number, result), 0);
        return result;
    }

    testing::TemporaryDirectory directory_;
    FileDescriptor file_;
};

TEST_F(LifeLockTest, IsHeldUntilItIsReleased) {
    LifeLock lock;
    EXPECT_FALSE(is_taken(7));
    ASSERT_EQ(LifeLock::take(file(), 7, lock), 0);
    EXPECT_TRUE(lock.is_held());
    EXPECT_TRUE(is_taken(7)) << "also for its holder";
    EXPECT_FALSE(is_taken(6));
    EXPECT_FALSE(is_taken(8));
    LifeLock other;
    EXPECT_EQ(LifeLock::take(file(), 7, other), EAGAIN);
    EXPECT_FALSE(other.is_held());
    EXPECT_EQ(LifeLock::take(file(), 8, other), 0);
    lock.release();
    EXPECT_FALSE(is_taken(7));
    EXPECT_TRUE(is_taken(8));
}

TEST_F(LifeLockTest, KeepsNoDescriptorAndLeavesTheFileAlone) {
    const int next = dup(file());
    close(next);
    LifeLock lock;
    ASSERT_EQ(LifeLock::take(file(), 0, lock), 0);
    const int again = dup(file());
    close(again);
    EXPECT_EQ(again, next);
    struct stat status = {};
    ASSERT_EQ(fstat(file(), &status), 0);
    EXPECT_EQ(status.st_size, 0);
}

TEST_F(LifeLockTest, AChildHasItUnlessItIsKeptFromIt) {
    LifeLock inherited;
    LifeLock kept;
    ASSERT_EQ(LifeLock::take(file(), 1, inherited), 0);
    ASSERT_EQ(LifeLock::take(file(), 2, kept), 0);
    kept.keep_from_children();
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        char unused;
        while (read(ends[0], &unused, 1) < 0) {
        }
        _exit(0);
    }
    inherited.release();
    kept.release();
    EXPECT_TRUE(is_taken(1));
    EXPECT_FALSE(is_taken(2));
    close(ends[1]);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_FALSE(is_taken(1));
    EXPECT_FALSE(process_exists(child));
    EXPECT_TRUE(process_exists(getpid()));
    close(ends[0]);
}

TEST_F(LifeLockTest, TellsWhenItCannotBeTaken) {
    LifeLock lock;
    EXPECT_EQ(LifeLock::take(-1, 0, lock), EBADF);
    inject::arm(inject::Call::kOpen, EMFILE);
    errno = 5;
    EXPECT_EQ(LifeLock::take(file(), 0, lock), EMFILE);
    EXPECT_EQ(errno, 5);
    EXPECT_FALSE(lock.is_held());
    bool unused = false;
    EXPECT_EQ(LifeLock::look(-1, 0, unused), EBADF);
}

}  // namespace
}  // namespace hanare::sys
