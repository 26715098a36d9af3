// SPDX-License-Identifier: Apache-2.0
#include "sys/unique_numbers.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <span>
#include <thread>
#include <vector>

#include "base/sanitizers.hpp"
#include "base/units.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

// The numbers that some processes have taken, in memory that they share.
class Record {
public:
    void note(uint64_t first, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            const uint64_t at = used().fetch_add(1);
            if (at < kMost) numbers()[at] = first + i;
        }
    }
    std::vector<uint64_t> sorted() {
        std::vector<uint64_t> all(numbers(), numbers() + std::min(used().load(), kMost));
        std::ranges::sort(all);
        return all;
    }

private:
    static constexpr uint64_t kMost = 400'000;
    std::atomic<uint64_t>& used() {
        return *reinterpret_cast<std::atomic<uint64_t>*>(memory_.address());
    }
    uint64_t* numbers() { return reinterpret_cast<uint64_t*>(memory_.address() + kOsPageBytes); }

    Mapping memory_ =
        Mapping::reserve_shared(kOsPageBytes + round_up(kMost * sizeof(uint64_t), kOsPageBytes))
            .value();
};

void wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
}

void expect_all_different(Record& record, size_t count) {
    const std::vector<uint64_t> all = record.sorted();
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
    EXPECT_FALSE(std::ranges::binary_search(all, 0u));
}

TEST(UniqueNumbers, AreInARow) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    const uint64_t first = numbers.take(10);
    EXPECT_NE(first, 0u);
    EXPECT_EQ(numbers.take(1), first + 10);
    EXPECT_EQ(numbers.take(5), first + 11);
}

TEST(UniqueNumbers, RangesDoNotTouch) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    constexpr uint64_t kMost = UniqueNumbers::kTakenMax;
    const uint64_t first = numbers.take(kMost);
    const uint64_t second = numbers.take(kMost - 1);
    EXPECT_GE(second, first + kMost);
    // The one that is left of the range, and then none.
    EXPECT_EQ(numbers.take(1), second + kMost - 1);
    const uint64_t third = numbers.take(1);
    EXPECT_GE(third, second + kMost);
    EXPECT_EQ(third % UniqueNumbers::kRangeNumbers, 0u);
}

TEST(UniqueNumbers, AtTheEndThereAreNoneAndNoWayBack) {
    UniqueNumbers numbers = UniqueNumbers::make(UniqueNumbers::kRanges - 2).value();
    constexpr uint64_t kMost = UniqueNumbers::kTakenMax;
    const uint64_t first = numbers.take(kMost);
    const uint64_t last = numbers.take(kMost - 1);
    EXPECT_GT(last, first);
    EXPECT_EQ(numbers.take(2), 0u);
    EXPECT_EQ(numbers.take(1), last + kMost - 1) << "which is left";
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(numbers.take(1), 0u);
    EXPECT_EQ(testing::run_in_child([&]() -> std::string {
                  return numbers.take(1) == 0 ? "" : "a child has found some";
              }),
              "");
}

// Each process takes some before, between and after the forks, as they come.
void live(UniqueNumbers& numbers, Record& record, int depth) {
    const auto take = [&] {
        for (uint64_t count = 1; count <= 20; ++count) record.note(numbers.take(count), count);
    };
    take();
    if (depth == 0) return;
    std::array<pid_t, 3> children = {};
    for (pid_t& child : children) {
        child = fork();
        if (child == 0) {
            live(numbers, record, depth - 1);
            _exit(0);
        }
        take();
    }
    for (const pid_t child : children) wait_for(child);
    take();
}

TEST(UniqueNumbers, OfAFamilyAreAllDifferent) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    live(numbers, record, 4);
    // 81 leaves that take once, and 40 others that take five times, 210 numbers each.
    expect_all_different(record, (81 + 40 * 5) * 210);
}

TEST(UniqueNumbers, AChildThatHasTakenNoneBeforeTheForkGoesOnAsWell) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    for (int i = 0; i < 2; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            record.note(numbers.take(100), 100);
            _exit(0);
        }
        wait_for(child);
    }
    record.note(numbers.take(100), 100);
    expect_all_different(record, 300);
}

// By the bare system call, behind libc's back.
TEST(UniqueNumbers, HoweverItWasForked) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    record.note(numbers.take(100), 100);
    const auto child =
        static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
    ASSERT_GE(child, 0);
    record.note(numbers.take(100), 100);
    if (child == 0) _exit(0);
    wait_for(child);
    expect_all_different(record, 300);
}

int take_in_our_memory(void* context) {
    auto& [numbers, record] = *static_cast<std::pair<UniqueNumbers*, Record*>*>(context);
    record->note(numbers->take(100), 100);
    return 0;
}

TEST(UniqueNumbers, AChildInTheSameMemoryTakesOthers) {
#if defined(HANARE_TSAN)
    GTEST_SKIP() << "ThreadSanitizer takes the child for a copy of the process";
#endif
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    record.note(numbers.take(100), 100);
    std::pair<UniqueNumbers*, Record*> context(&numbers, &record);
    alignas(16) static std::array<std::byte, 64 * kKiB> stack;
    const pid_t child = clone(take_in_our_memory, stack.data() + stack.size(),
                              CLONE_VM | CLONE_VFORK | SIGCHLD, &context);
    ASSERT_GE(child, 0);
    record.note(numbers.take(100), 100);
    wait_for(child);
    expect_all_different(record, 300);
}

TEST(UniqueNumbers, OfThreadsThatForkAreAllDifferent) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    constexpr int kThreads = 4;
    constexpr int kForks = 20;
    constexpr uint64_t kEach = 500;
    const auto take = [&] {
        for (uint64_t i = 0; i < kEach; ++i) record.note(numbers.take(1), 1);
    };
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < kForks; ++i) {
                    take();
                    const pid_t child = fork();
                    if (child == 0) {
                        take();
                        _exit(0);
                    }
                    wait_for(child);
                }
            });
        }
    }
    expect_all_different(record, 2 * kThreads * kForks * kEach);
}

// Threads that use up ranges together.
TEST(UniqueNumbers, OfThreadsAcrossRangesDoNotOverlap) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    constexpr uint64_t kCount = UniqueNumbers::kRangeNumbers / 5;
    std::array<std::vector<uint64_t>, 4> taken;
    {
        std::vector<std::jthread> threads;
        for (auto& own : taken) {
            threads.emplace_back([&] {
                for (int i = 0; i < 1000; ++i) own.push_back(numbers.take(kCount));
            });
        }
    }
    std::vector<uint64_t> all;
    for (const auto& own : taken) all.insert(all.end(), own.begin(), own.end());
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), 4000u);
    for (size_t i = 1; i < all.size(); ++i) {
        ASSERT_GE(all[i] - all[i - 1], kCount);
        ASSERT_EQ((all[i] + kCount - 1) / UniqueNumbers::kRangeNumbers,
                  all[i] / UniqueNumbers::kRangeNumbers);
    }
}

TEST(UniqueNumbers, OfWhoIsKilledAreNotTakenAgain) {
    UniqueNumbers numbers = UniqueNumbers::make().value();
    Record record;
    for (int i = 0; i < 30; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            record.note(numbers.take(10), 10);
            kill(getpid(), SIGKILL);
        }
        wait_for(child);
    }
    record.note(numbers.take(10), 10);
    expect_all_different(record, 310);
}

}  // namespace
}  // namespace hanare::sys
