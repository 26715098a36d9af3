// SPDX-License-Identifier: Apache-2.0
#include "sys/uffd.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

namespace {

constexpr size_t kPages = 64;
constexpr size_t kBytes = kPages * kOsPageBytes;

// Two ranges, the first of them full.
class UserfaultMove : public testing::Test {
protected:
    void SetUp() override {
        const Userfault::Support support = Userfault::probe();
        if (!support.move) GTEST_SKIP() << "userfaultfd without UFFDIO_MOVE";
        auto userfault = Userfault::open({.move = true});
        ASSERT_TRUE(userfault) << userfault.error().text;
        userfault_ = std::move(*userfault);
        std::vector<std::byte> content(kBytes);
        for (size_t i = 0; i < kBytes; ++i) content[i] = content_at(i);
        for (Mapping* range : {&here_, &there_}) {
            auto mapping = Mapping::reserve(kBytes, kHugePageBytes);
            ASSERT_TRUE(mapping) << mapping.error().text;
            *range = std::move(*mapping);
            ASSERT_EQ(userfault_.register_range(range->address(), kBytes), 0);
        }
        size_t copied = 0;
        ASSERT_EQ(userfault_.copy(here_.address(), content.data(), kBytes, false, &copied), 0);
    }

    static std::byte content_at(size_t i) { return static_cast<std::byte>(i / kOsPageBytes + i); }
    static bool is_whole(const std::byte* range) {
        for (size_t i = 0; i < kBytes; ++i) {
            if (range[i] != content_at(i)) return false;
        }
        return true;
    }

    Userfault userfault_;
    Mapping here_;
    Mapping there_;
};

// The kernel has to try again then, and some kernels get into a muddle over that (uffd.cpp).
TEST_F(UserfaultMove, IsCompleteAlsoWhenPagesChangeMeanwhile) {
    std::atomic<bool> done{false};
    std::thread protector([&] {
        for (bool on = true; !done.load(std::memory_order_relaxed); on = !on) {
            for (const Mapping* range : {&here_, &there_}) {
                userfault_.write_protect(range->address(), kBytes, on);
            }
        }
    });
    std::byte* full = here_.address();
    std::byte* empty = there_.address();
    int error = 0;
    size_t moved = kBytes;
    for (int round = 0; round < 20'000 && error == 0 && moved == kBytes; ++round) {
        error = userfault_.move(empty, full, kBytes, &moved);
        std::swap(full, empty);
    }
    done.store(true, std::memory_order_relaxed);
    protector.join();
    ASSERT_EQ(error, 0) << strerror(error);
    ASSERT_EQ(moved, kBytes);
    ASSERT_EQ(userfault_.write_protect(full, kBytes, false), 0);
    EXPECT_TRUE(is_whole(full));
}

}  // namespace

}  // namespace hanare::sys
