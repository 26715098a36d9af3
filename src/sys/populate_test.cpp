// SPDX-License-Identifier: Apache-2.0
#include "sys/populate.hpp"

#include <algorithm>
#include <cerrno>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

#include "base/units.hpp"
#include "sys/inject.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {
namespace {

constexpr size_t kPages = 64;

class PopulateTest : public testing::Test {
protected:
    ~PopulateTest() override { inject::disarm_all(); }

    // Pages that are there; MADV_NOHUGEPAGE, so that one does not bring others.
    ptrdiff_t present() const {
        std::vector<unsigned char> pages(kPages);
        EXPECT_EQ(mincore(memory.address(), memory.bytes(), pages.data()), 0);
        return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
    }

    const Mapping memory = Mapping::reserve(kPages * kOsPageBytes, kOsPageBytes).value();
};

TEST_F(PopulateTest, BringsPagesAndKeepsWhatIsThere) {
    memory.advise(MADV_NOHUGEPAGE);
    memory.address()[5] = std::byte{7};
    EXPECT_EQ(present(), 1);
    const int error = populate(memory.address(), memory.bytes() / 2);
    if (error == EINVAL) GTEST_SKIP() << "needs Linux 5.14 (MADV_POPULATE_WRITE)";
    ASSERT_EQ(error, 0);
    EXPECT_EQ(present(), static_cast<ptrdiff_t>(kPages / 2));
    EXPECT_EQ(memory.address()[5], std::byte{7});
    EXPECT_EQ(memory.address()[kOsPageBytes], std::byte{0});
}

TEST_F(PopulateTest, FailsWhereThereIsNoMapping) {
    ASSERT_EQ(make_inaccessible(memory.address(), kOsPageBytes), 0);
    EXPECT_NE(populate(memory.address(), memory.bytes()), 0);
    inject::arm(inject::Call::kPopulate, ENOMEM, 0, 1);
    EXPECT_EQ(populate(memory.address() + kOsPageBytes, kOsPageBytes), ENOMEM);
}

}  // namespace
}  // namespace hanare::sys
