// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <fcntl.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "store/store_test_support.hpp"
#include "sys/uring.hpp"

namespace hanare::store {
namespace {

namespace inject = sys::inject;
namespace testing = sys::testing;

using FileStore = StoreTest;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

void expect_refused(const Result<std::unique_ptr<Store>>& store, hanare_status status,
                    std::initializer_list<std::string> parts) {
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().status, status);
    for (const std::string& part : parts) {
        EXPECT_TRUE(contains(store.error().text, part)) << store.error().text << "\nlacks " << part;
    }
}

std::string round_trip(const FileStoreOptions& options) {
    const auto store = open_file_store(options);
    if (!store) return store.error().text;
    const auto offset = (*store)->reserve(kMiB);
    if (!offset) return offset.error().text;
    Prng prng(7);
    const Buffer data(kMiB, prng);
    const Buffer back(kMiB);
    if ((*store)->write(*offset, data.data(), kMiB) != HANARE_STATUS_OK) return "write failed";
    if ((*store)->read(*offset, back.data(), kMiB) != HANARE_STATUS_OK) return "read failed";
    return data == back ? "" : "different data came back";
}

// Descriptors of this process that are open on unnamed files in `directory`.
std::vector<int> unnamed_files(const std::string& directory) {
    std::vector<int> found;
    for (int number = 0; number < 1024; ++number) {
        char target[512];
        const std::string link = "/proc/self/fd/" + std::to_string(number);
        const ssize_t length = readlink(link.c_str(), target, sizeof target);
        if (length <= 0) continue;
        const std::string text(target, static_cast<size_t>(length));
        if (text.starts_with(directory + "/") && text.ends_with("(deleted)"))
            found.push_back(number);
    }
    return found;
}

uint64_t held_bytes(const std::string& directory) {
    const std::vector<int> files = unnamed_files(directory);
    uint64_t bytes = 0;
    EXPECT_EQ(files.size(), 1u);
    if (!files.empty()) {
        EXPECT_EQ(sys::allocated_bytes(files[0], bytes), 0);
    }
    return bytes;
}

TEST_F(FileStore, ReturnsWhatWasWritten) {
    for (const bool direct : {true, false}) {
        FileStoreOptions wanted = options();
        wanted.use_direct = direct;
        const auto store = open_or_fail(wanted);
        constexpr size_t kBytes = 64 * kKiB;
        constexpr uint64_t kBlocks = 64;
        const uint64_t offset = reserve_or_fail(*store, kBlocks * kBytes);
        std::vector<uint64_t> seeds;
        for (uint64_t i = 0; i < kBlocks; ++i) {
            seeds.push_back(prng_.next());
            Prng content(seeds.back());
            const Buffer data(kBytes, content);
            ASSERT_EQ(store->write(offset + i * kBytes, data.data(), kBytes), HANARE_STATUS_OK);
        }
        for (uint64_t i = 0; i < kBlocks; ++i) {
            Prng content(seeds[i]);
            const Buffer data(kBytes, content);
            const Buffer back(kBytes);
            ASSERT_EQ(store->read(offset + i * kBytes, back.data(), kBytes), HANARE_STATUS_OK);
            ASSERT_TRUE(data == back) << "block " << i;
        }
        EXPECT_EQ(store->last_errno(), 0);
    }
}

TEST_F(FileStore, FileIsPrivateUnnamedAndClosed) {
    {
        const auto store = open_or_fail(options());
        const std::vector<int> files = unnamed_files(directory_.path());
        ASSERT_EQ(files.size(), 1u);
        struct stat status;
        ASSERT_EQ(fstat(files[0], &status), 0);
        EXPECT_EQ(status.st_mode, S_IFREG | 0600u);
        EXPECT_EQ(status.st_nlink, 0u);
        EXPECT_EQ(fcntl(files[0], F_GETFD), FD_CLOEXEC);
        EXPECT_EQ(directory_.entry_count(), 0u);
    }
    EXPECT_TRUE(unnamed_files(directory_.path()).empty());
}

TEST_F(FileStore, WorksForAnOrdinaryUser) {
    if (geteuid() != 0) {
        EXPECT_EQ(round_trip(options()), "");  // we are one
        return;
    }
    ASSERT_EQ(chown(directory_.path().c_str(), testing::kNobody, testing::kNobody), 0);
    EXPECT_EQ(testing::run_in_child([&] {
                  return testing::become_nobody() ? round_trip(options()) : "cannot become nobody";
              }),
              "");
}

TEST_F(FileStore, OpenErrorsNameTheDirectoryAndTheWayOut) {
    FileStoreOptions wanted = options();
    wanted.directory = directory_.path() + "/missing";
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_UNAVAILABLE,
                   {wanted.directory, "does not exist", "create it"});
    wanted.directory = "/proc/self/exe";
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_UNAVAILABLE,
                   {wanted.directory, "is not a directory"});
    wanted = options();
    inject::arm(inject::Call::kOpen, EROFS);
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_UNAVAILABLE,
                   {wanted.directory, "read-only", "another"});
    inject::arm(inject::Call::kOpen, EMFILE);
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_UNAVAILABLE,
                   {wanted.directory, std::strerror(EMFILE)});
    inject::disarm_all();
    wanted.size_bytes = 100;
    expect_refused(open_file_store(wanted), HANARE_STATUS_INVALID_ARGUMENT, {"100 B", "too small"});
}

TEST_F(FileStore, UnwritableDirectoryIsRefused) {
    ASSERT_EQ(chmod(directory_.path().c_str(), 0500), 0);
    const auto check = [&]() -> std::string {
        if (geteuid() == 0 && !testing::become_nobody()) return "cannot become nobody";
        const auto store = open_file_store(options());
        if (store) return "opened";
        return store.error().status == HANARE_STATUS_STORE_UNAVAILABLE &&
                       contains(store.error().text, "not writable for this user")
                   ? ""
                   : store.error().text;
    };
    EXPECT_EQ(testing::run_in_child(check), "");
}

TEST_F(FileStore, TmpfsIsRefusedUnlessAllowed) {
    sys::FileSystem file_system;
    const sys::FileDescriptor shared(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (sys::file_system_of(shared.number(), file_system) != 0 || !file_system.in_memory) {
        GTEST_SKIP() << "/dev/shm is not a tmpfs here";
    }
    FileStoreOptions wanted = options();
    wanted.directory = "/dev/shm";
    wanted.allow_tmpfs = false;
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_UNAVAILABLE,
                   {"/dev/shm", "tmpfs", "a directory on a disk", "allow tmpfs"});
    wanted.allow_tmpfs = true;
    EXPECT_EQ(round_trip(wanted), "");
}

TEST_F(FileStore, SizeIsPreallocatedAndIsTheLimit) {
    FileStoreOptions wanted = options();
    wanted.size_bytes = 10 * kMiB;
    const auto store = open_or_fail(wanted);
    EXPECT_GE(held_bytes(directory_.path()), 10 * kMiB);
    EXPECT_TRUE(contains(store->describe(), "10 MiB preallocated")) << store->describe();
    EXPECT_EQ(reserve_or_fail(*store, 3 * kMiB), 0u);
    EXPECT_EQ(reserve_or_fail(*store, 6 * kMiB), 4 * kMiB);
    const auto full = store->reserve(kMiB);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().status, HANARE_STATUS_STORE_FULL);
    EXPECT_TRUE(contains(full.error().text, "larger size")) << full.error().text;
    store->release(4 * kMiB, 6 * kMiB);
    EXPECT_EQ(reserve_or_fail(*store, 6 * kMiB), 4 * kMiB);
    EXPECT_GE(held_bytes(directory_.path()), 10 * kMiB) << "room was given away";
}

TEST_F(FileStore, GrowsAndGivesRoomBack) {
    const auto store = open_or_fail(options());
    EXPECT_LT(held_bytes(directory_.path()), kMiB);
    const uint64_t first = reserve_or_fail(*store, 8 * kMiB);
    const uint64_t second = reserve_or_fail(*store, 5 * kMiB + 1);
    EXPECT_EQ(second % (4 * kMiB), 0u);
    EXPECT_GE(held_bytes(directory_.path()), 13 * kMiB);
    store->release(first, 8 * kMiB);
    EXPECT_LT(held_bytes(directory_.path()), 6 * kMiB);
    EXPECT_EQ(reserve_or_fail(*store, 4 * kMiB), first) << "the hole was not reused";
    EXPECT_GE(held_bytes(directory_.path()), 9 * kMiB) << "the hole was not allocated again";
    store->release(first, 4 * kMiB);
    store->release(second, 5 * kMiB + 1);
    EXPECT_LT(held_bytes(directory_.path()), kMiB);
}

TEST_F(FileStore, AbsurdReservationsFail) {
    const auto store = open_or_fail(options());
    EXPECT_EQ(store->reserve(0).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(store->reserve(UINT64_MAX).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    const auto full = store->reserve(uint64_t{1} << 60);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().status, HANARE_STATUS_STORE_FULL);
    EXPECT_TRUE(contains(full.error().text, directory_.path()));
    EXPECT_TRUE(contains(full.error().text, "free")) << full.error().text;
    EXPECT_EQ(reserve_or_fail(*store, kMiB), 0u) << "the failed reservation was kept";
    FileStoreOptions wanted = options();
    wanted.size_bytes = UINT64_MAX;
    expect_refused(open_file_store(wanted), HANARE_STATUS_STORE_FULL,
                   {directory_.path(), "wanted"});
}

TEST_F(FileStore, FullDiskAtReserveKeepsNothing) {
    const auto store = open_or_fail(options());
    for (const int os_errno : {ENOSPC, EDQUOT, EFBIG}) {
        inject::arm(inject::Call::kFallocate, os_errno, 0, 1);
        const auto full = store->reserve(kMiB);
        ASSERT_FALSE(full);
        EXPECT_EQ(full.error().status, HANARE_STATUS_STORE_FULL);
    }
    inject::arm(inject::Call::kFallocate, EIO, 0, 1);
    EXPECT_EQ(store->reserve(kMiB).error().status, HANARE_STATUS_STORE_IO);
    EXPECT_EQ(reserve_or_fail(*store, kMiB), 0u);
}

TEST_F(FileStore, LimitOfTheProcessIsAnErrorAndNotASignal) {
    EXPECT_EQ(testing::run_in_child([&]() -> std::string {
                  const rlimit limit = {8 * kMiB, RLIM_INFINITY};
                  setrlimit(RLIMIT_FSIZE, &limit);
                  const auto store = open_file_store(options());
                  if (!store) return store.error().text;
                  const auto full = (*store)->reserve(9 * kMiB);
                  if (full) return "reserved";
                  return contains(full.error().text, "ulimit -f") ? "" : full.error().text;
              }),
              "");
}

TEST_F(FileStore, WorksWhereNothingCanBePreallocated) {
    inject::arm(inject::Call::kFallocate, EOPNOTSUPP);
    EXPECT_EQ(round_trip(options()), "");
    FileStoreOptions wanted = options();
    wanted.size_bytes = 8 * kMiB;
    EXPECT_EQ(round_trip(wanted), "");
    const auto store = open_or_fail(options());
    const uint64_t first = reserve_or_fail(*store, kMiB);
    const uint64_t second = reserve_or_fail(*store, kMiB);
    const Buffer back(kMiB);
    EXPECT_EQ(store->read(first, back.data(), kMiB), HANARE_STATUS_OK);
    EXPECT_EQ(store->read(second, back.data(), kMiB), HANARE_STATUS_OK);
    EXPECT_EQ(store->reserve(uint64_t{1} << 60).error().status, HANARE_STATUS_STORE_FULL);
}

TEST_F(FileStore, ErrorsOfTransfersBecomeStatuses) {
    const auto store = open_or_fail(options());
    const uint64_t offset = reserve_or_fail(*store, kMiB);
    const Buffer data(kOsPageBytes, prng_);
    errno = E2BIG;
    for (const int os_errno : {ENOSPC, EDQUOT}) {
        inject::arm(inject::Call::kWrite, os_errno, 0, 1);
        EXPECT_EQ(store->write(offset, data.data(), data.bytes()), HANARE_STATUS_STORE_FULL);
        EXPECT_EQ(store->last_errno(), os_errno);
    }
    inject::arm(inject::Call::kRead, EIO, 0, 1);
    EXPECT_EQ(store->read(offset, data.data(), data.bytes()), HANARE_STATUS_STORE_IO);
    EXPECT_EQ(store->last_errno(), EIO);
    EXPECT_EQ(store->write(offset, data.data(), data.bytes()), HANARE_STATUS_OK);
    EXPECT_EQ(errno, E2BIG);
}

TEST_F(FileStore, DescribesWhatItGot) {
    const auto text = [](const FileStoreOptions& wanted) {
        return open_or_fail(wanted)->describe();
    };
    EXPECT_TRUE(contains(text(options()), "file in " + directory_.path()));
    inject::arm(inject::Call::kUringSetup, EPERM);
    EXPECT_TRUE(
        contains(text(options()), "pread and pwrite (io_uring refused: Operation not permitted)"));
    inject::arm(inject::Call::kOpen, EINVAL, 1, 1);
    EXPECT_TRUE(
        contains(text(options()), "through the page cache (O_DIRECT refused: Invalid argument)"));
    inject::disarm_all();
    FileStoreOptions plain = options();
    plain.use_direct = false;
    plain.use_uring = false;
    EXPECT_TRUE(text(plain).ends_with(", through the page cache, pread and pwrite")) << text(plain);
}

TEST_F(FileStore, UringThatIsNeededDoesNotFallBack) {
    FileStoreOptions wanted = options();
    wanted.need_uring = true;
    const bool works = sys::Uring::probe() == 0;
    for (const uint64_t skip : {uint64_t{0}, uint64_t{1}}) {
        if (skip == 1 && !works) GTEST_SKIP() << "io_uring is refused here";
        inject::arm(inject::Call::kUringSetup, EPERM, skip);
        auto opened = open_file_store(wanted);
        const Error error = opened ? (*opened)->open_channel().error() : opened.error();
        EXPECT_EQ(opened.has_value(), skip == 1);
        EXPECT_EQ(error.status, HANARE_STATUS_NOT_SUPPORTED);
        EXPECT_TRUE(contains(error.text, "io = uring was asked for")) << error.text;
    }
}

TEST_F(FileStore, ManyThreadsReserveWriteAndRelease) {
    const auto store = open_or_fail(options());
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (uint64_t id = 0; id < 4; ++id) {
        threads.emplace_back([&, seed = prng_.next()] {
            Prng prng(seed);
            const Buffer back(256 * kKiB);
            for (int round = 0; round < 25; ++round) {
                const Buffer data(256 * kKiB, prng);
                const auto offset = store->reserve(data.bytes());
                const bool good =
                    offset &&
                    store->write(*offset, data.data(), data.bytes()) == HANARE_STATUS_OK &&
                    store->read(*offset, back.data(), back.bytes()) == HANARE_STATUS_OK &&
                    data == back;
                if (!good) ++wrong;
                if (offset) store->release(*offset, data.bytes());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_LT(held_bytes(directory_.path()), kMiB);
}

// A real disk that is full: a small tmpfs that only a child sees.
class FullDisk : public StoreTest {
protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs takes root";
        if (!testing::private_mounts_work()) GTEST_SKIP() << "mounts are refused here";
    }

    std::string on_small_disk(const std::function<std::string()>& check) {
        return testing::run_in_child([&]() -> std::string {
            if (!testing::enter_private_mounts() ||
                mount("none", directory_.path().c_str(), "tmpfs", 0, "size=16m") != 0) {
                return "cannot mount";
            }
            return check();
        });
    }

    // Leaves no byte free.
    std::string fill_disk() {
        const std::string path = directory_.path() + "/filler";
        const sys::FileDescriptor filler(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        const Buffer page(kOsPageBytes, prng_);
        for (uint64_t at = 0; at < 64 * kMiB; at += kOsPageBytes) {
            const int error = sys::write_at(filler.number(), at, page.data(), page.bytes());
            if (error == ENOSPC) return "";
            if (error != 0) return std::strerror(error);
        }
        return "the disk does not get full";
    }
};

TEST_F(FullDisk, IsFoundAtOpen) {
    EXPECT_EQ(on_small_disk([&]() -> std::string {
                  FileStoreOptions wanted = options();
                  wanted.size_bytes = 64 * kMiB;
                  const auto store = open_file_store(wanted);
                  if (store) return "opened";
                  const std::string text = store.error().text;
                  return store.error().status == HANARE_STATUS_STORE_FULL &&
                                 contains(text, "64 MiB wanted, 16 MiB free") &&
                                 contains(text, directory_.path())
                             ? ""
                             : text;
              }),
              "");
}

TEST_F(FullDisk, IsFoundAtReserveAndRoomCanBeUsedAfterwards) {
    EXPECT_EQ(on_small_disk([&]() -> std::string {
                  const auto store = open_file_store(options());
                  if (!store) return store.error().text;
                  if (!(*store)->reserve(10 * kMiB)) return "the first does not fit";
                  const auto full = (*store)->reserve(8 * kMiB);
                  if (full) return "the second fits";
                  if (full.error().status != HANARE_STATUS_STORE_FULL) return full.error().text;
                  (*store)->release(0, 10 * kMiB);
                  return (*store)->reserve(16 * kMiB) ? "" : "released room cannot be reserved";
              }),
              "");
}

TEST_F(FullDisk, IsFoundByTransfersWhereNothingWasAllocated) {
    EXPECT_EQ(on_small_disk([&]() -> std::string {
                  inject::arm(inject::Call::kFallocate, EOPNOTSUPP);
                  for (const bool use_uring : {true, false}) {
                      FileStoreOptions wanted = options();
                      wanted.use_uring = use_uring;
                      const auto store = open_file_store(wanted);
                      if (!store) return store.error().text;
                      const auto offset = (*store)->reserve(8 * kMiB);
                      if (!offset) return offset.error().text;
                      if (const std::string text = fill_disk(); !text.empty()) return text;
                      const Buffer data(256 * kKiB, prng_);
                      if ((*store)->write(*offset, data.data(), data.bytes()) !=
                              HANARE_STATUS_STORE_FULL ||
                          (*store)->last_errno() != ENOSPC) {
                          return "a synchronous write did not notice";
                      }
                      const auto channel = (*store)->open_channel();
                      IoRequest request;
                      request.kind = IoKind::kWrite;
                      request.offset = *offset;
                      request.memory = data.data();
                      request.bytes = data.bytes();
                      if (!channel || !(*channel)->submit(request)) return "no channel";
                      (*channel)->wait(-1);
                      if ((*channel)->next_completed() != &request ||
                          request.status != HANARE_STATUS_STORE_FULL) {
                          return "an asynchronous write did not notice";
                      }
                      unlink((directory_.path() + "/filler").c_str());
                  }
                  return "";
              }),
              "");
}

TEST_F(FullDisk, ReadOnlyFileSystemIsRefused) {
    EXPECT_EQ(on_small_disk([&]() -> std::string {
                  if (mount("none", directory_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY,
                            nullptr) != 0) {
                      return "cannot remount";
                  }
                  const auto store = open_file_store(options());
                  if (store) return "opened";
                  return contains(store.error().text, "read-only file system") ? ""
                                                                               : store.error().text;
              }),
              "");
}

}  // namespace
}  // namespace hanare::store
