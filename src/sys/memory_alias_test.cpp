// SPDX-License-Identifier: Apache-2.0
#include "sys/memory_alias.hpp"

#include <cerrno>

#include <gtest/gtest.h>

#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::sys {
namespace {

constexpr size_t kBytes = 64 * 1024;

struct Shared {
    FileDescriptor file = create_shared_memory(kBytes).value();
    Mapping memory = Mapping::reserve(kBytes, 4096).value();
    Shared() { EXPECT_TRUE(map_shared(memory, file)); }
};

TEST(MemoryAlias, TheSamePagesAtTwoAddresses) {
    const Mapping target = Mapping::reserve(kBytes, 4096).value();
    target.address()[0] = std::byte{9};
    {
        const Shared first;
        first.memory.address()[kBytes - 1] = std::byte{1};
        ASSERT_EQ(alias_shared_memory(target.address(), first.memory.address(), kBytes), 0);
        EXPECT_EQ(target.address()[0], std::byte{0});
        EXPECT_EQ(target.address()[kBytes - 1], std::byte{1});
        target.address()[0] = std::byte{2};
        EXPECT_EQ(first.memory.address()[0], std::byte{2});
    }
    // It does not need the other mapping, and is replaced by the next one.
    EXPECT_EQ(target.address()[0], std::byte{2});
    const Shared second;
    ASSERT_EQ(alias_shared_memory(target.address(), second.memory.address(), kBytes), 0);
    EXPECT_EQ(target.address()[0], std::byte{0});
}

TEST(MemoryAlias, PrivateMemoryHasNone) {
    const Mapping target = Mapping::reserve(kBytes, 4096).value();
    const Mapping own = Mapping::reserve(kBytes, 4096).value();
    own.address()[0] = std::byte{1};
    EXPECT_EQ(alias_shared_memory(target.address(), own.address(), kBytes), EINVAL);
    EXPECT_EQ(own.address()[0], std::byte{1});
}

}  // namespace
}  // namespace hanare::sys
