// SPDX-License-Identifier: Apache-2.0
//
// Slots that several processes share, and what becomes of them when some end.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "base/prng.hpp"
#include "store/slot_table_test_support.hpp"
#include "sys/inject.hpp"

namespace hanare::store {
namespace {

constexpr uint32_t kNone = SlotTable::kNoSlot;
constexpr uint32_t kAny = SlotTable::kAnySlot;
constexpr uint32_t kRun = SlotTable::kRunSlots;
constexpr uint32_t kCapacity = 4096;

class SlotTableForkTest : public testing::Test {
protected:
    ~SlotTableForkTest() override { sys::inject::disarm_all(); }

    static void take(SlotTable& table, uint32_t count) {
        for (uint32_t i = 0; i < count; ++i) table.allocate(kAny);
    }
    // By taking all that are free.
    static uint32_t count_used(SlotTable& table) {
        uint32_t free = 0;
        while (table.allocate(kAny) != kNone) ++free;
        return table.usage().capacity - free;
    }

    TestTables tables_;
    SlotTable& table_ = tables_.make(kCapacity);
};

TEST_F(SlotTableForkTest, ParentAndChildHoldASlotUntilBothHaveDroppedIt) {
    const uint32_t first = table_.allocate(kAny);
    const uint32_t second = table_.allocate(first + 1);
    EXPECT_FALSE(table_.is_shared(first));
    Peer child(table_, [&](Line& line) {
        line.say(table_.is_shared(first) && table_.is_shared(second));
        line.hear();
        line.say(table_.drop(first));
        line.say(table_.is_shared(second));
        line.hear();
        const bool is_last = table_.drop(second);
        if (is_last) table_.release(second);
        line.say(is_last);
        line.stay();
    });
    EXPECT_EQ(child.line().answer(), 1u);
    EXPECT_TRUE(table_.is_shared(first));
    EXPECT_FALSE(table_.drop(second));
    EXPECT_NE(table_.allocate(second), second) << "the child still holds it";
    EXPECT_EQ(child.line().ask(0), 0u) << "dropped first, which the parent holds";
    EXPECT_EQ(child.line().answer(), 0u) << "the parent has dropped the second";
    EXPECT_FALSE(table_.is_shared(first));
    EXPECT_EQ(child.line().ask(0), 1u) << "the last that held the second";
    EXPECT_EQ(table_.allocate(second), second);
    EXPECT_TRUE(table_.drop(first));
}

TEST_F(SlotTableForkTest, WhoIsAloneIsToldSoUntilAChildBegins) {
    EXPECT_TRUE(table_.is_alone());
    const uint32_t slot = table_.allocate(kAny);
    EXPECT_TRUE(table_.is_held(slot));
    Peer child(table_, [&](Line& line) {
        line.say(table_.is_held(slot) && !table_.is_alone());
        EXPECT_FALSE(table_.drop(slot));
        line.say(table_.is_held(slot));
        line.stay();
    });
    EXPECT_FALSE(table_.is_alone());
    EXPECT_EQ(child.line().answer(), 1u);
    EXPECT_EQ(child.line().answer(), 0u);
    EXPECT_TRUE(table_.is_held(slot));
    EXPECT_FALSE(table_.is_held(slot + 1));
    child.kill();
    EXPECT_TRUE(table_.is_alone());
}

TEST_F(SlotTableForkTest, WhatIsTakenAfterTheForkIsOnesOwn) {
    Peer child(table_, [&](Line& line) {
        const uint32_t slot = table_.allocate(kAny);
        line.say(slot);
        line.hear();
        line.say(table_.is_shared(slot));
        line.stay();
    });
    const uint32_t slot = child.line().answer();
    ASSERT_NE(slot, Line::kEnded);
    EXPECT_NE(table_.allocate(slot), slot);
    EXPECT_EQ(child.line().ask(0), 0u);
}

TEST_F(SlotTableForkTest, KilledChildrenLeaveNothingBehind) {
    take(table_, 10);
    for (uint32_t round = 1; round <= 5; ++round) {
        Peer child(table_, [&](Line& line) {
            take(table_, 100);
            line.say(1);
            line.stay();
        });
        ASSERT_EQ(child.line().answer(), 1u);
        EXPECT_EQ(table_.sweep(), 0u) << "it is alive";
        EXPECT_EQ(table_.usage().used, 110u);
        child.kill();
        EXPECT_EQ(table_.sweep(), 100u);
        EXPECT_EQ(table_.usage().used, 10u);
        EXPECT_FALSE(table_.is_shared(0));
    }
    EXPECT_EQ(table_.sweep(), 0u);
    EXPECT_EQ(count_used(table_), 10u);
}

TEST_F(SlotTableForkTest, AChildIsDeadBeforeItsParentHasWaitedForIt) {
    Peer child(table_, [&](Line& line) {
        take(table_, 3);
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(child.line().answer(), 1u);
    ::kill(child.pid(), SIGKILL);
    siginfo_t info = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(table_.sweep(), 3u);
}

TEST_F(SlotTableForkTest, AChildThatExecsLosesWhatItHeldWhileItLives) {
    const uint32_t shared = table_.allocate(kAny);
    Peer child(table_, [&](Line& line) {
        take(table_, 7);
        line.say(1);
        line.hear();
        dup2(line.child_in(), STDIN_FILENO);
        dup2(line.child_out(), STDOUT_FILENO);
        execlp("cat", "cat", nullptr);
    });
    ASSERT_EQ(child.line().answer(), 1u);
    EXPECT_EQ(table_.sweep(), 0u);
    child.line().tell(0);
    ASSERT_EQ(child.line().ask(77), 77u) << "this is cat's answer";
    EXPECT_TRUE(table_.is_shared(shared));
    EXPECT_EQ(table_.sweep(), 7u);
    EXPECT_FALSE(table_.is_shared(shared));
    EXPECT_EQ(child.line().ask(78), 78u) << "it still lives";
}

// Programs do that when they become servers.
TEST_F(SlotTableForkTest, AChildThatClosesAllDescriptorsKeepsWhatItHolds) {
    Peer child(table_, [&](Line& line) {
        take(table_, 7);
        dup2(line.child_in(), STDIN_FILENO);
        dup2(line.child_out(), STDOUT_FILENO);
        closefrom(STDERR_FILENO + 1);
        const uint32_t done = 1;
        if (write(STDOUT_FILENO, &done, sizeof done) != sizeof done) _exit(1);
        uint32_t unused = 0;
        while (read(STDIN_FILENO, &unused, sizeof unused) > 0) {
        }
    });
    ASSERT_EQ(child.line().answer(), 1u);
    EXPECT_EQ(table_.sweep(), 0u);
    EXPECT_EQ(table_.usage().used, 7u);
    child.kill();
    EXPECT_EQ(table_.sweep(), 7u);
}

TEST_F(SlotTableForkTest, NobodyIsDeadForOneWhoseLockFileHasBeenReplaced) {
    Peer child(table_, [&](Line& line) {
        take(table_, 7);
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(child.line().answer(), 1u);
    sys::FileDescriptor kept(dup(tables_.file()));
    sys::testing::TemporaryDirectory directory;
    sys::FileDescriptor other;
    ASSERT_EQ(sys::open_unnamed(directory.path(), other), 0);
    ASSERT_GE(dup2(other.number(), tables_.file()), 0);
    EXPECT_EQ(table_.sweep(), 0u);
    close(tables_.file());
    EXPECT_EQ(table_.sweep(), 0u);
    ASSERT_GE(dup2(kept.number(), tables_.file()), 0);
    child.kill();
    EXPECT_EQ(table_.sweep(), 7u);
}

TEST_F(SlotTableForkTest, GrandchildrenShareWithAll) {
    const uint32_t slot = table_.allocate(kAny);
    Peer child(table_, [&](Line& line) {
        const uint32_t own = table_.allocate(kAny);
        Peer grandchild(table_, [&](Line& inner) {
            const bool both = table_.is_shared(slot) && table_.is_shared(own);
            take(table_, 5);
            inner.say(both ? own : kNone);
            inner.stay();
        });
        line.say(grandchild.line().answer());
        line.hear();
        line.say(table_.drop(slot));
        line.say(table_.drop(own));
        line.hear();
        grandchild.kill();
        line.say(table_.sweep());
        line.stay();
    });
    const uint32_t own = child.line().answer();
    ASSERT_LT(own, kCapacity);
    EXPECT_FALSE(table_.drop(slot));
    EXPECT_EQ(child.line().ask(0), 0u);
    EXPECT_EQ(child.line().answer(), 0u);
    EXPECT_NE(table_.allocate(slot), slot) << "the grandchild has it";
    EXPECT_NE(table_.allocate(own), own);
    EXPECT_EQ(child.line().ask(0), 7u);
    EXPECT_EQ(table_.allocate(slot), slot);
    EXPECT_EQ(table_.allocate(own), own);
}

TEST_F(SlotTableForkTest, AsManyProcessesAsThereAreRows) {
    const uint32_t slot = table_.allocate(kAny);
    std::vector<Peer> children;
    while (children.size() < SlotTable::kRows - 1) {
        children.emplace_back(table_, [&](Line& line) { line.stay(); });
        ASSERT_TRUE(children.back().is_started());
    }
    EXPECT_EQ(table_.begin_child(), std::nullopt);
    EXPECT_TRUE(table_.is_shared(slot));
    children[40].kill();
    Peer another(table_, [&](Line& line) {
        line.say(table_.is_shared(slot));
        line.stay();
    });
    ASSERT_TRUE(another.is_started()) << "the dead one's row is free";
    EXPECT_EQ(another.line().answer(), 1u);
    EXPECT_EQ(table_.begin_child(), std::nullopt);
    for (Peer& child : children) child.kill();
    another.kill();
    EXPECT_EQ(table_.sweep(), 0u);
    EXPECT_FALSE(table_.is_shared(slot));
}

TEST_F(SlotTableForkTest, AChildWithoutARowLeavesTheTableAlone) {
    take(table_, 5);
    Peer child([&](Line& line) {
        table_.abandon_in_child();
        table_.~SlotTable();
        line.say(1);
        line.stay();
    });
    EXPECT_EQ(child.line().answer(), 1u);
    Peer unaware([&](Line& line) {
        table_.~SlotTable();  // as exit() might
        line.say(1);
        line.stay();
    });
    EXPECT_EQ(unaware.line().answer(), 1u);
    Peer sweeper(table_, [&](Line& line) {
        line.say(table_.sweep());
        line.say(table_.is_shared(0));
        line.stay();
    });
    EXPECT_EQ(sweeper.line().answer(), 0u);
    EXPECT_EQ(sweeper.line().answer(), 1u);
}

TEST_F(SlotTableForkTest, WhoDestroysItsTableGivesUpWhatItHeld) {
    Peer child(table_, [&](Line& line) {
        take(table_, 9);
        table_.~SlotTable();
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(child.line().answer(), 1u);
    EXPECT_EQ(table_.sweep(), 9u);
}

// A process between the test and the one that does something, so that the test can kill it.
TEST_F(SlotTableForkTest, AChildOutlivesItsParent) {
    Line far;
    Peer parent(table_, [&](Line& line) {
        take(table_, 20);
        const uint32_t shared = table_.allocate(kAny);
        Peer child(table_, [&](Line&) {
            far.be_child();
            take(table_, 30);
            far.say(shared);
            far.hear();
            far.say(table_.is_shared(shared));
            far.stay();
        });
        line.say(1);
        line.hear();
        take(table_, 40);  // the parent's alone
        line.say(1);
        line.stay();
    });
    far.be_test();
    const uint32_t shared = far.answer();
    ASSERT_EQ(parent.line().answer(), 1u);
    ASSERT_EQ(parent.line().ask(0), 1u);
    EXPECT_EQ(far.ask(0), 1u);
    parent.kill();
    EXPECT_EQ(table_.sweep(), 40u);
    EXPECT_EQ(table_.usage().used, 51u);
    EXPECT_NE(table_.allocate(shared), shared);
    far.tell(0);
}

TEST_F(SlotTableForkTest, AParentKilledBeforeTheForkLeavesNoRowBehind) {
    for (uint32_t round = 0; round < SlotTable::kRows + 10; ++round) {
        Peer parent(table_, [&](Line& line) {
            take(table_, 5);
            line.say(table_.begin_child().has_value());
            line.stay();
        });
        ASSERT_EQ(parent.line().answer(), 1u);
        EXPECT_EQ(table_.sweep(), 0u);
        parent.kill();
        EXPECT_EQ(table_.sweep(), 5u);
    }
    EXPECT_EQ(count_used(table_), 0u);
}

TEST_F(SlotTableForkTest, AChildLivesWhoseParentIsKilledBeforeItNamesIt) {
    Line far;
    Peer parent(table_, [&](Line& line) {
        take(table_, 5);
        const auto row = table_.begin_child();
        std::fflush(nullptr);
        if (fork() == 0) {
            far.be_child();
            far.say(1);
            far.hear();
            table_.become_child(*row);
            far.say(1);
            far.stay();
        }
        line.stay();
    });
    far.be_test();
    ASSERT_EQ(far.answer(), 1u);
    parent.kill();
    EXPECT_EQ(table_.sweep(), 0u) << "the child has not begun to use the table";
    EXPECT_EQ(far.ask(0), 1u);
    EXPECT_EQ(table_.sweep(), 0u);
    EXPECT_EQ(table_.usage().used, 5u);
}

TEST_F(SlotTableForkTest, AChildKilledBeforeItBeginsIsSwept) {
    take(table_, 5);
    for (uint32_t round = 0; round < SlotTable::kRows + 10; ++round) {
        const auto row = table_.begin_child();
        ASSERT_TRUE(row);
        Peer child([](Line&) {});
        const pid_t pid = child.pid();
        child.wait();
        EXPECT_TRUE(table_.is_shared(0));
        EXPECT_EQ(table_.sweep(), 0u);
        EXPECT_TRUE(table_.is_shared(0)) << "the parent does not know yet";
        table_.child_started(*row, pid);
        EXPECT_EQ(table_.sweep(), 0u);
        EXPECT_FALSE(table_.is_shared(0));
    }
}

TEST_F(SlotTableForkTest, AForkThatFailsLeavesNoRowBehind) {
    take(table_, 5);
    for (uint32_t round = 0; round < 3 * SlotTable::kRows; ++round) {
        const auto row = table_.begin_child();
        ASSERT_TRUE(row);
        EXPECT_TRUE(table_.is_shared(0));
        table_.child_failed(*row);
        EXPECT_FALSE(table_.is_shared(0));
    }
    EXPECT_EQ(table_.usage().used, 5u);
}

struct Runs {
    std::vector<std::pair<uint32_t, uint32_t>> list;
    SlotTable::GiveBack give_back() {
        return {[](void* context, uint32_t first, uint32_t count) noexcept {
                    static_cast<Runs*>(context)->list.emplace_back(first, count);
                },
                this};
    }
};

TEST_F(SlotTableForkTest, SweepTellsWhichRunsBecomeFree) {
    ASSERT_EQ(table_.allocate(10), 10u);
    Peer child(table_, [&](Line& line) {
        for (const uint32_t slot : {8u, 9u, 11u, 12u, 13u, 500u}) table_.allocate(slot);
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(child.line().answer(), 1u);
    child.kill();
    Runs runs;
    EXPECT_EQ(table_.sweep(runs.give_back()), 6u);
    const std::vector<std::pair<uint32_t, uint32_t>> expected = {{8, 2}, {11, 3}, {500, 1}};
    EXPECT_EQ(runs.list, expected);
}

// Whom they are told of, and what is answered.
struct FencedRows {
    uint64_t rows = 0;
    bool is_certain = true;
    SlotTable::Fence fence() {
        return {[](void* context, uint64_t ended) noexcept {
                    auto& told = *static_cast<FencedRows*>(context);
                    told.rows |= ended;
                    return told.is_certain;
                },
                this};
    }
};

TEST_F(SlotTableForkTest, TheDeadAreFencedBeforeTheirSlotsAreFree) {
    for (const bool is_certain : {true, false}) {
        TestTables tables;
        FencedRows fenced{.is_certain = is_certain};
        SlotTable table = SlotTable::create(1000, tables.file(), fenced.fence()).value();
        ASSERT_EQ(table.allocate(10), 10u);
        EXPECT_EQ(table.row(), 0u);
        Peer child(table, [&](Line& line) {
            table.allocate(20);
            line.say(table.row());
            line.stay();
        });
        const uint32_t row = child.line().answer();
        EXPECT_EQ(table.sweep(), 0u);
        EXPECT_EQ(fenced.rows, 0u);
        child.kill();
        EXPECT_EQ(table.sweep(), is_certain ? 1u : 0u);
        EXPECT_EQ(fenced.rows, uint64_t{1} << row);
        EXPECT_EQ(table.usage().used, is_certain ? 1u : 2u);
        EXPECT_EQ(table.allocate(20) == 20u, is_certain);
    }
}

TEST_F(SlotTableForkTest, BeginChildSweepsWhenNoRowIsFree) {
    std::vector<Peer> children;
    while (children.size() < SlotTable::kRows - 1) {
        children.emplace_back(table_, [&](Line& line) {
            table_.allocate(100);
            line.say(1);
            line.stay();
        });
        ASSERT_EQ(children.back().line().answer(), 1u);
    }
    children[0].kill();  // the one that got slot 100
    Runs runs;
    const auto row = table_.begin_child(runs.give_back());
    ASSERT_TRUE(row);
    table_.child_failed(*row);
    const std::vector<std::pair<uint32_t, uint32_t>> expected = {{100, 1}};
    EXPECT_EQ(runs.list, expected);
}

// In its own words: a run is on its way back to the disk, and nobody else can have it.
TEST_F(SlotTableForkTest, ASweeperKilledHalfwayIsSweptItself) {
    struct Halfway {
        SlotTable& table;
        Line* line;
        uint32_t calls = 0;
    } halfway{table_, nullptr};
    Peer dead(table_, [&](Line& line) {
        for (uint32_t slot = 0; slot < 100; slot += 2) table_.allocate(slot);
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(dead.line().answer(), 1u);
    Peer sweeper(table_, [&](Line& line) {
        halfway.line = &line;
        line.hear();
        table_.sweep({[](void* context, uint32_t first, uint32_t) noexcept {
                          auto& self = *static_cast<Halfway*>(context);
                          if (++self.calls < 20) return;
                          self.line->say(first);
                          self.line->stay();
                      },
                      &halfway});
    });
    dead.kill();
    const uint32_t busy = sweeper.line().ask(0);
    EXPECT_EQ(busy, 38u);
    EXPECT_EQ(table_.sweep(), 0u) << "the sweeper is alive, and it alone sweeps";
    EXPECT_NE(table_.allocate(busy), busy);
    EXPECT_EQ(table_.usage().used, 50u - 19u + 1);
    sweeper.kill();
    Runs runs;
    EXPECT_EQ(table_.sweep(runs.give_back()), 31u);
    EXPECT_EQ(runs.list.size(), 31u);
    EXPECT_EQ(table_.usage().used, 1u);
    EXPECT_EQ(count_used(table_), 1u);
}

TEST_F(SlotTableForkTest, SeveralThatSweepAtOnceGiveEverySlotBackOnce) {
    constexpr uint32_t kSweepers = 3;
    constexpr uint32_t kDead = 5;
    constexpr uint32_t kEach = 200;
    std::vector<Peer> dead;
    for (uint32_t i = 0; i < kDead; ++i) {
        dead.emplace_back(table_, [&](Line& line) {
            for (uint32_t k = 0; k < kEach; ++k) table_.allocate(k * 10 + i);
            line.say(1);
            line.stay();
        });
        ASSERT_EQ(dead.back().line().answer(), 1u);
    }
    auto memory = sys::Mapping::reserve_shared(kCapacity * sizeof(std::atomic<uint32_t>));
    ASSERT_TRUE(memory);
    auto* const given_back = reinterpret_cast<std::atomic<uint32_t>*>(memory->address());
    std::vector<Peer> sweepers;
    for (uint32_t i = 0; i < kSweepers; ++i) {
        sweepers.emplace_back(table_, [&](Line& line) {
            line.hear();
            line.say(table_.sweep({[](void* context, uint32_t first, uint32_t count) noexcept {
                                       auto* const counts =
                                           static_cast<std::atomic<uint32_t>*>(context);
                                       for (uint32_t k = 0; k < count; ++k) ++counts[first + k];
                                   },
                                   given_back}));
            line.stay();
        });
    }
    for (Peer& peer : dead) peer.kill();
    for (Peer& sweeper : sweepers) sweeper.line().tell(0);
    uint32_t freed = 0;
    for (Peer& sweeper : sweepers) freed += sweeper.line().answer();
    EXPECT_EQ(freed, kDead * kEach);
    for (uint32_t slot = 0; slot < kCapacity; ++slot) {
        ASSERT_EQ(given_back[slot], slot < kEach * 10 && slot % 10 < kDead ? 1u : 0u) << slot;
    }
    EXPECT_EQ(table_.usage().used, 0u);
}

// Without the lock a row goes by the pid.
TEST_F(SlotTableForkTest, WithoutTheLockFileDeathIsKnownOnceTheParentHasWaited) {
    sys::inject::arm(sys::inject::Call::kOpen, ENOENT);
    SlotTable& table = tables_.make(kCapacity);
    take(table, 2);
    Peer child(table, [&](Line& line) {
        take(table, 6);
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(child.line().answer(), 1u);
    EXPECT_EQ(table.sweep(), 0u);
    const auto row = table.begin_child();
    ASSERT_TRUE(row);
    EXPECT_EQ(table.sweep(), 0u) << "its pid is not known yet";
    table.child_failed(*row);
    child.kill();
    EXPECT_EQ(table.sweep(), 6u);
    EXPECT_EQ(table.usage().used, 2u);
    Peer leaver(table, [&](Line& line) {
        take(table, 4);
        table.~SlotTable();
        line.say(1);
        line.stay();
    });
    ASSERT_EQ(leaver.line().answer(), 1u);
    EXPECT_EQ(table.sweep(), 4u);
}

// Takes and drops slots until it is killed.
[[noreturn]] void churn(SlotTable& table, uint64_t seed) {
    Prng prng(seed);
    std::vector<uint32_t> mine;
    for (;;) {
        if (mine.size() < 500 && prng.below(2) == 0) {
            const uint32_t slot = table.allocate(mine.empty() ? kAny : mine.back() + 1);
            if (slot != kNone) mine.push_back(slot);
        } else if (!mine.empty()) {
            std::swap(mine[prng.below(mine.size())], mine.back());
            if (table.drop(mine.back())) table.release(mine.back());
            mine.pop_back();
        }
        if (prng.below(1000) == 0) table.sweep();
    }
}

TEST_F(SlotTableForkTest, ProcessesKilledAtAnyInstructionLeaveTheTableInOrder) {
    const uint64_t seed = sys::testing::test_seed();
    Prng prng(seed);
    SlotTable& table = tables_.make(1500);  // less than all want
    take(table, 100);
    for (uint32_t round = 0; round < 60; ++round) {
        std::vector<Peer> children;
        for (uint64_t i = 0; i < 4; ++i) {
            children.emplace_back(table, [&](Line& line) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                line.say(1);
                churn(table, seed + 10 * round + i);
            });
            ASSERT_EQ(children.back().line().answer(), 1u);
        }
        // So long that they are somewhere else each time.
        for (uint64_t spin = prng.below(4000); spin > 0; --spin) table.is_shared(0);
        for (Peer& child : children) child.kill();
        table.sweep();
        ASSERT_EQ(table.usage().used, 100u) << "round " << round;
    }
    EXPECT_FALSE(table.is_shared(0));
    EXPECT_EQ(count_used(table), 100u);
}

TEST_F(SlotTableForkTest, CostOfAForkOfAMillionSlots) {
    constexpr uint32_t kSlots = 1 << 20;
    SlotTable& table = tables_.make(2 * kSlots);
    for (uint32_t slot = 0; slot < kSlots; ++slot) ASSERT_EQ(table.allocate(slot), slot);
    const auto start = std::chrono::steady_clock::now();
    const auto row = table.begin_child();
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE(row);
    EXPECT_TRUE(table.is_shared(0));
    EXPECT_TRUE(table.is_shared(kSlots - 1));
    table.child_failed(*row);
    const auto failed = std::chrono::steady_clock::now();
    EXPECT_FALSE(table.is_shared(kSlots - 1));
    EXPECT_EQ(table.usage().used, kSlots);
    using Ms = std::chrono::duration<double, std::milli>;
    std::printf("begin_child() with %u slots: %.1f ms, child_failed(): %.1f ms\n", kSlots,
                Ms(begun - start).count(), Ms(failed - begun).count());
}

}  // namespace
}  // namespace hanare::store
