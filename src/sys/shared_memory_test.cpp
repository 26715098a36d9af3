// SPDX-License-Identifier: Apache-2.0
#include "sys/shared_memory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/units.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {

namespace {

constexpr size_t kBytes = 8 * kOsPageBytes;

TEST(SharedMemory, AllMappingsAreTheSameMemory) {
    const auto file = create_shared_memory(kBytes);
    ASSERT_TRUE(file) << file.error().text;
    const auto range = Mapping::reserve(kBytes, kOsPageBytes);
    ASSERT_TRUE(range && map_shared(*range, *file));
    range->address()[5] = std::byte{7};
    const auto view = map_read_only(file->number(), kBytes);
    ASSERT_TRUE(view) << view.error().text;
    EXPECT_EQ(view->address()[5], std::byte{7});
    range->address()[5] = std::byte{8};
    EXPECT_EQ(view->address()[5], std::byte{8});
    std::vector<std::byte> copy(kBytes);
    ASSERT_EQ(copy_from_file(file->number(), 0, copy.data(), kBytes), 0);
    EXPECT_EQ(copy[5], std::byte{8});
    // A hole that comes later is one for everybody.
    ASSERT_EQ(advise(range->address(), kOsPageBytes, MADV_REMOVE), 0);
    EXPECT_EQ(view->address()[5], std::byte{0});
    EXPECT_EQ(copy_from_file(file->number(), kBytes, copy.data(), 1), EIO);
}

TEST(SharedMemory, WhoHasTheReadersDescriptorCannotWrite) {
    const auto file = create_shared_memory(kBytes);
    ASSERT_TRUE(file) << file.error().text;
    const auto reader = reopen_read_only(*file);
    ASSERT_TRUE(reader) << reader.error().text;
    const int number = reader->number();
    EXPECT_EQ(mmap(nullptr, kBytes, PROT_WRITE, MAP_SHARED, number, 0), MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(pwrite(number, "x", 1, 0), -1);
    EXPECT_EQ(fallocate(number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kOsPageBytes), -1);
    // Nor can the owner change the length under those who have mapped it.
    EXPECT_EQ(ftruncate(file->number(), 0), -1);
    EXPECT_EQ(shared_memory_bytes(number).value_or(0), kBytes);
}

TEST(SharedMemory, OtherFilesAreNotTaken) {
    for (const int number : {-1, STDERR_FILENO}) {
        const auto bytes = shared_memory_bytes(number);
        ASSERT_FALSE(bytes);
        EXPECT_EQ(bytes.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    }
}

TEST(SharedMemory, TheLimitOfFilesIsNamed) {
    const std::string failure = testing::run_in_child([]() -> std::string {
        const rlimit limit = {kOsPageBytes, kOsPageBytes};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
        const auto file = create_shared_memory(kBytes);
        if (file) return "created";
        const std::string text = file.error().text;
        return text.find("ulimit -f") == std::string::npos ? text : "";
    });
    EXPECT_EQ(failure, "");
}

}  // namespace

}  // namespace hanare::sys
