// SPDX-License-Identifier: Apache-2.0
//
// Groups of 1 to 64 tasks: as threads of one process, as processes, and with
// some that are lost, late or unwilling.
#include "job/group.hpp"

#include <sys/wait.h>

#include <array>
#include <latch>
#include <numeric>
#include <tuple>

#include "job/test_job.hpp"
#include "sys/clock.hpp"

namespace hanare::job {
namespace {

using testing::By;
using testing::kTestMs;
using testing::run_threads;
using testing::soon;
using testing::start_process;
using testing::Table;
using testing::Task;
using testing::what_lacks;

constexpr uint32_t kSizes[] = {1, 2, 3, 7, 16, 64};

std::vector<std::byte> pattern(size_t bytes, uint32_t seed) {
    std::vector<std::byte> data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + seed + i / 251);
    return data;
}

hanare_status status_of(const Result<void>& result) {
    return result ? HANARE_STATUS_OK : result.error().status;
}

// How many tasks, and by what they reach each other.
class GroupOf : public ::testing::TestWithParam<std::tuple<uint32_t, By>> {
protected:
    void SetUp() override {
        if (const std::string why = what_lacks(std::get<1>(GetParam())); !why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    Table table{std::get<0>(GetParam()), false, std::get<1>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Sizes, GroupOf,
                         ::testing::Combine(::testing::ValuesIn(kSizes),
                                            ::testing::Values(By::kMemory, By::kSockets)));
INSTANTIATE_TEST_SUITE_P(SizesByUcx, GroupOf,
                         ::testing::Combine(::testing::Values(2, 7),
                                            ::testing::Values(By::kUcxAndMemory,
                                                              By::kUcxAndSockets)));

TEST_P(GroupOf, NobodyLeavesABarrierBeforeAllHaveCome) {
    std::atomic<uint32_t> arrived{0};
    run_threads(table, [&](Task& task) {
        for (uint32_t round = 1; round <= 10; ++round) {
            arrived.fetch_add(1);
            ASSERT_TRUE(task.group->barrier(soon()));
            ASSERT_GE(arrived.load(), round * table.tasks());
        }
    });
    EXPECT_EQ(arrived.load(), 10 * table.tasks());
}

TEST_P(GroupOf, BroadcastFromEverywhere) {
    const uint32_t last = table.tasks() - 1;
    run_threads(table, [&](Task& task) {
        for (const uint32_t root : {0u, last / 2, last}) {
            for (const size_t bytes :
                 {size_t{0}, size_t{1}, size_t{1024}, size_t{1025}, size_t{300'001}}) {
                const auto wanted = pattern(bytes, root + 1);
                const bool is_root = task.communicator->rank() == root;
                auto data = is_root ? wanted : std::vector<std::byte>(bytes);
                const auto done = task.group->broadcast(data, root, soon());
                ASSERT_TRUE(done) << done.error().text;
                ASSERT_EQ(data, wanted);
            }
        }
    });
}

TEST_P(GroupOf, AllgatherInOrderOfRanks) {
    run_threads(table, [&](Task& task) {
        for (const size_t bytes : {size_t{1}, size_t{32}, size_t{5000}}) {
            std::vector<std::byte> all(bytes * table.tasks());
            const auto own = pattern(bytes, task.communicator->rank());
            const auto done = task.group->allgather(own, all, soon());
            ASSERT_TRUE(done) << done.error().text;
            for (uint32_t rank = 0; rank < table.tasks(); ++rank) {
                const auto part = std::span(all).subspan(rank * bytes, bytes);
                ASSERT_TRUE(std::ranges::equal(part, pattern(bytes, rank))) << rank;
            }
        }
    });
}

// Memory of a task, and the window that it is of.
struct Shown {
    Shown(Task& task, size_t bytes)
        : memory(task.communicator->exposures().allocate(bytes).value()),
          region(task.communicator->exposures().expose(memory, fabric::kAllRights).value()),
          window(task.group->open_window(region, soon()).value()) {}

    std::span<std::byte> memory;
    uint32_t region;
    uint32_t window;
};

void multicast_once(Task& task, Shown& shown, uint32_t root, Group::Multicast multicast,
                    size_t bytes) {
    const auto wanted = pattern(bytes, root + multicast.arity);
    const uint32_t tasks = task.communicator->size();
    multicast.window = shown.window;
    multicast.offset = 3;
    multicast.data = wanted;
    multicast.deadline_ns = soon();
    if (task.communicator->rank() == root) {
        const auto counts = task.group->multicast_put(multicast);
        ASSERT_TRUE(counts) << counts.error().text;
        // What the root handles.
        const uint64_t children =
            multicast.is_flat ? tasks - 1 : std::min(multicast.arity, tasks - 1);
        EXPECT_EQ(counts->puts, children);
        EXPECT_LE(counts->notices, multicast.is_flat ? 0 : children);
        EXPECT_EQ(counts->acknowledgements, counts->notices);
    }
    ASSERT_TRUE(task.group->barrier(soon()));
    ASSERT_TRUE(std::ranges::equal(shown.memory.subspan(3, bytes), wanted));
    ASSERT_TRUE(task.group->barrier(soon()));
}

TEST_P(GroupOf, MulticastReachesAll) {
    const uint32_t last = table.tasks() - 1;
    run_threads(table, [&](Task& task) {
        Shown shown(task, 256 * 1024);
        for (const uint32_t root : {0u, last}) {
            for (const size_t bytes : {size_t{0}, size_t{8}, size_t{200'000}}) {
                for (const uint32_t arity : {2u, 8u, 32u}) {
                    multicast_once(task, shown, root, {.data = {}, .arity = arity}, bytes);
                }
                multicast_once(task, shown, root, {.data = {}, .is_flat = true}, bytes);
            }
        }
        bool is_closed = false;
        EXPECT_TRUE(task.group->close_window(shown.window, soon(), is_closed));
        EXPECT_TRUE(is_closed);
        EXPECT_EQ(status_of(task.group->close_window(shown.window, soon(), is_closed)),
                  HANARE_STATUS_NOT_FOUND);
        EXPECT_FALSE(is_closed);
        EXPECT_TRUE(task.communicator->exposures().conceal(shown.region));
    });
}

// All tasks are roots at once: couriers must not wait for one another.
TEST(Group, MulticastsOfAllTasksAtOnce) {
    Table table(7);
    run_threads(table, [&](Task& task) {
        Shown shown(task, 64 * 1024);
        const uint32_t own = task.communicator->rank();
        constexpr size_t kPart = 8 * 1024;
        for (uint32_t round = 0; round < 20; ++round) {
            const auto data = pattern(kPart, own + round);
            const auto counts = task.group->multicast_put({.window = shown.window,
                                                           .offset = own * kPart,
                                                           .data = data,
                                                           .arity = 2,
                                                           .deadline_ns = soon()});
            ASSERT_TRUE(counts) << counts.error().text;
            ASSERT_TRUE(task.group->barrier(soon()));
            for (uint32_t rank = 0; rank < table.tasks(); ++rank) {
                ASSERT_TRUE(std::ranges::equal(shown.memory.subspan(rank * kPart, kPart),
                                               pattern(kPart, rank + round)));
            }
            ASSERT_TRUE(task.group->barrier(soon()));
        }
    });
}

TEST(Group, MistakesAreNamed) {
    Table table(3);
    run_threads(table, [&](Task& task) {
        Shown shown(task, 4096);
        Group& group = *task.group;
        std::vector<std::byte> data(8192);
        EXPECT_EQ(status_of(group.broadcast(data, 3, soon())), HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(status_of(group.allgather(data, data, soon())), HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(group.multicast_put({.data = data, .arity = 0}).error().status,
                  HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(group.multicast_put({.data = data, .arity = 33}).error().status,
                  HANARE_STATUS_INVALID_ARGUMENT);
        EXPECT_EQ(group.multicast_put({.window = 999, .data = data}).error().status,
                  HANARE_STATUS_NOT_FOUND);
        EXPECT_EQ(group.multicast_put({.window = shown.window, .data = data}).error().status,
                  HANARE_STATUS_OUT_OF_RANGE);
        EXPECT_EQ(status_of(task.communicator->exposures().conceal(shown.region)),
                  HANARE_STATUS_BUSY);
        bool is_closed = false;
        EXPECT_TRUE(group.close_window(shown.window, soon(), is_closed));
    });
}

// Sizes that differ show where the task is told.
TEST(Group, BroadcastsOfDifferentSizes) {
    Table table(2);
    run_threads(table, [&](Task& task) {
        std::vector<std::byte> data(task.communicator->rank() == 0 ? 100 : 99);
        EXPECT_EQ(status_of(task.group->broadcast(data, 0, soon())),
                  HANARE_STATUS_INVALID_ARGUMENT);
        std::vector<std::byte> same(50);
        EXPECT_TRUE(task.group->broadcast(same, 0, soon()));
    });
}

// In a tree of these task 1 leads task 2, and both are below task 0.
constexpr uint32_t kTasksOfTwoLevels = 16;

void expect_names(const Result<void>& result, hanare_status status, uint32_t rank) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().status, status) << result.error().text;
    const std::string name = "task " + std::to_string(rank) + ":";
    EXPECT_NE(std::strstr(result.error().text, name.c_str()), nullptr) << result.error().text;
}

// All are in the same collective again.
void expect_in_step(Task& task, uint32_t seed) {
    for (const size_t bytes : {size_t{40}, size_t{5000}}) {
        const auto wanted = pattern(bytes, seed);
        auto data = task.communicator->rank() == 0 ? wanted : std::vector<std::byte>(bytes);
        const auto done = task.group->broadcast(data, 0, soon());
        ASSERT_TRUE(done) << done.error().text;
        ASSERT_EQ(data, wanted);
    }
    std::vector<uint32_t> all(task.communicator->size());
    const uint32_t own = task.communicator->rank() + seed;
    const auto done = task.group->allgather(std::as_bytes(std::span(&own, 1)),
                                            std::as_writable_bytes(std::span(all)), soon());
    ASSERT_TRUE(done) << done.error().text;
    for (uint32_t rank = 0; rank < all.size(); ++rank) ASSERT_EQ(all[rank], rank + seed);
}

TEST(Group, FailureInABroadcastIsToldToThoseBelow) {
    Table table(kTasksOfTwoLevels);
    run_threads(table, [&](Task& task) {
        const uint32_t own = task.communicator->rank();
        for (const size_t bytes : {size_t{40}, size_t{5000}}) {
            std::vector<std::byte> data(own == 1 ? bytes - 1 : bytes);
            const auto done = task.group->broadcast(data, 0, soon());
            if (own <= 2) {
                expect_names(done, HANARE_STATUS_INVALID_ARGUMENT, 1);
            } else {
                EXPECT_TRUE(done) << done.error().text;
            }
            expect_in_step(task, 7);
        }
    });
}

TEST(Group, ArgumentsThatATaskRefusesAreToldToThoseBelow) {
    Table table(kTasksOfTwoLevels);
    run_threads(table, [&](Task& task) {
        const uint32_t own = task.communicator->rank();
        std::vector<std::byte> data(40);
        const std::span nothing(static_cast<std::byte*>(nullptr), own == 1 ? data.size() : 0);
        const auto done = own == 1 ? task.group->broadcast(nothing, 0, soon())
                                   : task.group->broadcast(data, 0, soon());
        if (own == 1) {
            EXPECT_EQ(status_of(done), HANARE_STATUS_INVALID_ARGUMENT);
        } else if (own == 0 || own == 2) {
            expect_names(done, HANARE_STATUS_INVALID_ARGUMENT, 1);
        } else {
            EXPECT_TRUE(done) << done.error().text;
        }
        expect_in_step(task, 8);
        // Nobody gets what cannot be gathered.
        std::vector<std::byte> all(data.size() * (own == 1 ? 1 : table.tasks()));
        const auto gathered = task.group->allgather(data, all, soon());
        if (own == 1) {
            EXPECT_EQ(status_of(gathered), HANARE_STATUS_INVALID_ARGUMENT);
        } else {
            expect_names(gathered, HANARE_STATUS_INVALID_ARGUMENT, 1);
        }
        expect_in_step(task, 9);
        // Who is below a root that is none cannot be known.
        if (own == 2) {
            EXPECT_EQ(status_of(task.group->broadcast(data, table.tasks(), soon())),
                      HANARE_STATUS_INVALID_ARGUMENT);
        } else {
            EXPECT_EQ(status_of(task.group->broadcast(data, 0, soon())),
                      own == 1 ? HANARE_STATUS_INVALID_ARGUMENT : HANARE_STATUS_OK);
        }
        expect_in_step(task, 10);
    });
}

TEST(Group, WindowThatATaskCannotOpenIsRefusedToAll) {
    Table table(kTasksOfTwoLevels);
    run_threads(table, [&](Task& task) {
        const uint32_t own = task.communicator->rank();
        const auto memory = task.communicator->exposures().allocate(4096).value();
        const uint32_t region =
            task.communicator->exposures().expose(memory, fabric::kAllRights).value();
        const auto opened = task.group->open_window(own == 3 ? 1023 : region, soon());
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().status, HANARE_STATUS_NOT_FOUND) << opened.error().text;
        EXPECT_TRUE(task.communicator->exposures().conceal(region));
        expect_in_step(task, 11);
    });
}

// Task 0 comes when task 1 has given up, and task 2, whose limit is far away, knows.
TEST(Group, TimeLimitThatHasPassedIsToldToThoseBelow) {
    Table table(kTasksOfTwoLevels);
    std::latch have_given_up(2);
    run_threads(table, [&](Task& task) {
        const uint32_t own = task.communicator->rank();
        std::vector<std::byte> data(40);
        if (own == 0) have_given_up.wait();
        const auto done = task.group->broadcast(data, 0, own == 1 ? deadline_after(50) : soon());
        if (own <= 2) {
            EXPECT_EQ(status_of(done), HANARE_STATUS_TIMEOUT);
        } else {
            EXPECT_TRUE(done) << done.error().text;
        }
        if (own == 2) expect_names(done, HANARE_STATUS_TIMEOUT, 1);
        if (own == 1 || own == 2) have_given_up.count_down();
        expect_in_step(task, 12);
    });
}

// In turn each task spoils a broadcast or an allgather; what succeeds is always right.
TEST(Group, CollectivesStayInStepWhateverFails) {
    Table table(11);
    run_threads(table, [&](Task& task) {
        const uint32_t own = task.communicator->rank();
        for (uint32_t round = 0; round < 44; ++round) {
            const uint32_t root = round * 3 % table.tasks();
            const bool is_bad = own == round % table.tasks();
            const size_t bytes = round % 2 == 0 ? 48 : 3000;
            const auto wanted = pattern(bytes, round);
            auto data = own == root ? wanted : std::vector<std::byte>(bytes);
            if (is_bad) data.resize(bytes - 8);
            const std::span nothing(static_cast<std::byte*>(nullptr), bytes);
            const auto done =
                task.group->broadcast(is_bad && round >= 22 ? nothing : data, root, soon());
            if (done) {
                ASSERT_FALSE(is_bad);
                ASSERT_EQ(data, wanted);
            } else {
                ASSERT_EQ(done.error().status, HANARE_STATUS_INVALID_ARGUMENT);
            }
            std::vector<std::byte> all(bytes * table.tasks());
            const auto part = pattern(bytes, own + round);
            const auto gathered =
                task.group->allgather(is_bad ? std::span(part).first(8) : part, all, soon());
            ASSERT_EQ(status_of(gathered), HANARE_STATUS_INVALID_ARGUMENT);
            expect_in_step(task, round);
        }
    });
}

// A notice that was refused holds no slot; one that may come does.
TEST(Group, NoticesThatAreRefusedDoNotArrive) {
    Table table(2);
    Task one(table, 0);
    {
        const Task other(table, 1);
        const Peer::Way& way = *one.communicator->way_to(1, soon()).value();
        const std::vector<std::byte> message(1000);
        hanare_status status = HANARE_STATUS_OK;
        for (uint32_t sent = 0; status == HANARE_STATUS_OK; ++sent) {
            ASSERT_LT(sent, ControlMemory::kQueueBytes / message.size() + 1);
            Notice notice(way, Notice::To::kCaller, message, deadline_after(2000));
            status = notice.finish();
            EXPECT_EQ(notice.may_arrive(), status == HANARE_STATUS_OK);
        }
        EXPECT_EQ(status, HANARE_STATUS_TIMEOUT);
        one.communicator->end_links();
        Notice late(way, Notice::To::kCaller, message, soon());
        EXPECT_EQ(late.finish(), HANARE_STATUS_PEER_LOST);
        EXPECT_FALSE(late.may_arrive());
    }
}

// Of a region whose keys one task has replaced: that one is named, the others
// have the data.
TEST(Group, RevokedCapabilityInAMulticast) {
    Table table(7);
    run_threads(table, [&](Task& task) {
        Shown shown(task, 4096);
        const uint32_t own = task.communicator->rank();
        // With arity 2: a leaf, and one that would have passed it on.
        for (const uint32_t unwilling : {3u, 4u}) {
            if (own == unwilling) {
                ASSERT_TRUE(task.communicator->exposures().revoke(shown.region));
            }
            ASSERT_TRUE(task.group->barrier(soon()));
            if (own == 0) {
                const auto data = pattern(100, unwilling);
                const auto counts = task.group->multicast_put(
                    {.window = shown.window, .data = data, .arity = 2, .deadline_ns = soon()});
                ASSERT_FALSE(counts);
                EXPECT_EQ(counts.error().status, HANARE_STATUS_BAD_KEY);
                const std::string name = "task " + std::to_string(unwilling);
                EXPECT_NE(std::strstr(counts.error().text, name.c_str()), nullptr)
                    << counts.error().text;
            }
            ASSERT_TRUE(task.group->barrier(soon()));
            const bool has_it =
                std::ranges::equal(shown.memory.first(100), pattern(100, unwilling));
            if (own < 3 || own == unwilling) {
                EXPECT_EQ(has_it, own < 3) << own;
            }
            ASSERT_TRUE(task.group->barrier(soon()));
        }
    });
}

TEST(Group, BarrierThatTimedOutGoesOn) {
    Table table(3);
    run_threads(table, [&](Task& task) {
        ASSERT_TRUE(task.group->barrier(soon()));
        if (task.communicator->rank() == 2) {
            // Comes when the others have given up once.
            ASSERT_TRUE(sys::wait_until_readable(table.published(0).number(), -1, kTestMs).first);
            uint32_t given_up = 0;
            auto& words = task.communicator->control().words();
            while ((given_up = words.slots[0].bits.load()) != 3) {
                wait_for_change(words.slots[0].bits, given_up, soon(), Changes::kWaking);
            }
        } else {
            EXPECT_EQ(status_of(task.group->barrier(deadline_after(100))), HANARE_STATUS_TIMEOUT);
            const auto way = task.communicator->way_to(2, soon()).value();
            const Acknowledgement gave_up(*way, {.rank = 2, .index = task.communicator->rank()}, {},
                                          soon());
        }
        EXPECT_TRUE(task.group->barrier(soon()));
        EXPECT_TRUE(task.group->barrier(soon()));
    });
}

// It stays, so that all come to the same barrier in the end.
TEST(Group, WindowThatOthersCloseLateStaysOpen) {
    Table table(2);
    run_threads(table, [&](Task& task) {
        Shown shown(task, 4096);
        bool is_closed = false;
        if (task.communicator->rank() == 1) {
            EXPECT_EQ(
                status_of(task.group->close_window(shown.window, deadline_after(0), is_closed)),
                HANARE_STATUS_TIMEOUT);
            EXPECT_FALSE(is_closed);
            const auto way = task.communicator->way_to(0, soon()).value();
            const Acknowledgement gave_up(*way, {.slot = 255}, {}, soon());
        } else {
            auto& bits = task.communicator->control().words().slots[255].bits;
            while (bits.load() == 0) wait_for_change(bits, 0, soon(), Changes::kWaking);
        }
        EXPECT_TRUE(task.group->close_window(shown.window, soon(), is_closed));
        EXPECT_TRUE(is_closed);
        EXPECT_TRUE(task.group->barrier(soon()));
    });
}

// More often than there are slots for acknowledgements.
TEST(Group, BroadcastsThatAreGivenUpLeaveNoSlots) {
    Table table(2);
    run_threads(table, [&](Task& task) {
        std::vector<std::byte> data(8);
        for (uint32_t round = 0; round < ControlWords::kSlots + 20; ++round) {
            const bool is_root = task.communicator->rank() == 0;
            if (is_root) {
                ASSERT_TRUE(task.group->barrier(soon()));
            }
            ASSERT_EQ(status_of(task.group->broadcast(data, 0, deadline_after(is_root ? 2 : 0))),
                      HANARE_STATUS_TIMEOUT)
                << round;
            if (!is_root) {
                ASSERT_TRUE(task.group->barrier(soon()));
            }
            ASSERT_TRUE(task.group->barrier(soon()));
        }
        EXPECT_TRUE(task.group->broadcast(data, 0, soon()));
    });
}

TEST(Group, LinksThatHaveEndedAreNotMadeAgain) {
    Table table(2);
    Task one(table, 0);
    const Task other(table, 1);
    one.communicator->end_links();
    const auto way = one.communicator->way_to(1, soon());
    ASSERT_FALSE(way);
    EXPECT_EQ(way.error().status, HANARE_STATUS_PEER_LOST);
}

TEST(Group, OneThreadAtATimeInCollectives) {
    Table table(2);
    run_threads(table, [&](Task& task) {
        if (task.communicator->rank() == 1) {
            // Two threads: one waits for task 0, the other is refused meanwhile.
            std::atomic<int> busy{0};
            auto come = [&] {
                const hanare_status status = status_of(task.group->barrier(soon()));
                if (status == HANARE_STATUS_BUSY) {
                    busy.fetch_add(1);
                    const auto way = task.communicator->way_to(0, soon()).value();
                    const Acknowledgement told(*way, {}, {}, soon());
                } else {
                    EXPECT_EQ(status, HANARE_STATUS_OK);
                }
            };
            std::thread other(come);
            come();
            other.join();
            EXPECT_EQ(busy.load(), 1);
        } else {
            auto& bits = task.communicator->control().words().slots[0].bits;
            while (bits.load() == 0) wait_for_change(bits, 0, soon(), Changes::kWaking);
            EXPECT_TRUE(task.group->barrier(soon()));
        }
    });
}

// ---- processes

// Processes of one job, each of which runs the body and then ends.
std::vector<pid_t> start_tasks(Table& table, const std::function<void(Task&)>& body) {
    std::vector<pid_t> processes;
    for (uint32_t rank = 0; rank < table.tasks(); ++rank) {
        processes.push_back(start_process([&, rank] {
            Task task(table, rank);
            body(task);
        }));
    }
    return processes;
}

void expect_good_ends(const std::vector<pid_t>& processes) {
    for (const pid_t process : processes) {
        int status = 0;
        EXPECT_EQ(waitpid(process, &status, 0), process);
        EXPECT_EQ(status, 0);
    }
}

// Its word has come, and it is stopped; what it has to be told waits behind long puts.
TEST(GroupProcesses, BarrierWithAStoppedTaskIsPassedAgain) {
    constexpr size_t kBytes = 64 * 1024 * 1024;
    Table table(2, false, By::kSockets);
    const auto share = [](Task& task, std::span<std::byte> memory) {
        Exposures& exposures = task.communicator->exposures();
        const uint32_t region = exposures.expose(memory, fabric::kAllRights).value();
        const auto own = exposures.capability(region, fabric::kAllRights).value();
        std::array<fabric::Capability, 2> all;
        EXPECT_TRUE(task.group->allgather(std::as_bytes(std::span(&own, 1)),
                                          std::as_writable_bytes(std::span(all)), soon()));
        EXPECT_TRUE(task.group->barrier(soon()));
        return all;
    };
    const pid_t stopped = start_process([&] {
        Task task(table, 1);
        share(task, task.communicator->exposures().allocate(kBytes).value());
        EXPECT_EQ(status_of(task.group->barrier(deadline_after(200))), HANARE_STATUS_TIMEOUT);
        raise(SIGSTOP);
        EXPECT_TRUE(task.group->barrier(soon()));
        EXPECT_TRUE(task.group->barrier(soon()));
    });
    {
        Task task(table, 0);
        const auto keys = share(task, task.communicator->exposures().allocate(4096).value());
        int status = 0;
        ASSERT_EQ(waitpid(stopped, &status, WUNTRACED), stopped);
        ASSERT_TRUE(WIFSTOPPED(status));
        const std::vector<std::byte> data(kBytes);
        Posted put;
        put.operation.kind = fabric::Kind::kPut;
        put.operation.capability = keys[1];
        put.operation.source = data;
        put.operation.deadline_ns = soon();
        EXPECT_TRUE(task.communicator->post(1, put));
        EXPECT_EQ(status_of(task.group->barrier(deadline_after(300))), HANARE_STATUS_TIMEOUT);
        kill(stopped, SIGCONT);
        EXPECT_TRUE(task.group->barrier(soon()));
        EXPECT_TRUE(task.communicator->wait(put));
        EXPECT_TRUE(task.group->barrier(soon()));
    }
    expect_good_ends({stopped});
}

// Those that compute never call the library, and pass on what comes all the
// same.
TEST(GroupProcesses, ComputingTasksPassOn) {
    for (const bool is_secret : {false, true}) {
        Table table(5, is_secret);
        const auto processes = start_tasks(table, [](Task& task) {
            constexpr size_t kBytes = 100'000;
            Shown shown(task, kBytes + 8);
            std::atomic_ref<uint64_t> flag(*reinterpret_cast<uint64_t*>(shown.memory.data()));
            if (task.communicator->rank() == 0) {
                auto data = pattern(kBytes, 1);
                const uint64_t one = 1;
                ASSERT_TRUE(task.group->multicast_put({.window = shown.window,
                                                       .offset = 8,
                                                       .data = data,
                                                       .arity = 1,
                                                       .deadline_ns = soon()}));
                ASSERT_TRUE(task.group->multicast_put({.window = shown.window,
                                                       .data = std::as_bytes(std::span(&one, 1)),
                                                       .arity = 1,
                                                       .deadline_ns = soon()}));
            }
            const uint64_t until = soon();
            while (flag.load() == 0 && sys::now_ns() < until) {
            }
            EXPECT_TRUE(std::ranges::equal(shown.memory.subspan(8), pattern(kBytes, 1)));
            EXPECT_TRUE(task.group->barrier(soon()));
        });
        expect_good_ends(processes);
    }
}

// The task that is killed shows in barriers to all; what the others do with
// each other goes on.
TEST(GroupProcesses, KilledTaskIsNamedByAll) {
    Table table(7);
    const auto processes = start_tasks(table, [](Task& task) {
        Shown shown(task, 4096);
        const uint32_t own = task.communicator->rank();
        ASSERT_TRUE(task.group->barrier(soon()));
        if (own == 3) {
            kill(getpid(), SIGKILL);
        }
        const uint64_t begin_ns = sys::now_ns();
        const auto done = task.group->barrier(soon());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().status, HANARE_STATUS_PEER_LOST) << done.error().text;
        EXPECT_NE(std::strstr(done.error().text, "task 3"), nullptr) << done.error().text;
        EXPECT_LT(sys::now_ns() - begin_ns, uint64_t{kTestMs} / 2 * kNsPerMs);
        std::vector<std::byte> data(10);
        EXPECT_EQ(status_of(task.group->broadcast(data, 0, soon())), HANARE_STATUS_PEER_LOST);
        // Of a multicast all get it but the one, and those below.
        if (own == 0) {
            const auto wanted = pattern(100, 5);
            const auto counts = task.group->multicast_put(
                {.window = shown.window, .data = wanted, .arity = 8, .deadline_ns = soon()});
            ASSERT_FALSE(counts);
            EXPECT_EQ(counts.error().status, HANARE_STATUS_PEER_LOST);
            EXPECT_NE(std::strstr(counts.error().text, "task 3"), nullptr);
            // Tells them that they may look.
            for (const uint32_t rank : {1u, 2u, 4u, 5u, 6u}) {
                const auto way = task.communicator->way_to(rank, soon()).value();
                const Acknowledgement told(*way, {.rank = rank, .slot = 255}, {}, soon());
                EXPECT_EQ(const_cast<Acknowledgement&>(told).finish(), HANARE_STATUS_OK);
            }
        } else {
            auto& bits = task.communicator->control().words().slots[255].bits;
            const uint64_t until = soon();
            while (bits.load() == 0 && sys::now_ns() < until) {
                wait_for_change(bits, 0, until, Changes::kWaking);
            }
            EXPECT_TRUE(std::ranges::equal(shown.memory.first(100), pattern(100, 5)));
        }
    });
    for (uint32_t rank = 0; rank < processes.size(); ++rank) {
        int status = 0;
        EXPECT_EQ(waitpid(processes[rank], &status, 0), processes[rank]);
        EXPECT_EQ(status, rank == 3 ? SIGKILL : 0) << rank;
    }
}

// The root of a tree in which an inner task dies with the message in its queue.
TEST(GroupProcesses, KilledTaskThatShouldPassOn) {
    Table table(4);
    std::vector<pid_t> processes;
    processes = start_tasks(table, [](Task& task) {
        Shown shown(task, 4096);
        const uint32_t own = task.communicator->rank();
        ASSERT_TRUE(task.group->barrier(soon()));
        auto& bits = task.communicator->control().words().slots[255].bits;
        if (own == 0) {
            const auto way = task.communicator->way_to(1, soon()).value();
            // Connected, and told that it may go.
            const Acknowledgement told(*way, {.rank = 1, .slot = 255}, {}, soon());
            const auto wanted = pattern(100, 5);
            Result<Group::Counts> counts;
            do {
                counts = task.group->multicast_put(
                    {.window = shown.window, .data = wanted, .arity = 1, .deadline_ns = soon()});
            } while (counts);
            EXPECT_EQ(counts.error().status, HANARE_STATUS_PEER_LOST) << counts.error().text;
            EXPECT_NE(std::strstr(counts.error().text, "task 1"), nullptr) << counts.error().text;
            // More often than there are slots: what is not told any more needs none.
            for (uint32_t round = 0; round < ControlWords::kSlots + 20; ++round) {
                counts = task.group->multicast_put(
                    {.window = shown.window, .data = wanted, .arity = 1, .deadline_ns = soon()});
                ASSERT_EQ(counts.error().status, HANARE_STATUS_PEER_LOST) << counts.error().text;
            }
            for (const uint32_t rank : {2u, 3u}) {
                const auto other = task.communicator->way_to(rank, soon()).value();
                const Acknowledgement end(*other, {.rank = rank, .slot = 255}, {}, soon());
            }
            return;
        }
        while (bits.load() == 0) wait_for_change(bits, 0, soon(), Changes::kWaking);
        if (own == 1) kill(getpid(), SIGKILL);
    });
    for (uint32_t rank = 0; rank < processes.size(); ++rank) {
        int status = 0;
        EXPECT_EQ(waitpid(processes[rank], &status, 0), processes[rank]);
        EXPECT_EQ(status, rank == 1 ? SIGKILL : 0) << rank;
    }
}

TEST(GroupProcesses, ChildrenOfForkHaveNothing) {
    Table table(2);
    run_threads(table, [&](Task& task) {
        ASSERT_TRUE(task.group->barrier(soon()));
        if (task.communicator->rank() != 0) return;
        const pid_t child = start_process([&] {
            std::byte data[8] = {};
            EXPECT_EQ(status_of(task.group->barrier(soon())), HANARE_STATUS_FORKED);
            EXPECT_EQ(status_of(task.group->broadcast(data, 0, soon())), HANARE_STATUS_FORKED);
            EXPECT_EQ(status_of(task.group->allgather(std::span(data).first(4), data, soon())),
                      HANARE_STATUS_FORKED);
            EXPECT_EQ(task.group->open_window(0, soon()).error().status, HANARE_STATUS_FORKED);
            EXPECT_EQ(task.group->multicast_put({.data = {}}).error().status, HANARE_STATUS_FORKED);
            task.group.reset();
            task.communicator.reset();
        });
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    });
}

}  // namespace
}  // namespace hanare::job
