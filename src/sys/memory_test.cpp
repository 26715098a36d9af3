// SPDX-License-Identifier: Apache-2.0
#include "sys/memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/inject.hpp"
#include "sys/mappings.hpp"

namespace hanare::sys {
namespace {

int open_zeros() {
    static const int descriptor = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    return descriptor;
}

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

TEST(Mapping, SharedMemoryIsTheSameInAChild) {
    auto mapping = Mapping::reserve_shared(2 * kOsPageBytes);
    ASSERT_TRUE(mapping) << mapping.error().text;
    std::byte& last = mapping->address()[2 * kOsPageBytes - 1];
    EXPECT_EQ(last, std::byte{0});
    const pid_t child = fork();
    if (child == 0) {
        last = std::byte{7};
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(last, std::byte{7});
    const auto absurd = Mapping::reserve_shared(size_t{1} << 60);
    ASSERT_FALSE(absurd);
    EXPECT_EQ(absurd.error().status, HANARE_STATUS_NO_MEMORY);
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

// In whichever of them the error is, the others' pages go.
TEST(Advise, DropsPagesOfManyRangesButOne) {
    constexpr size_t kRanges = 3;
    auto mapping = Mapping::reserve(kMiB, kOsPageBytes);
    ASSERT_TRUE(mapping);
    std::byte* const memory = mapping->address();
    for (size_t bad = 0; bad < kRanges; ++bad) {
        std::memset(memory, 1, 2 * kRanges * kOsPageBytes);
        std::array<MemoryRange, kRanges> ranges;
        for (size_t i = 0; i < kRanges; ++i) {
            ranges[i] = {memory + 2 * i * kOsPageBytes + (i == bad ? 1 : 0), kOsPageBytes};
        }
        EXPECT_EQ(advise_each(ranges.data(), kRanges, MADV_DONTNEED), EINVAL) << bad;
        for (size_t i = 0; i < kRanges; ++i) {
            EXPECT_EQ(memory[2 * i * kOsPageBytes] == std::byte{0}, i != bad) << bad << " " << i;
        }
    }
}

// The kernel takes many ranges at once, refuses that, or gives up on the way.
TEST(Advise, DropsPagesOfManyRanges) {
    constexpr size_t kRanges = 3;
    auto mapping = Mapping::reserve(kMiB, kOsPageBytes);
    ASSERT_TRUE(mapping);
    std::byte* const memory = mapping->address();
    std::array<MemoryRange, kRanges> ranges;
    for (size_t i = 0; i < kRanges; ++i) {
        ranges[i] = {memory + 4 * i * kOsPageBytes, (i + 1) * kOsPageBytes};
    }
    for (const int refusal : {0, EINTR, ENOMEM, 0, EBADF, 0}) {
        std::memset(memory, 1, 16 * kOsPageBytes);
        if (refusal != 0) inject::arm(inject::Call::kSeveral, refusal, 0, 1);
        errno = E2BIG;
        EXPECT_EQ(advise_each(ranges.data(), kRanges, MADV_DONTNEED), 0) << refusal;
        EXPECT_EQ(errno, E2BIG);
        for (size_t page = 0; page < 16; ++page) {
            const bool is_inside = page % 4 <= page / 4 && page / 4 < kRanges;
            EXPECT_EQ(memory[page * kOsPageBytes] == std::byte{0}, is_inside) << page;
        }
        inject::disarm_all();
    }
    EXPECT_EQ(advise_each(ranges.data(), 0, MADV_DONTNEED), 0);
}

// A signal that a read of the byte raises, or 0.
int signal_of_read(const std::byte* address) {
    const pid_t child = fork();
    if (child == 0) {
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        for (const int number : {SIGSEGV, SIGBUS}) std::signal(number, SIG_DFL);
        static_cast<void>(*const_cast<const volatile std::byte*>(address));
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(MoveMapping, TakesPagesAndProtectionAlongAndLeavesNothingBehind) {
    const auto source = Mapping::reserve(4 * kOsPageBytes, kOsPageBytes);
    const auto target = Mapping::reserve(4 * kOsPageBytes, kOsPageBytes);
    ASSERT_TRUE(source && target);
    source->address()[kOsPageBytes] = std::byte{7};
    target->address()[0] = std::byte{9};
    ASSERT_EQ(protect(source->address(), source->bytes(), PROT_READ), 0);
    errno = E2BIG;
    ASSERT_EQ(move_mapping(target->address(), source->address(), source->bytes(), PROT_NONE), 0);
    EXPECT_EQ(errno, E2BIG);
    EXPECT_EQ(target->address()[kOsPageBytes], std::byte{7});
    EXPECT_EQ(target->address()[0], std::byte{0});
    EXPECT_EQ(source->address()[kOsPageBytes], std::byte{0});
    EXPECT_EQ(read(open_zeros(), target->address(), 1), -1) << "it can be written to";
    EXPECT_EQ(errno, EFAULT);
}

TEST(MoveMapping, LeavesNoHoleWhenItFails) {
    const auto source = Mapping::reserve(kOsPageBytes, kOsPageBytes);
    const auto target = Mapping::reserve(kOsPageBytes, kOsPageBytes);
    ASSERT_TRUE(source && target);
    source->address()[0] = std::byte{7};
    target->address()[0] = std::byte{9};
    inject::arm(inject::Call::kRemap, ENOMEM, 0, 2);
    const auto move = [&] {
        return move_mapping(target->address(), source->address(), kOsPageBytes, PROT_READ);
    };
    EXPECT_EQ(move(), ENOMEM);
    EXPECT_EQ(target->address()[0], std::byte{9}) << "what was there is still there";
    ASSERT_EQ(munmap(target->address(), kOsPageBytes), 0);
    EXPECT_EQ(move(), ENOMEM);
    EXPECT_EQ(target->address()[0], std::byte{0});
    inject::disarm_all();
    EXPECT_EQ(move(), 0);
    EXPECT_EQ(target->address()[0], std::byte{7});
}

// Others come and go: allocators map as well.
size_t mappings_begun_in(const Mapping& mapping) {
    const auto starts = mapping_starts();
    if (!starts) return SIZE_MAX;
    const auto begin = reinterpret_cast<uintptr_t>(mapping.address());
    const auto end = begin + mapping.bytes();
    const auto is_inside = [=](uintptr_t start) { return begin <= start && start < end; };
    return static_cast<size_t>(std::ranges::count_if(*starts, is_inside));
}

TEST(MakeInaccessible, EveryAccessFaultsAndNeighboursBecomeOne) {
    const auto mapping = Mapping::reserve(16 * kOsPageBytes, kOsPageBytes);
    ASSERT_TRUE(mapping);
    std::byte* const pages = mapping->address();
    pages[0] = std::byte{1};
    ASSERT_EQ(make_inaccessible(pages, mapping->bytes()), 0);
    EXPECT_EQ(signal_of_read(pages), SIGSEGV);
    ASSERT_EQ(protect(pages + 4 * kOsPageBytes, kOsPageBytes, PROT_READ | PROT_WRITE), 0);
    const size_t before = mappings_begun_in(*mapping);
    ASSERT_EQ(make_inaccessible(pages + 4 * kOsPageBytes, kOsPageBytes), 0);
    EXPECT_EQ(mappings_begun_in(*mapping), before - 2);
}

TEST(Mappings, AreCounted) {
    const auto mapping = Mapping::reserve(8 * kOsPageBytes, kOsPageBytes);
    ASSERT_TRUE(mapping);
    const size_t before = mappings_begun_in(*mapping);
    ASSERT_EQ(protect(mapping->address() + kOsPageBytes, kOsPageBytes, PROT_NONE), 0);
    const auto after = mapping_starts();
    ASSERT_TRUE(after);
    EXPECT_TRUE(std::ranges::is_sorted(*after));
    EXPECT_EQ(mappings_begun_in(*mapping), before + 2);
    EXPECT_TRUE(std::ranges::binary_search(
        *after, reinterpret_cast<uintptr_t>(mapping->address() + kOsPageBytes)));
    EXPECT_GE(mapping_count_max(), after->size());
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
