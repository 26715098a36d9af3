// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/threaded.hpp"

#include <gtest/gtest.h>

#include "base/units.hpp"
#include "pager/engines.hpp"
#include "sys/memory.hpp"

namespace hanare::pager {
namespace {

constexpr size_t kBytes = 64 * kKiB;

// The pages before the refused one are mapped, writable if the engine moves pages, until the first
// try has failed.
TEST(ThreadedTest, ABlockThatWasMappedForAMomentIsTakenToBeWritten) {
    auto engine = open_engine(EngineChoice::kThread);
    if (!engine) GTEST_SKIP() << engine.error().text;
    auto range = sys::Mapping::reserve(kBytes, kBytes);
    auto slot = sys::Mapping::reserve(kBytes, kBytes);
    ASSERT_TRUE(range && slot);
    std::byte* const block = range->address();
    ASSERT_EQ((*engine)->attach(block, kBytes), 0);
    ASSERT_EQ((*engine)->attach_arena(slot->address(), kBytes), 0);
    ASSERT_EQ((*engine)->populate(slot->address(), kBytes), 0);
    for (size_t i = 0; i < kBytes; ++i) slot->address()[i] = static_cast<std::byte>(i % 251);
    ASSERT_EQ((*engine)->refuse(block + kBytes / 2, kOsPageBytes, true), 0);
    bool written = false;
    ASSERT_EQ((*engine)->install_read_only(block, slot->address(), kBytes, &written), 0);
    ASSERT_TRUE(written);  // else the writes below would wait for ever
    for (size_t i = 0; i < kBytes; ++i) {
        ASSERT_EQ(block[i], static_cast<std::byte>(i % 251)) << i;
        block[i] = std::byte{1};  // no fault, which nobody would serve
    }
}

}  // namespace
}  // namespace hanare::pager
