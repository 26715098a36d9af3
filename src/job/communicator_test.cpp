// SPDX-License-Identifier: Apache-2.0
//
// Communicators as threads of one process, and as processes that are stopped,
// killed and forked.
#include "job/communicator.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>

#include "fabric/fifo.hpp"
#include "fabric/local_link.hpp"
#include "fabric/ucx_link.hpp"
#include "job/test_job.hpp"
#include "sys/clock.hpp"

namespace hanare::job {
namespace {

using fabric::Kind;
using testing::By;
using testing::kTestMs;
using testing::soon;
using testing::start_process;
using testing::Table;
using testing::TableJob;
using testing::what_lacks;

constexpr size_t kBytes = 256 * 1024;

struct Call : fabric::Operation {
    Call(Kind what, const fabric::Capability& key, uint64_t at, uint64_t until = soon()) {
        kind = what;
        capability = key;
        offset = at;
        deadline_ns = until;
    }
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

// Memory of a task, exposed with all rights.
struct Exposed {
    explicit Exposed(Communicator& communicator)
        : Exposed(communicator, communicator.exposures().allocate(kBytes).value()) {}
    Exposed(Communicator& communicator, std::span<std::byte> what)
        : memory(what),
          region(communicator.exposures().expose(memory, fabric::kAllRights).value()),
          key(communicator.exposures().capability(region, fabric::kAllRights).value()) {}
    uint64_t& word(size_t offset) { return *reinterpret_cast<uint64_t*>(memory.data() + offset); }

    std::span<std::byte> memory;
    uint32_t region;
    fabric::Capability key;
};

// Two tasks in this process.
struct Pair {
    explicit Pair(By by = By::kMemory, bool is_secret = false) : table(2, is_secret, by) {}

    Table table;
    TableJob first{table, 0};
    TableJob second{table, 1};
    Communicator::Handle a = Communicator::open(first, table.settings()).value();
    Communicator::Handle b = Communicator::open(second, table.settings()).value();
};

hanare_status status_of(const Result<void>& result) {
    return result ? HANARE_STATUS_OK : result.error().status;
}

void use_all_kinds(Communicator& source, uint32_t rank, Exposed& target) {
    const uint64_t value = 0x1234'5678'9abc'def0;
    Call put(Kind::kPut, target.key, 64);
    put.source = bytes_of(value);
    ASSERT_TRUE(source.carry_out(rank, put));
    EXPECT_EQ(target.word(64), value);

    Call add(Kind::kFetch, target.key, 64);
    add.operand = 1;
    ASSERT_TRUE(source.carry_out(rank, add));
    EXPECT_EQ(add.value(), value);

    uint64_t got = 0;
    Call get(Kind::kGet, target.key, 64);
    get.destination = std::as_writable_bytes(std::span(&got, 1));
    ASSERT_TRUE(source.carry_out(rank, get));
    EXPECT_EQ(got, value + 1);

    std::fill(target.memory.begin(), target.memory.end(), std::byte{0});
    ASSERT_EQ(fabric::Fifo::format(target.memory), HANARE_STATUS_OK);
    Call push(Kind::kPush, target.key, 0);
    push.source = bytes_of(value);
    ASSERT_TRUE(source.carry_out(rank, push));
    std::array<std::byte, 64> room{};
    Call pop(Kind::kPop, target.key, 0);
    pop.destination = room;
    ASSERT_TRUE(source.carry_out(rank, pop));
    EXPECT_EQ(pop.value(), sizeof value);
    EXPECT_EQ(std::memcmp(room.data(), &value, sizeof value), 0);
    Call none(Kind::kPop, target.key, 0);
    none.destination = room;
    EXPECT_EQ(status_of(source.carry_out(rank, none)), HANARE_STATUS_EMPTY);
}

class CommunicatorBy : public ::testing::TestWithParam<By> {
protected:
    void SetUp() override {
        if (const std::string why = what_lacks(GetParam()); !why.empty()) GTEST_SKIP() << why;
    }
};
INSTANTIATE_TEST_SUITE_P(All, CommunicatorBy, ::testing::ValuesIn(testing::kAllWays),
                         [](const auto& by) { return testing::name_of(by.param); });

TEST_P(CommunicatorBy, EveryKindOfOperation) {
    for (const bool is_secret : {false, true}) {
        Pair pair(GetParam(), is_secret);
        // Often enough for regions to be attached to.
        Exposed target(*pair.b);
        for (int i = 0; i < 100; ++i) use_all_kinds(*pair.a, 1, target);
    }
}

TEST_P(CommunicatorBy, OnItself) {
    Pair pair(GetParam());
    Exposed target(*pair.a);
    use_all_kinds(*pair.a, 0, target);
}

TEST(Communicator, AloneInItsJob) {
    Table table(1);
    TableJob job(table, 0);
    const auto alone = Communicator::open(job, {}).value();
    Exposed target(*alone);
    use_all_kinds(*alone, 0, target);
    EXPECT_TRUE(alone->flush_all(soon()));
}

TEST_P(CommunicatorBy, RefusedOperations) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    const uint64_t value = 7;
    Call beyond(Kind::kPut, target.key, kBytes - 4);
    beyond.source = bytes_of(value);
    EXPECT_EQ(status_of(pair.a->carry_out(1, beyond)), HANARE_STATUS_OUT_OF_RANGE);
    auto& exposures = pair.b->exposures();
    Call read_only(Kind::kPut, exposures.capability(target.region, fabric::kRead).value(), 0);
    read_only.source = bytes_of(value);
    EXPECT_EQ(status_of(pair.a->carry_out(1, read_only)), HANARE_STATUS_PERMISSION);
    Call nobody(Kind::kPut, target.key, 0);
    EXPECT_EQ(status_of(pair.a->carry_out(2, nobody)), HANARE_STATUS_INVALID_ARGUMENT);

    ASSERT_TRUE(exposures.revoke(target.region));
    Call revoked(Kind::kPut, target.key, 0);
    revoked.source = bytes_of(value);
    EXPECT_EQ(status_of(pair.a->carry_out(1, revoked)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(target.word(0), 0u);
    const auto fresh = exposures.capability(target.region, fabric::kWrite).value();
    Call again(Kind::kPut, fresh, 0);
    again.source = bytes_of(value);
    EXPECT_TRUE(pair.a->carry_out(1, again));
    EXPECT_EQ(target.word(0), value);
}

TEST_P(CommunicatorBy, MemoryThatIsExposedStays) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    auto& exposures = pair.b->exposures();
    EXPECT_EQ(status_of(exposures.free(target.memory.data())), HANARE_STATUS_BUSY);
    EXPECT_EQ(status_of(exposures.free(target.memory.data() + 1)), HANARE_STATUS_NOT_FOUND);
    ASSERT_TRUE(exposures.hold(target.region));
    EXPECT_EQ(status_of(exposures.conceal(target.region)), HANARE_STATUS_BUSY);
    exposures.release(target.region);
    ASSERT_TRUE(exposures.conceal(target.region));
    EXPECT_EQ(status_of(exposures.conceal(target.region)), HANARE_STATUS_NOT_FOUND);
    Call late(Kind::kGet, target.key, 0);
    EXPECT_EQ(status_of(pair.a->carry_out(1, late)), HANARE_STATUS_BAD_KEY);
    EXPECT_TRUE(exposures.free(target.memory.data()));
}

// The library's own regions are not the program's.
TEST(Communicator, ControlMemoryIsNotExposedByTheProgram) {
    Pair pair;
    for (uint32_t region = 0; region < 4; ++region) {
        EXPECT_EQ(status_of(pair.a->exposures().conceal(region)), HANARE_STATUS_NOT_FOUND);
    }
}

TEST(Communicator, WhoHasNotComeYetIsWaitedFor) {
    Table table(2);
    TableJob first(table, 0);
    const auto a = Communicator::open(first, table.settings()).value();
    Call early(Kind::kGet, {}, 0, deadline_after(50));
    EXPECT_EQ(status_of(a->carry_out(1, early)), HANARE_STATUS_TIMEOUT);
    // As a posted one: its status.
    Posted posted;
    posted.operation.kind = Kind::kGet;
    posted.operation.deadline_ns = deadline_after(50);
    ASSERT_TRUE(a->post(1, posted));
    EXPECT_EQ(status_of(a->wait(posted)), HANARE_STATUS_TIMEOUT);

    TableJob second(table, 1);
    const auto b = Communicator::open(second, table.settings()).value();
    Exposed target(*b);
    use_all_kinds(*a, 1, target);
}

// A job that tells when somebody has begun to wait for a card.
class ToldJob : public TableJob {
public:
    using TableJob::TableJob;
    Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) override {
        asked.post();
        return TableJob::card_of(rank, timeout_ms);
    }
    sys::EventFd asked = sys::EventFd::open().value();
};

TEST(Communicator, WhoWaitsForATaskHoldsUpNoOther) {
    constexpr int kLimitMs = 5000;
    Table table(3);
    ToldJob job(table, 0);
    TableJob job_that_is_there(table, 1);
    TableJob job_that_is_late(table, 2);
    auto first = Communicator::open(job, {}).value();
    auto there = Communicator::open(job_that_is_there, {}).value();
    std::thread waits([&] { EXPECT_TRUE(first->way_to(2, soon())); });
    ASSERT_TRUE(sys::wait_until_readable(job.asked.number(), -1, kTestMs).first);
    const auto way = first->way_to(1, deadline_after(kLimitMs));
    EXPECT_TRUE(way) << way.error().text;
    auto late = Communicator::open(job_that_is_late, {}).value();
    waits.join();
}

TEST_P(CommunicatorBy, WhoHasClosedIsLost) {
    Pair pair(GetParam());
    const Exposed target(*pair.b);
    // Often enough for the region to be attached to.
    for (int i = 0; i < 100; ++i) {
        Call add(Kind::kFetch, target.key, 8);
        ASSERT_TRUE(pair.a->carry_out(1, add));
    }
    pair.b.reset();
    Call late(Kind::kFetch, target.key, 8);
    EXPECT_EQ(status_of(pair.a->carry_out(1, late)), HANARE_STATUS_PEER_LOST);
    EXPECT_TRUE(pair.a->flush_all(soon()));
}

TEST_P(CommunicatorBy, ManyThreadsConnectOnce) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
        threads.emplace_back([&] {
            Call add(Kind::kFetch, target.key, 8);
            add.operand = 1;
            EXPECT_TRUE(pair.a->carry_out(1, add));
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(target.word(8), 16u);
}

// ---- posted operations

struct Counter {
    Communicator* communicator = nullptr;
    std::deque<Posted>* operations = nullptr;
    size_t posted = 0;
    size_t completed = 0;
    fabric::Capability key;
    uint32_t rank = 0;
};

void make_add(Posted& posted, const Counter& counter) {
    posted.operation.kind = Kind::kFetch;
    posted.operation.capability = counter.key;
    posted.operation.operand = 1;
    posted.operation.deadline_ns = soon();
}

// Each posts the next.
void post_next(void* context, Posted&, hanare_status status) {
    auto& counter = *static_cast<Counter*>(context);
    EXPECT_EQ(status, HANARE_STATUS_OK);
    ++counter.completed;
    if (counter.posted == counter.operations->size()) return;
    Posted& next = (*counter.operations)[counter.posted++];
    make_add(next, counter);
    next.callback = post_next;
    next.context = &counter;
    EXPECT_TRUE(counter.communicator->post(counter.rank, next));
}

void count_by_callbacks(Communicator& source, uint32_t rank, Exposed& target) {
    constexpr size_t kCount = 200;
    std::deque<Posted> operations(kCount);
    Counter counter = {&source, &operations, 1, 0, target.key, rank};
    make_add(operations[0], counter);
    operations[0].callback = post_next;
    operations[0].context = &counter;
    ASSERT_TRUE(source.post(rank, operations[0]));
    while (counter.completed < kCount) {
        ASSERT_TRUE(source.flush(rank, soon()));
        ASSERT_FALSE(::testing::Test::HasFailure());
    }
    EXPECT_EQ(target.word(0), kCount);
    for (const Posted& each : operations) EXPECT_TRUE(each.is_complete());
}

TEST_P(CommunicatorBy, CallbacksThatPost) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    count_by_callbacks(*pair.a, 1, target);
    Exposed own(*pair.a);
    count_by_callbacks(*pair.a, 0, own);
}

TEST_P(CommunicatorBy, TestCompletes) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    Counter counter = {.key = target.key};
    Posted posted;
    make_add(posted, counter);
    size_t calls = 0;
    posted.callback = [](void* context, Posted&, hanare_status) {
        ++*static_cast<size_t*>(context);
    };
    posted.context = &calls;
    ASSERT_TRUE(pair.a->post(1, posted));
    EXPECT_EQ(calls, 0u);
    while (!pair.a->test(posted).value()) {
    }
    EXPECT_EQ(calls, 1u);
    EXPECT_TRUE(pair.a->test(posted).value());
    EXPECT_TRUE(pair.a->wait(posted));
    EXPECT_TRUE(pair.a->progress());
    EXPECT_EQ(calls, 1u);
}

TEST_P(CommunicatorBy, FlushCompletesWhatWasPosted) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    std::deque<Posted> operations(1000);
    const Counter counter = {.key = target.key};
    for (Posted& each : operations) {
        make_add(each, counter);
        ASSERT_TRUE(pair.a->post(1, each));
    }
    ASSERT_TRUE(pair.a->flush_all(soon()));
    EXPECT_EQ(target.word(0), operations.size());
    for (Posted& each : operations) {
        EXPECT_TRUE(each.is_complete());
        EXPECT_TRUE(pair.a->wait(each));
    }
}

TEST_P(CommunicatorBy, OperationsTakeEffectInOrder) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    std::array<uint64_t, 500> values{};
    std::deque<Posted> operations(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = i;
        operations[i].operation.kind = Kind::kPut;
        operations[i].operation.capability = target.key;
        operations[i].operation.source = bytes_of(values[i]);
        operations[i].operation.deadline_ns = soon();
        ASSERT_TRUE(pair.a->post(1, operations[i]));
        ASSERT_TRUE(pair.a->fence(1));
    }
    uint64_t last = 0;
    Call get(Kind::kGet, target.key, 0);
    get.destination = std::as_writable_bytes(std::span(&last, 1));
    ASSERT_TRUE(pair.a->carry_out(1, get));
    EXPECT_EQ(last, values.size() - 1);
    EXPECT_TRUE(pair.a->flush(1, soon()));
}

// ---- put and notify

TEST_P(CommunicatorBy, NoticeComesBehindThePut) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    std::vector<std::byte> data(kBytes / 2, std::byte{0x5a});
    // Behind the range, and before it.
    for (const uint64_t flag : {kBytes - 8, size_t{0}}) {
        std::fill(target.memory.begin(), target.memory.end(), std::byte{0});
        std::thread reader([&] {
            auto& word = *reinterpret_cast<std::atomic<uint32_t>*>(target.memory.data() + flag);
            const uint64_t until = soon();
            while (word.load() == 0 && sys::now_ns() < until) {
                wait_for_change(word, 0, until, Changes::kWaking);
            }
            EXPECT_EQ(word.load(), 3u);
            EXPECT_EQ(std::memcmp(target.memory.data() + 4096, data.data(), data.size()), 0);
        });
        Call put(Kind::kPut, target.key, 4096);
        put.source = data;
        Call notice(Kind::kFetch, target.key, flag);
        notice.operand = 3;
        EXPECT_TRUE(pair.a->put_and_notify(1, put, notice));
        reader.join();
    }
}

TEST_P(CommunicatorBy, NoNoticeOfARefusedPut) {
    Pair pair(GetParam());
    Exposed target(*pair.b);
    const std::vector<std::byte> data(64);
    for (const uint64_t flag : {kBytes - 8, size_t{0}}) {
        Call put(Kind::kPut, target.key, kBytes - 32);
        put.source = data;
        Call notice(Kind::kFetch, target.key, flag);
        notice.operand = 1;
        EXPECT_EQ(status_of(pair.a->put_and_notify(1, put, notice)), HANARE_STATUS_OUT_OF_RANGE);
        EXPECT_EQ(target.word(flag), 0u);
    }
    const auto fetch_only = pair.b->exposures().capability(target.region, fabric::kAtomic).value();
    Call put(Kind::kPut, fetch_only, 0);
    put.source = data;
    Call notice(Kind::kFetch, fetch_only, 1024);
    notice.operand = 1;
    EXPECT_EQ(status_of(pair.a->put_and_notify(1, put, notice)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(target.word(1024), 0u);
}

// ---- processes

// Processes that only serve; what they expose has the key that lies in the
// shared page.
struct Servers {
    explicit Servers(uint32_t count, By by = By::kMemory)
        : table(count + 1, false, by),
          keys(sys::Mapping::reserve_shared(4096).value()),
          end(sys::EventFd::open().value()) {
        for (uint32_t rank = 1; rank <= count; ++rank) {
            ready.push_back(sys::EventFd::open().value());
            processes.push_back(start_process([this, rank] { serve(rank); }));
        }
    }
    ~Servers() {
        end.post();
        for (const pid_t process : processes) {
            kill(process, SIGCONT);
            waitpid(process, nullptr, 0);
        }
    }
    void serve(uint32_t rank) {
        TableJob job(table, rank);
        const auto communicator = Communicator::open(job, table.settings()).value();
        // Not the library's memory: the task itself is needed for it.
        alignas(64) static std::byte plain[kBytes];
        const Exposed target(*communicator, plain);
        const Exposed allocated(*communicator);
        key(rank) = target.key;
        allocated_key(rank) = allocated.key;
        ready[rank - 1].post();
        sys::wait_until_readable(end.number(), -1, kTestMs);
    }
    fabric::Capability& key(uint32_t rank) {
        return reinterpret_cast<fabric::Capability*>(keys.address())[rank];
    }
    fabric::Capability& allocated_key(uint32_t rank) { return key(table.tasks() + rank); }
    void wait_until_ready() {
        for (auto& each : ready) {
            ASSERT_TRUE(sys::wait_until_readable(each.number(), -1, kTestMs).first);
        }
    }

    Table table;
    sys::Mapping keys;
    sys::EventFd end;
    std::vector<sys::EventFd> ready;
    std::vector<pid_t> processes;
};

hanare_status add_one(Communicator& source, uint32_t rank, const fabric::Capability& key,
                      int timeout_ms = kTestMs) {
    Call add(Kind::kFetch, key, 0, deadline_after(timeout_ms));
    add.operand = 1;
    return status_of(source.carry_out(rank, add));
}

TEST(CommunicatorProcesses, KilledTaskIsLostAndNobodyElse) {
    Servers servers(2);
    servers.wait_until_ready();
    TableJob job(servers.table, 0);
    const auto source = Communicator::open(job, {}).value();
    ASSERT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_OK);
    ASSERT_EQ(add_one(*source, 2, servers.key(2)), HANARE_STATUS_OK);
    kill(servers.processes[0], SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(servers.processes[0], &status, 0), servers.processes[0]);
    EXPECT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(add_one(*source, 2, servers.key(2)), HANARE_STATUS_OK);
    // Posted ones, too.
    Posted posted;
    make_add(posted, {.key = servers.key(1)});
    ASSERT_TRUE(source->post(1, posted));
    EXPECT_EQ(status_of(source->wait(posted)), HANARE_STATUS_PEER_LOST);
    EXPECT_TRUE(source->flush(2, soon()));
}

// Who was never connected to and is gone is lost as well.
TEST(CommunicatorProcesses, KilledBeforeAnybodyConnects) {
    Servers servers(1);
    servers.wait_until_ready();
    kill(servers.processes[0], SIGKILL);
    waitpid(servers.processes[0], nullptr, 0);
    TableJob job(servers.table, 0);
    const auto source = Communicator::open(job, {}).value();
    EXPECT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_PEER_LOST);
}

TEST(CommunicatorProcesses, StoppedTaskTimesOutAndComesBack) {
    Servers servers(2);
    servers.wait_until_ready();
    TableJob job(servers.table, 0);
    const auto source = Communicator::open(job, {}).value();
    ASSERT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_OK);
    kill(servers.processes[0], SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(servers.processes[0], &status, WUNTRACED), servers.processes[0]);
    EXPECT_EQ(add_one(*source, 1, servers.key(1), 100), HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(add_one(*source, 2, servers.key(2)), HANARE_STATUS_OK);
    Posted posted;
    make_add(posted, {.key = servers.key(1)});
    ASSERT_TRUE(source->post(1, posted));
    EXPECT_EQ(status_of(source->flush(1, deadline_after(100))), HANARE_STATUS_TIMEOUT);
    EXPECT_FALSE(posted.is_complete());
    kill(servers.processes[0], SIGCONT);
    EXPECT_TRUE(source->flush(1, soon()));
    EXPECT_TRUE(posted.is_complete());
    EXPECT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_OK);
}

// Of memory, which is in common, or UCX's: how soon it is attached to is the link's affair.
bool is_attached(fabric::Link& link, const fabric::Capability& key) {
    if (auto* const local = dynamic_cast<fabric::LocalLink*>(&link)) {
        return local->is_attached(key);
    }
#ifdef HANARE_HAVE_UCX
    if (auto* const by_ucx = dynamic_cast<fabric::UcxLink*>(&link)) {
        return by_ucx->is_attached(key);
    }
#endif
    return false;
}

// What is attached to needs no target that runs.
TEST_P(CommunicatorBy, AllocatedMemoryIsReachedWithoutTheTask) {
    if (GetParam() == By::kSockets) GTEST_SKIP() << "the task takes part";
    Servers servers(1, GetParam());
    servers.wait_until_ready();
    TableJob job(servers.table, 0);
    const auto source = Communicator::open(job, servers.table.settings()).value();
    const fabric::Capability& key = servers.allocated_key(1);
    uint64_t added = 0;
    const uint64_t until = soon();
    fabric::Link& link = *source->way_to(1, until).value()->link;
    while (!is_attached(link, key) && sys::now_ns() < until) {
        ASSERT_EQ(add_one(*source, 1, key), HANARE_STATUS_OK);
        ++added;
    }
    ASSERT_TRUE(is_attached(link, key));
    kill(servers.processes[0], SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(servers.processes[0], &status, WUNTRACED), servers.processes[0]);
    Call look(Kind::kFetch, key, 0);
    ASSERT_TRUE(source->carry_out(1, look));
    EXPECT_EQ(look.value(), added);
    EXPECT_EQ(add_one(*source, 1, servers.key(1), 100), HANARE_STATUS_TIMEOUT);
}

// Nobody writes there once it is concealed, though others go on trying.
TEST_P(CommunicatorBy, ConcealedMemoryIsTheTasksAlone) {
    Pair pair(GetParam());
    const auto memory = pair.b->exposures().allocate(kBytes).value();
    for (int round = 0; round < 30; ++round) {
        const Exposed target(*pair.b, memory);
        std::atomic<uint64_t> done{0};
        std::atomic<hanare_status> end{HANARE_STATUS_OK};
        std::thread writer([&] {
            for (uint64_t value = 1; end.load() == HANARE_STATUS_OK; ++value) {
                Call put(Kind::kPut, target.key, 0);
                const std::vector<uint64_t> words(512, value);
                put.source = std::as_bytes(std::span(words));
                end.store(status_of(pair.a->carry_out(1, put)));
                done.store(value);
            }
        });
        while (done.load() < 20 && end.load() == HANARE_STATUS_OK) std::this_thread::yield();
        EXPECT_TRUE(pair.b->exposures().conceal(target.region));
        const std::vector<std::byte> left(memory.begin(), memory.end());
        writer.join();
        EXPECT_EQ(end.load(), HANARE_STATUS_BAD_KEY);
        EXPECT_TRUE(std::ranges::equal(left, memory));
    }
}

// Freed and allocated again, by whichever way others reach it.
TEST_P(CommunicatorBy, MemoryComesAndGoes) {
    Pair pair(GetParam());
    auto& exposures = pair.b->exposures();
    for (int round = 0; round < 20; ++round) {
        const Exposed target(*pair.b);
        for (int i = 0; i < 20; ++i) {
            ASSERT_EQ(add_one(*pair.a, 1, target.key), HANARE_STATUS_OK);
        }
        ASSERT_TRUE(exposures.revoke(target.region));
        EXPECT_EQ(add_one(*pair.a, 1, target.key), HANARE_STATUS_BAD_KEY);
        const auto fresh =
            exposures.capability(target.region, fabric::kAtomic | fabric::kWrite).value();
        EXPECT_EQ(add_one(*pair.a, 1, fresh), HANARE_STATUS_OK);
        ASSERT_TRUE(exposures.conceal(target.region));
        EXPECT_EQ(add_one(*pair.a, 1, fresh), HANARE_STATUS_BAD_KEY);
        // The memory is the task's still, and can be exposed again, in parts, too.
        Exposed again(*pair.b, target.memory);
        const Exposed part(*pair.b, target.memory.first(4096));
        EXPECT_EQ(add_one(*pair.a, 1, again.key), HANARE_STATUS_OK);
        EXPECT_EQ(add_one(*pair.a, 1, part.key), HANARE_STATUS_OK);
        EXPECT_EQ(again.word(0), 23u);
        ASSERT_TRUE(exposures.conceal(part.region));
        ASSERT_TRUE(exposures.conceal(again.region));
        ASSERT_TRUE(exposures.free(target.memory.data()));
    }
}

void expect_all_is_forked(Communicator& communicator, const fabric::Capability& key) {
    const auto forked = HANARE_STATUS_FORKED;
    EXPECT_EQ(add_one(communicator, 1, key), forked);
    Posted posted;
    make_add(posted, {.key = key});
    EXPECT_EQ(status_of(communicator.post(1, posted)), forked);
    EXPECT_EQ(communicator.test(posted).error().status, forked);
    EXPECT_EQ(status_of(communicator.wait(posted)), forked);
    EXPECT_EQ(status_of(communicator.progress()), forked);
    EXPECT_EQ(status_of(communicator.flush(1, soon())), forked);
    EXPECT_EQ(status_of(communicator.flush_all(soon())), forked);
    EXPECT_EQ(status_of(communicator.fence(1)), forked);
}

TEST_P(CommunicatorBy, ChildrenOfForkHaveNothing) {
    Servers servers(1, GetParam());
    servers.wait_until_ready();
    TableJob job(servers.table, 0);
    auto source = Communicator::open(job, servers.table.settings()).value();
    ASSERT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_OK);
    const pid_t child = start_process([&] {
        expect_all_is_forked(*source, servers.key(1));
        source.reset();
    });
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(add_one(*source, 1, servers.key(1)), HANARE_STATUS_OK);
}

}  // namespace
}  // namespace hanare::job
