// SPDX-License-Identifier: Apache-2.0
#include "sys/memory.hpp"

#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/inject.hpp"

namespace hanare::sys {
namespace {

bool is_mapped(const std::byte* address) {
    unsigned char resident = 0;
    return mincore(const_cast<std::byte*>(address), kOsPageBytes, &resident) == 0;
}

TEST(Mapping, IsAlignedZeroAndWritable) {
    for (const uint64_t alignment : {kOsPageBytes, 64 * kKiB, 4 * kMiB}) {
        auto mapping = Mapping::reserve(3 * kOsPageBytes, alignment);
        ASSERT_TRUE(mapping) << mapping.error().text;
        EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->address()) % alignment, 0u);
        EXPECT_EQ(mapping->bytes(), 3 * kOsPageBytes);
        EXPECT_EQ(mapping->address()[3 * kOsPageBytes - 1], std::byte{0});
        mapping->address()[0] = std::byte{1};
        EXPECT_EQ(mapping->address()[0], std::byte{1});
    }
}

TEST(Mapping, MovesAndUnmapsOnce) {
    std::byte* address = nullptr;
    {
        auto first = Mapping::reserve(kMiB, kOsPageBytes);
        ASSERT_TRUE(first);
        address = first->address();
        Mapping second = std::move(*first);
        EXPECT_EQ(first->address(), nullptr);
        EXPECT_EQ(second.address(), address);
        EXPECT_TRUE(is_mapped(address));
    }
    EXPECT_FALSE(is_mapped(address));
    EXPECT_EQ(errno, ENOMEM);
}

TEST(Mapping, AbsurdSizesFailWithText) {
    for (const size_t bytes : {SIZE_MAX - kOsPageBytes + 1, size_t{1} << 60}) {
        const auto mapping = Mapping::reserve(bytes, 4 * kMiB);
        ASSERT_FALSE(mapping);
        EXPECT_EQ(mapping.error().status, HANARE_STATUS_NO_MEMORY);
        EXPECT_NE(std::string(mapping.error().text).find("address space"), std::string::npos);
    }
}

TEST(Mapping, InjectedFailure) {
    inject::arm(inject::Call::kMmap, EAGAIN, 0, 1);
    const auto refused = Mapping::reserve(kMiB, kOsPageBytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().os_errno, EAGAIN);
    EXPECT_TRUE(Mapping::reserve(kMiB, kOsPageBytes));
    inject::disarm_all();
}

TEST(Advise, DropsPagesAndReportsErrors) {
    auto mapping = Mapping::reserve(kMiB, kOsPageBytes);
    ASSERT_TRUE(mapping);
    mapping->address()[5] = std::byte{9};
    errno = E2BIG;
    EXPECT_EQ(mapping->advise(MADV_DONTNEED), 0);
    EXPECT_EQ(mapping->address()[5], std::byte{0});
    EXPECT_EQ(advise(mapping->address() + 1, kOsPageBytes, MADV_DONTNEED), EINVAL);
    EXPECT_EQ(errno, E2BIG);
}

TEST(PoisonDeathTest, AccessRaisesSigbus) {
    EXPECT_EXIT(
        {
            auto mapping = Mapping::reserve(kMiB, kOsPageBytes);
            std::signal(SIGBUS, [](int) { _exit(42); });
            mapping->address()[0] = std::byte{1};
            if (poison(mapping->address(), mapping->bytes()) != 0) _exit(1);
            static_cast<volatile std::byte*>(mapping->address())[0];
            _exit(2);
        },
        ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hanare::sys
