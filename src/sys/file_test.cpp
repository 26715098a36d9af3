// SPDX-License-Identifier: Apache-2.0
#include "sys/file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/units.hpp"
#include "sys/event.hpp"
#include "sys/inject.hpp"
#include "sys/signal.hpp"
#include "sys/test_support.hpp"
#include "sys/uffd.hpp"
#include "sys/uring.hpp"

namespace hanare::sys {
namespace {

class File : public ::testing::Test {
protected:
    ~File() override {
        inject::disarm_all();
        EXPECT_EQ(directory_.entry_count(), 0u) << "something was left behind";
    }

    void open() { ASSERT_EQ(open_unnamed(directory_.path(), file_), 0); }

    std::vector<std::byte> random_bytes(size_t bytes) {
        std::vector<std::byte> data(bytes);
        for (std::byte& byte : data) byte = static_cast<std::byte>(prng_.next());
        return data;
    }

    void expect_private_and_unnamed() {
        struct stat status;
        ASSERT_EQ(fstat(file_.number(), &status), 0);
        EXPECT_EQ(status.st_mode, S_IFREG | 0600u);
        EXPECT_EQ(status.st_nlink, 0u);
        EXPECT_EQ(fcntl(file_.number(), F_GETFD), FD_CLOEXEC);
    }

    testing::TemporaryDirectory directory_;
    FileDescriptor file_;
    Prng prng_{testing::test_seed()};
};

TEST_F(File, IsPrivateAndUnnamed) {
    open();
    expect_private_and_unnamed();
}

TEST_F(File, IsPrivateAndUnnamedWithoutTmpfileToo) {
    inject::arm(inject::Call::kOpen, EOPNOTSUPP, 0, 1);
    open();
    expect_private_and_unnamed();
    EXPECT_EQ(directory_.entry_count(), 0u);
}

TEST_F(File, OpenErrorsComeBackAsErrno) {
    errno = E2BIG;
    EXPECT_EQ(open_unnamed(directory_.path() + "/missing", file_), ENOENT);
    EXPECT_EQ(open_unnamed("/proc/self/exe", file_), ENOTDIR);
    inject::arm(inject::Call::kOpen, EOPNOTSUPP, 0, 1);
    EXPECT_EQ(open_unnamed(directory_.path() + "/missing", file_), ENOENT);
    inject::arm(inject::Call::kOpen, EMFILE);
    EXPECT_EQ(open_unnamed(directory_.path(), file_), EMFILE);
    EXPECT_FALSE(file_.is_open());
    EXPECT_EQ(errno, E2BIG);
}

TEST_F(File, TransfersContinueAfterShortOnesAndInterruptions) {
    open();
    const auto data = random_bytes(10 * kOsPageBytes);
    for (const int os_errno : {0, EINTR, EAGAIN}) {
        std::vector<std::byte> back(data.size());
        errno = E2BIG;
        inject::arm(inject::Call::kWrite, os_errno, 0, 3);
        inject::arm(inject::Call::kRead, os_errno, 1, 3);
        EXPECT_EQ(write_at(file_.number(), kOsPageBytes, data.data(), data.size()), 0);
        EXPECT_EQ(read_at(file_.number(), kOsPageBytes, back.data(), back.size()), 0);
        EXPECT_EQ(errno, E2BIG);
        EXPECT_EQ(back, data) << "injected " << os_errno;
    }
}

TEST_F(File, ErrorsEndTransfers) {
    open();
    std::byte byte{};
    EXPECT_EQ(read_at(file_.number(), 0, &byte, 1), EIO) << "end of file";
    EXPECT_EQ(read_at(-1, 0, &byte, 1), EBADF);
    inject::arm(inject::Call::kWrite, ENOSPC, 0, 1);
    EXPECT_EQ(write_at(file_.number(), 0, &byte, 1), ENOSPC);
    EXPECT_EQ(write_at(file_.number(), 0, &byte, 1), 0);
}

TEST_F(File, DirectTransfersNeedAlignment) {
    open();
    if (const int error = bypass_page_cache(file_.number()); error != 0) {
        GTEST_SKIP() << "no O_DIRECT in " << directory_.path() << ": " << std::strerror(error);
    }
    ASSERT_NE(fcntl(file_.number(), F_GETFL) & O_DIRECT, 0);
    struct stat status;
    ASSERT_EQ(fstat(file_.number(), &status), 0);
    EXPECT_EQ(status.st_size, 0) << "the trial page was left in the file";
    alignas(kOsPageBytes) std::byte page[2 * kOsPageBytes] = {};
    EXPECT_EQ(write_at(file_.number(), 0, page, kOsPageBytes), 0);
    EXPECT_EQ(write_at(file_.number(), 0, page + 1, kOsPageBytes), EINVAL);
}

TEST_F(File, RefusedDirectLeavesTheFileBuffered) {
    open();
    inject::arm(inject::Call::kOpen, EINVAL, 0, 1);
    EXPECT_EQ(bypass_page_cache(file_.number()), EINVAL);
    EXPECT_EQ(fcntl(file_.number(), F_GETFL) & O_DIRECT, 0);
}

TEST_F(File, RoomIsAllocatedAndGivenBack) {
    open();
    uint64_t held_bytes = 0;
    const int error = preallocate(file_.number(), kMiB, kMiB);
    if (error == EOPNOTSUPP) GTEST_SKIP() << "no fallocate in " << directory_.path();
    ASSERT_EQ(error, 0);
    ASSERT_EQ(allocated_bytes(file_.number(), held_bytes), 0);
    EXPECT_GE(held_bytes, kMiB);
    ASSERT_EQ(punch_hole(file_.number(), kMiB, kMiB), 0);
    ASSERT_EQ(allocated_bytes(file_.number(), held_bytes), 0);
    EXPECT_LT(held_bytes, kMiB);
    struct stat status;
    ASSERT_EQ(fstat(file_.number(), &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(2 * kMiB));
    inject::arm(inject::Call::kFallocate, ENOSPC);
    EXPECT_EQ(preallocate(file_.number(), kMiB, kMiB), ENOSPC);
}

TEST_F(File, RoomIsZeroedWhereItIs) {
    open();
    const auto data = random_bytes(kMiB);
    ASSERT_EQ(write_at(file_.number(), 0, data.data(), data.size()), 0);
    ASSERT_EQ(fsync(file_.number()), 0);  // the room of delayed writes is not counted yet
    const int error = zero_range(file_.number(), 0, kMiB);
    if (error == EOPNOTSUPP) GTEST_SKIP() << "no range can be zeroed in " << directory_.path();
    ASSERT_EQ(error, 0);
    std::vector<std::byte> back(kMiB, std::byte{1});
    ASSERT_EQ(read_at(file_.number(), 0, back.data(), back.size()), 0);
    EXPECT_EQ(back, std::vector<std::byte>(kMiB));
    uint64_t held_bytes = 0;
    ASSERT_EQ(allocated_bytes(file_.number(), held_bytes), 0);
    EXPECT_GE(held_bytes, kMiB);
}

TEST_F(File, KnowsMemoryFromDisk) {
    FileDescriptor in_memory(memfd_create("hanare-test", MFD_CLOEXEC));
    FileSystem file_system;
    ASSERT_EQ(file_system_of(in_memory.number(), file_system), 0);
    EXPECT_TRUE(file_system.in_memory);
    open();
    ASSERT_EQ(file_system_of(file_.number(), file_system), 0);
    EXPECT_TRUE(file_system.in_memory || file_system.room_known);
    EXPECT_EQ(file_system_of(-1, file_system), EBADF);
}

TEST_F(File, KnowsTheLimitOfTheProcess) {
    EXPECT_EQ(testing::run_in_child([] {
                  const rlimit limit = {12345, RLIM_INFINITY};
                  setrlimit(RLIMIT_FSIZE, &limit);
                  return file_bytes_max() == 12345 ? "" : "wrong limit";
              }),
              "");
}

// In a child whose standard descriptors are closed: what `open` opens stays away from them.
std::string stays_above_standard(const std::function<bool()>& open) {
    return testing::run_in_child([&]() -> std::string {
        for (int number = 0; number <= STDERR_FILENO; ++number) close(number);
        if (!open()) return "not opened";
        for (int number = 0; number <= STDERR_FILENO; ++number) {
            if (fcntl(number, F_GETFD) != -1) return "took " + std::to_string(number);
        }
        return "";
    });
}

TEST_F(File, KeptDescriptorsAreNoStandardOnes) {
    EXPECT_EQ(stays_above_standard([&] { return open_unnamed(directory_.path(), file_) == 0; }),
              "");
    EXPECT_EQ(stays_above_standard([&] {
                  inject::arm(inject::Call::kOpen, EOPNOTSUPP, 0, 1);
                  return open_unnamed(directory_.path(), file_) == 0;
              }),
              "");
    EXPECT_EQ(stays_above_standard([] {
                  static auto event = EventFd::open();
                  return event.has_value();
              }),
              "");
    EXPECT_EQ(stays_above_standard([] {
                  static auto ring = Uring::open(1, -1);
                  return ring.has_value() || ring.error().os_errno != 0;
              }),
              "");
    EXPECT_EQ(stays_above_standard([] {
                  static auto userfault = Userfault::open({});
                  return userfault.has_value() || userfault.error().os_errno != 0;
              }),
              "");
}

TEST(AboveStandard, MovesAndClosesTheOriginal) {
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  close(STDIN_FILENO);
                  const int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
                  const int kept = above_standard(first);
                  if (first != STDIN_FILENO || kept <= STDERR_FILENO) return "not moved";
                  if (fcntl(kept, F_GETFD) != FD_CLOEXEC) return "open after exec";
                  if (fcntl(first, F_GETFD) != -1) return "the original is open";
                  if (above_standard(kept) != kept) return "moved for nothing";
                  return above_standard(-1) == -1 ? "" : "a negative number became another";
              }),
              "");
}

TEST(OpenMissingStandard, FillsTheClosedOnesOnly) {
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  int ends[2];
                  if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)
                      return "pipe";
                  close(STDIN_FILENO);
                  close(STDERR_FILENO);
                  if (open_missing_standard() != 0) return "failed";
                  if (fcntl(STDIN_FILENO, F_GETFD) != FD_CLOEXEC) return "open after exec";
                  if (write(STDOUT_FILENO, "x", 1) != 1) return "standard output is another";
                  char byte = 0;
                  if (read(ends[0], &byte, 1) != 1 || byte != 'x') return "not written";
                  if (read(STDIN_FILENO, &byte, 1) != 0) return "standard input is not empty";
                  return write(STDERR_FILENO, "x", 1) == 1 ? "" : "standard error refuses";
              }),
              "");
}

std::string with_file_limit(uint64_t bytes, const std::function<std::string()>& check) {
    return testing::run_in_child([&]() -> std::string {
        const rlimit limit = {bytes, RLIM_INFINITY};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit failed";
        return check();
    });
}

TEST_F(File, IsNotTriedWhereNothingMayBeWritten) {
    open();
    EXPECT_EQ(with_file_limit(0,
                              [&] {
                                  return bypass_page_cache(file_.number()) == EFBIG
                                             ? ""
                                             : "the limit was not seen";
                              }),
              "");
}

TEST_F(File, WritingBeyondTheLimitDoesNotKillWhoBlocksTheSignal) {
    open();
    EXPECT_EQ(with_file_limit(kOsPageBytes,
                              [&]() -> std::string {
                                  const auto data = random_bytes(2 * kOsPageBytes);
                                  const SignalBlock block;
                                  const int error =
                                      write_at(file_.number(), 0, data.data(), data.size());
                                  if (error != EFBIG) return "error " + std::to_string(error);
                                  sigset_t pending;
                                  sigpending(&pending);
                                  return sigismember(&pending, SIGXFSZ) == 0 ? "" : "SIGXFSZ pends";
                              }),
              "");
}

TEST_F(File, TheLimitIsNamed) {
    EXPECT_TRUE(check_file_bytes("a file", kGiB * kGiB));
    EXPECT_EQ(with_file_limit(kMiB,
                              []() -> std::string {
                                  if (!check_file_bytes("a file", kMiB)) return "refused";
                                  const auto refused = check_file_bytes("a file", kMiB + 1);
                                  if (refused) return "not refused";
                                  const std::string text = refused.error().text;
                                  return text.find("1 MiB: raise the limit (ulimit -f)") !=
                                                 text.npos
                                             ? ""
                                             : text;
                              }),
              "");
}

TEST(FileDescriptor, ClosesOnceAndMoves) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    {
        FileDescriptor first(ends[0]);
        FileDescriptor second(std::move(first));
        EXPECT_FALSE(first.is_open());
        EXPECT_EQ(second.number(), ends[0]);
        EXPECT_EQ(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    }
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    FileDescriptor last(ends[1]);
    last.close();
    last.close();
    EXPECT_EQ(fcntl(ends[1], F_GETFD), -1);
}

TEST(ShortPart, IsHalfInWholePages) {
    EXPECT_EQ(short_part(kOsPageBytes), kOsPageBytes);
    EXPECT_EQ(short_part(2 * kOsPageBytes), kOsPageBytes);
    EXPECT_EQ(short_part(3 * kOsPageBytes), kOsPageBytes);
    EXPECT_EQ(short_part(256 * kKiB), 128 * kKiB);
    EXPECT_EQ(short_part(1), 1u);
}

}  // namespace
}  // namespace hanare::sys
