// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/leftovers.hpp"

#include <cstring>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {
namespace {

constexpr size_t kPages = 64;

class LeftoversTest : public testing::Test {
protected:
    void SetUp() override {
        auto memory = sys::Mapping::reserve(kPages * kOsPageBytes, kOsPageBytes);
        ASSERT_TRUE(memory);
        memory_ = std::move(*memory);
        std::memset(memory_.address(), 1, memory_.bytes());
    }

    std::byte* page(size_t index) const { return memory_.address() + index * kOsPageBytes; }
    bool is_left(size_t index) const { return *page(index) != std::byte{0}; }

    sys::Mapping memory_;
    Leftovers leftovers_;
};

TEST_F(LeftoversTest, GoTogether) {
    const uint64_t first = leftovers_.add(page(0), kOsPageBytes);
    EXPECT_NE(first, 0u);
    EXPECT_TRUE(is_left(0));
    size_t added = 1;
    for (; is_left(0) && added < kPages; ++added) {
        EXPECT_EQ(leftovers_.add(page(added), kOsPageBytes), first);
    }
    EXPECT_GT(added, 1u);
    EXPECT_LT(added, kPages);
    for (size_t i = 0; i < kPages; ++i) EXPECT_EQ(is_left(i), i >= added) << i;
    EXPECT_NE(leftovers_.add(page(added), kOsPageBytes), first);
}

TEST_F(LeftoversTest, GoByTheGeneration) {
    const uint64_t first = leftovers_.add(page(1), kOsPageBytes);
    leftovers_.drop(first);
    EXPECT_FALSE(is_left(1));
    const uint64_t second = leftovers_.add(page(3), 2 * kOsPageBytes);
    *page(1) = std::byte{1};  // given new content
    leftovers_.drop(first);
    EXPECT_TRUE(is_left(3));
    leftovers_.drop(second);
    EXPECT_FALSE(is_left(3));
    EXPECT_FALSE(is_left(4));
    for (const size_t other : {0u, 1u, 2u, 5u}) EXPECT_TRUE(is_left(other)) << other;
}

TEST_F(LeftoversTest, AreFewInBytes) {
    leftovers_.add(page(0), kPages * kOsPageBytes);
    for (size_t i = 0; i < kPages; ++i) EXPECT_FALSE(is_left(i)) << i;
}

TEST_F(LeftoversTest, AllGo) {
    leftovers_.drop_all();
    leftovers_.add(page(7), kOsPageBytes);
    leftovers_.drop_all();
    EXPECT_FALSE(is_left(7));
    EXPECT_TRUE(is_left(8));
}

}  // namespace
}  // namespace hanare::pager
