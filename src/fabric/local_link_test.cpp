// SPDX-License-Identifier: Apache-2.0
//
// LocalLink and SignalQueue against a process of their own, and what only they do; that they carry
// out operations as TCP does is in tcp_test.cpp.
#include "fabric/local_link.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "fabric/fifo.hpp"
#include "fabric/signal_queue.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/futex.hpp"
#include "sys/local_socket.hpp"
#include "sys/test_support.hpp"
#include "sys/thread_state.hpp"

namespace hanare::fabric {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int kConnectMs = 5000;

std::string address_of(pid_t process) { return "@hanare-local-test-" + std::to_string(process); }

std::unique_ptr<LocalLink> connect_to(const std::string& address, bool is_direct = true) {
    return LocalLink::connect({.address = address,
                               .spin_us = 20,
                               .timeout_ms = kConnectMs,
                               .is_direct = is_direct})
        .value();
}

// Until the region is there, operations go to the target's thread.
void attach(LocalLink& link, const Capability& key) {
    const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
    while (!link.is_attached(key) && sys::now_ns() < end_ns) {
        static_cast<void>(run(link, Get(key, 0, {})));
    }
    ASSERT_TRUE(link.is_attached(key));
}

class Local : public testing::Test {
protected:
    ~Local() override {
        if (link != nullptr) link->end();
        if (service != nullptr) service->stop();
    }

    const SharedBytes shared{kBytes};
    const std::span<std::byte> memory = shared.all();
    ExposedRegions regions;
    uint32_t region = regions.expose(memory, kRead | kWrite | kAtomic, shared.file()).value();
    Capability all = regions.capability(region, kRead | kWrite | kAtomic).value();
    Capability read_only = regions.capability(region, kRead).value();
    std::unique_ptr<TcpService> service =
        TcpService::open({.host = {}, .local_address = address_of(getpid()), .spin_us = 20},
                         regions)
            .value();
    std::atomic<uint32_t> serving{0};
    std::jthread thread{[this] {
        serving = sys::current_thread_id();
        service->run();
    }};
    std::unique_ptr<LocalLink> link = connect_to(address_of(getpid()));
    std::vector<std::byte> seen = std::vector<std::byte>(64);
};

TEST_F(Local, NobodyThere) {
    const auto none = LocalLink::connect({.address = "@hanare-nobody-there", .timeout_ms = 100});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().status, HANARE_STATUS_PEER_LOST);
}

TEST_F(Local, WithoutTheTargetsThread) {
    attach(*link, all);
    attach(*link, read_only);
    std::vector<std::byte> data(64, std::byte{7});
    EXPECT_EQ(run(*link, Put(all, 100, data)), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Get(read_only, 100, seen)), HANARE_STATUS_OK);
    EXPECT_EQ(seen, data);
    EXPECT_EQ(run(*link, Put(read_only, 0, data)), HANARE_STATUS_PERMISSION);
    EXPECT_EQ(run(*link, Get(all, kBytes - 63, seen)), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(run(*link, Get(all, kBytes - 64, seen)), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Fetch(all, 4, FetchOp::kAdd, 1)), HANARE_STATUS_INVALID_ARGUMENT);
    Fetch narrow(all, 4, FetchOp::kAdd, 3);
    narrow.width = 4;
    EXPECT_EQ(run(*link, narrow), HANARE_STATUS_OK);
    EXPECT_EQ(memory[4], std::byte{3});
}

TEST_F(Local, WhoHasARevokedKeyHasOtherMemory) {
    attach(*link, all);
    std::vector<std::byte> data(64, std::byte{7});
    ASSERT_EQ(run(*link, Put(all, 0, data)), HANARE_STATUS_OK);
    ASSERT_TRUE(regions.revoke(region));
    EXPECT_EQ(memory[0], std::byte{7});
    EXPECT_EQ(run(*link, Put(all, 0, std::vector<std::byte>(64))), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(memory[0], std::byte{7});
    const Capability fresh = regions.capability(region, kRead | kWrite | kAtomic).value();
    attach(*link, fresh);
    EXPECT_EQ(run(*link, Get(fresh, 0, seen)), HANARE_STATUS_OK);
    EXPECT_EQ(seen, data);
    ASSERT_TRUE(regions.conceal(region));
    EXPECT_EQ(run(*link, Get(fresh, 0, seen)), HANARE_STATUS_BAD_KEY);
    EXPECT_EQ(memory[0], std::byte{7});
}

// What is not taken from the memory itself: who kept a mapping.
TEST_F(Local, TheDescriptorIsForWhatTheKeyAllows) {
    const auto file_for = [&](const Capability& key, hanare_status& status) {
        RegionRequest request;
        EXPECT_EQ(request.begin(address_of(getpid()), key), 0);
        const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
        while (!request.is_answered() && sys::now_ns() < end_ns) std::this_thread::yield();
        status = request.status();
        return request.take_file();
    };
    hanare_status status = HANARE_STATUS_OK;
    const sys::FileDescriptor to_read = file_for(read_only, status);
    ASSERT_TRUE(to_read.is_open());
    EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, to_read.number(), 0),
              MAP_FAILED);
    Capability forged = all;
    forged.key.words[0] ^= 1;
    EXPECT_FALSE(file_for(forged, status).is_open());
    EXPECT_EQ(status, HANARE_STATUS_BAD_KEY);
    Capability wider = read_only;
    wider.rights = all.rights;
    EXPECT_FALSE(file_for(wider, status).is_open());
    EXPECT_EQ(status, HANARE_STATUS_BAD_KEY);

    const sys::FileDescriptor to_write = file_for(all, status);
    void* const kept =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, to_write.number(), 0);
    ASSERT_NE(kept, MAP_FAILED);
    std::memset(kept, 1, 10);
    EXPECT_EQ(memory[0], std::byte{1});
    ASSERT_TRUE(regions.revoke(region));
    std::memset(kept, 2, 10);
    EXPECT_EQ(memory[0], std::byte{1});
    munmap(kept, kBytes);
}

// Bytes that make no sense end their connection and no other.
TEST_F(Local, NonsenseInTheGreeting) {
    LocalRequest request;
    request.magic ^= 1;
    LocalRequest unknown;
    unknown.what = static_cast<LocalRequest::What>(9);
    for (const LocalRequest& bad : {request, unknown}) {
        const sys::FileDescriptor socket = sys::connect_local(address_of(getpid())).value();
        ASSERT_EQ(sys::send_message(socket.number(), std::as_bytes(std::span(&bad, 1))), 0);
        ASSERT_TRUE(sys::wait_for_socket(socket.number(), {.to_read = true}, kConnectMs).to_read);
        EXPECT_EQ(sys::receive_message(socket.number(), seen), 0);
    }
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_OK);
}

// Who takes no answers keeps nobody awake.
TEST_F(Local, AnswersThatNobodyTakes) {
    LocalConnection peer = connect_locally(address_of(getpid()), kConnectMs).value();
    RequestHeader request = {.kind = Kind::kGet, .bytes = kRequestBytesMax, .capability = all};
    const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
    for (uint32_t number = 0; number < 200; ++number) {
        request.sequence = number;
        seal(request);
        const sys::Part part = {reinterpret_cast<std::byte*>(&request), sizeof request};
        ASSERT_EQ(peer.transport->send({&part, 1}), static_cast<ptrdiff_t>(sizeof request));
    }
    auto state = sys::ThreadState::kRunning;
    while (state != sys::ThreadState::kInSystemCall && sys::now_ns() < end_ns) {
        state = sys::thread_state(serving);
    }
    EXPECT_EQ(state, sys::ThreadState::kInSystemCall);
    // And gets all of them when it does.
    std::vector<std::byte> room(1 << 20);
    size_t received = 0;
    const sys::Part all_of_it = {room.data(), room.size()};
    const size_t expected = 200 * (sizeof(AnswerHeader) + kRequestBytesMax);
    while (received < expected && sys::now_ns() < end_ns) {
        const ptrdiff_t moved = peer.transport->receive({&all_of_it, 1});
        if (moved > 0) received += static_cast<size_t>(moved);
    }
    EXPECT_EQ(received, expected);
    EXPECT_EQ(run(*link, Get(all, 0, seen)), HANARE_STATUS_OK);
}

// Foreign memory: what is not that of a file.
TEST_F(Local, MemoryOfNoFile) {
    std::vector<std::byte> own = random_bytes(*std::make_unique<Prng>(1), 100'000);
    const uint32_t number = regions.expose(own, kRead | kWrite).value();
    const Capability key = regions.capability(number, kRead | kWrite).value();
    std::vector<std::byte> copy(own.size());
    for (int i = 0; i < 20; ++i) {
        copy.assign(copy.size(), std::byte{0});
        ASSERT_EQ(run(*link, Get(key, 0, copy)), HANARE_STATUS_OK);
        ASSERT_EQ(copy, own);
        EXPECT_EQ(run(*link, Get(key, 1, copy)), HANARE_STATUS_OUT_OF_RANGE);
        const std::vector<std::byte> data(9000, static_cast<std::byte>(i));
        ASSERT_EQ(run(*link, Put(key, 500, data)), HANARE_STATUS_OK);
        ASSERT_EQ(own[500], data[0]);
    }
    ASSERT_TRUE(regions.conceal(number));
    EXPECT_EQ(run(*link, Get(key, 0, copy)), HANARE_STATUS_BAD_KEY);
}

// Many more regions than there are places for, used in turns.
TEST_F(Local, ManyRegions) {
    std::vector<std::unique_ptr<SharedBytes>> memories;
    std::vector<Capability> keys;
    for (int i = 0; i < 400; ++i) {
        memories.push_back(std::make_unique<SharedBytes>(4096));
        memories.back()->all()[0] = static_cast<std::byte>(i);
        const uint32_t number =
            regions.expose(memories.back()->all(), kRead, memories.back()->file()).value();
        keys.push_back(regions.capability(number, kRead).value());
    }
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < keys.size(); ++i) {
            ASSERT_EQ(run(*link, Get(keys[i], 0, std::span(seen).first(1))), HANARE_STATUS_OK);
            ASSERT_EQ(seen[0], static_cast<std::byte>(i));
        }
    }
}

// ---- signals

struct Noted {
    std::atomic<uint32_t> thread{0};
    std::atomic<uint32_t> count{0};
    std::atomic<uint64_t> sum{0};
};

void note(void* context, std::span<const std::byte> arguments) {
    auto& noted = *static_cast<Noted*>(context);
    uint64_t value = 0;
    std::memcpy(&value, arguments.data(), std::min(arguments.size(), sizeof value));
    noted.thread = sys::current_thread_id();
    noted.sum += value;
    ++noted.count;
}

std::vector<std::byte> message_for(uint32_t handler, uint64_t value) {
    const SignalQueue::Header header = {.handler = handler};
    std::vector<std::byte> message(sizeof header + sizeof value);
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + sizeof header, &value, sizeof value);
    return message;
}

class LocalSignal : public Local {
protected:
    std::unique_ptr<SignalQueue> queue = SignalQueue::open(regions, 64 * 1024).value();
    Noted noted;
    uint64_t soon() const { return sys::now_ns() + 5000 * kNsPerMs; }
};

TEST_F(LocalSignal, PolledOrWaitedFor) {
    ASSERT_EQ(queue->set_handler(3, note, &noted), HANARE_STATUS_OK);
    EXPECT_EQ(queue->set_handler(SignalQueue::kHandlersMax, note, &noted),
              HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(queue->poll(), 0u);
    for (uint64_t i = 1; i <= 10; ++i) {
        EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, i))), HANARE_STATUS_OK);
    }
    EXPECT_EQ(noted.count, 0u);
    EXPECT_EQ(queue->poll(), 10u);
    EXPECT_EQ(noted.sum, 55u);
    // Nobody's, and too short: dropped.
    EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(4, 1))), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Signal(queue->capability(), std::vector<std::byte>(3))), HANARE_STATUS_OK);
    EXPECT_EQ(queue->poll(), 2u);
    EXPECT_EQ(queue->wait(sys::now_ns() + 10 * kNsPerMs), HANARE_STATUS_TIMEOUT);
    for (int i = 0; i < 100; ++i) {
        std::jthread sender([&] {
            EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, 1))), HANARE_STATUS_OK);
        });
        EXPECT_EQ(queue->wait(soon()), HANARE_STATUS_OK);
    }
    EXPECT_EQ(noted.sum, 155u);
    EXPECT_EQ(run(*link, Push(queue->capability(), message_for(3, 1))), HANARE_STATUS_PERMISSION);
}

// The thread computes, and its handler runs all the same, in it.
TEST_F(LocalSignal, Interrupts) {
    ASSERT_EQ(queue->set_handler(3, note, &noted), HANARE_STATUS_OK);
    ASSERT_TRUE(queue->interrupt_this_thread());
    const auto other = SignalQueue::open(regions, 4096).value();
    EXPECT_EQ(other->interrupt_this_thread().error().status, HANARE_STATUS_BUSY);
    constexpr uint32_t kSignals = 2000;
    std::jthread sender([&] {
        const auto own = connect_to(address_of(getpid()));
        for (uint32_t i = 0; i < kSignals;) {
            const hanare_status status = run(*own, Signal(queue->capability(), message_for(3, 1)));
            ASSERT_TRUE(status == HANARE_STATUS_OK || status == HANARE_STATUS_FULL) << status;
            if (status == HANARE_STATUS_OK) ++i;
        }
    });
    const uint64_t end_ns = soon();
    while (noted.count < kSignals && sys::now_ns() < end_ns) {
    }
    EXPECT_EQ(noted.count, kSignals);
    EXPECT_EQ(noted.sum, kSignals);
    EXPECT_EQ(noted.thread, sys::current_thread_id());
    queue->stop_interrupting();
}

// Whoever gets the number of a thread that has ended expects no handlers.
TEST_F(LocalSignal, AThreadThatHasEndedIsNotInterrupted) {
    ASSERT_EQ(queue->set_handler(3, note, &noted), HANARE_STATUS_OK);
    std::thread([&] { EXPECT_TRUE(queue->interrupt_this_thread()); }).join();
    EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, 1))), HANARE_STATUS_OK);
    EXPECT_EQ(noted.count, 0u);
    // Another queue may interrupt now, and this one is asked.
    const auto other = SignalQueue::open(regions, 4096).value();
    EXPECT_TRUE(other->interrupt_this_thread());
    other->stop_interrupting();
    EXPECT_EQ(queue->poll(), 1u);
}

// What interrupts a thread on its way to wait() has come, too.
TEST_F(LocalSignal, WaitingSeesWhatHasInterrupted) {
    ASSERT_EQ(queue->set_handler(3, note, &noted), HANARE_STATUS_OK);
    ASSERT_TRUE(queue->interrupt_this_thread());
    EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, 1))), HANARE_STATUS_OK);
    const uint64_t end_ns = soon();
    while (noted.count == 0 && sys::now_ns() < end_ns) {
    }
    EXPECT_EQ(queue->wait(soon()), HANARE_STATUS_OK);
    EXPECT_EQ(queue->wait(sys::now_ns() + 10 * kNsPerMs), HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(noted.count, 1u);
    queue->stop_interrupting();
}

// Who finds no room tells the owner, who may have missed the others.
TEST_F(LocalSignal, FullRings) {
    ASSERT_EQ(queue->set_handler(3, note, &noted), HANARE_STATUS_OK);
    hanare_status status = HANARE_STATUS_OK;
    uint32_t sent = 0;
    while ((status = run(*link, Signal(queue->capability(), message_for(3, 1)))) ==
           HANARE_STATUS_OK) {
        ++sent;
    }
    ASSERT_EQ(status, HANARE_STATUS_FULL);
    // Nobody has rung for this bell.
    Fifo(queue->memory()).hang_bell(Fifo::Bell::kSleeper);
    std::jthread sleeper([&] {
        Fifo own(queue->memory());
        own.sleep(10'000);
        queue->poll();
    });
    EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, 1))), HANARE_STATUS_FULL);
    sleeper.join();
    EXPECT_EQ(noted.count, sent);
}

// A handler that is replaced runs with its own context, never with the other's.
TEST_F(LocalSignal, HandlersAreReplacedAsAWhole) {
    static std::atomic<bool> is_mixed{false};
    static int contexts[2];
    const auto first = [](void* context, std::span<const std::byte>) {
        if (context != &contexts[0]) is_mixed = true;
    };
    const auto second = [](void* context, std::span<const std::byte>) {
        if (context != &contexts[1]) is_mixed = true;
    };
    std::atomic<bool> is_over{false};
    std::jthread setter([&] {
        while (!is_over) {
            queue->set_handler(3, first, &contexts[0]);
            queue->set_handler(3, second, &contexts[1]);
        }
    });
    for (int i = 0; i < 5000; ++i) {
        EXPECT_EQ(run(*link, Signal(queue->capability(), message_for(3, 1))), HANARE_STATUS_OK);
        queue->poll();
    }
    is_over = true;
    EXPECT_FALSE(is_mixed);
}

// Whoever is in a queue when its memory is replaced leaves no lock behind.
TEST_F(Local, QueuesAreRevokedWhileTheyAreUsed) {
    const SharedBytes queue_memory(64 * 1024);
    ASSERT_EQ(Fifo::format(queue_memory.all()), HANARE_STATUS_OK);
    const uint32_t number = regions.expose(queue_memory.all(), kPush, queue_memory.file()).value();
    std::atomic<bool> is_over{false};
    std::atomic<uint32_t> pushed{0};
    std::atomic<hanare_status> last_refusal{HANARE_STATUS_OK};
    std::vector<std::jthread> pushers;
    for (int i = 0; i < 2; ++i) {
        pushers.emplace_back([&] {
            const auto own = connect_to(address_of(getpid()));
            const std::vector<std::byte> message(100);
            while (!is_over) {
                const auto key = regions.capability(number, kPush);
                if (!key) continue;
                const hanare_status status = run(*own, Push(*key, message));
                if (status == HANARE_STATUS_OK) {
                    ++pushed;
                } else {
                    last_refusal = status;
                }
            }
        });
    }
    std::vector<std::byte> room(kMessageBytesMax);
    const uint64_t end_ns = sys::now_ns() + 60'000 * kNsPerMs;
    for (int round = 0; round < 200; ++round) {
        // By then they have attached to it.
        const uint32_t before = pushed;
        while (pushed < before + 50 && sys::now_ns() < end_ns) std::this_thread::yield();
        const bool is_revoked = pushed >= before + 50 && regions.revoke(number);
        EXPECT_TRUE(is_revoked) << "round " << round << ", " << pushed - before
                                << " pushed, last refused for " << last_refusal;
        if (!is_revoked) break;
        size_t bytes = 0;
        Fifo queue(queue_memory.all());
        hanare_status status = HANARE_STATUS_OK;
        while ((status = queue.pop(room, bytes)) == HANARE_STATUS_OK) {
        }
        EXPECT_TRUE(status == HANARE_STATUS_EMPTY || status == HANARE_STATUS_BUSY) << status;
    }
    is_over = true;
    pushers.clear();
    ASSERT_TRUE(regions.revoke(number));
    const std::vector<std::byte> message(100);
    const hanare_status last = run(*link, Push(regions.capability(number, kPush).value(), message));
    EXPECT_TRUE(last == HANARE_STATUS_OK || last == HANARE_STATUS_FULL) << last;
}

// A word that somebody sleeps on.
TEST_F(Local, AFetchOpWakes) {
    attach(*link, all);
    for (const bool is_direct : {true, false}) {
        const auto own = connect_to(address_of(getpid()), is_direct);
        if (is_direct) attach(*own, all);
        auto& word = *reinterpret_cast<std::atomic<uint32_t>*>(memory.data());
        word = 0;
        std::jthread sender([&] {
            Fetch add(all, 0, FetchOp::kAdd, 1);
            add.wakes = true;
            EXPECT_EQ(run(*own, add), HANARE_STATUS_OK);
        });
        const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
        while (word == 0 && sys::now_ns() < end_ns) sys::shared_futex_wait(word, 0, 10'000);
        EXPECT_LT(sys::now_ns(), end_ns);
    }
}

// ---- another process

// A target of its own, which serves until it is killed.
class LocalPeer : public testing::Test {
protected:
    LocalPeer() {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        child = fork();
        if (child == 0) serve(ends[1]);
        close(ends[1]);
        EXPECT_EQ(read(ends[0], &key, sizeof key), static_cast<ssize_t>(sizeof key));
        close(ends[0]);
        link = connect_to(address_of(child));
    }
    ~LocalPeer() override {
        if (link != nullptr) link->end();
        end_child();
    }
    void end_child() {
        if (child <= 0) return;
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        child = 0;
    }
    [[noreturn]] static void serve(int out) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const SharedBytes memory(kBytes);
        ExposedRegions regions;
        const uint32_t number = regions.expose(memory.all(), kRead | kWrite, memory.file()).value();
        const Capability capability = regions.capability(number, kRead | kWrite).value();
        const auto service =
            TcpService::open({.host = {}, .local_address = address_of(getpid()), .spin_us = 0},
                             regions)
                .value();
        if (write(out, &capability, sizeof capability) != sizeof capability) _exit(1);
        service->run();
        _exit(0);
    }

    pid_t child = 0;
    Capability key;
    std::unique_ptr<LocalLink> link;
    std::vector<std::byte> data = std::vector<std::byte>(64, std::byte{9});
    std::vector<std::byte> seen = std::vector<std::byte>(64);
};

TEST_F(LocalPeer, Killed) {
    attach(*link, key);
    ASSERT_EQ(run(*link, Put(key, 0, data)), HANARE_STATUS_OK);
    end_child();
    EXPECT_EQ(run(*link, Put(key, 0, data)), HANARE_STATUS_PEER_LOST);
    EXPECT_TRUE(link->is_lost());
}

TEST_F(LocalPeer, KilledWhileSomebodyWaits) {
    kill(child, SIGSTOP);
    Get get(key, 0, seen);
    link->post(get);
    EXPECT_FALSE(link->test(get));
    std::jthread killer([this] { end_child(); });
    EXPECT_EQ(link->wait(get), HANARE_STATUS_PEER_LOST);
}

// One that is stopped can still be reached by loads and stores, and else shows as a time-out.
TEST_F(LocalPeer, Stopped) {
    attach(*link, key);
    kill(child, SIGSTOP);
    EXPECT_EQ(run(*link, Put(key, 0, data)), HANARE_STATUS_OK);
    EXPECT_EQ(run(*link, Get(key, 0, seen)), HANARE_STATUS_OK);
    EXPECT_EQ(seen, data);
    // A key that is wrong is the target's to judge.
    Capability forged = key;
    forged.key.words[0] ^= 1;
    Get late(forged, 0, seen);
    late.deadline_ns = sys::now_ns() + 50 * kNsPerMs;
    EXPECT_EQ(run(*link, late), HANARE_STATUS_TIMEOUT);
    const auto none = LocalLink::connect({.address = address_of(child), .timeout_ms = 50});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().status, HANARE_STATUS_TIMEOUT);
    kill(child, SIGCONT);
    EXPECT_EQ(run(*link, Get(key, 0, seen)), HANARE_STATUS_OK);
}

}  // namespace
}  // namespace hanare::fabric
