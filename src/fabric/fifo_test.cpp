// SPDX-License-Identifier: Apache-2.0
#include "fabric/fifo.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "sys/clock.hpp"

namespace hanare::fabric {
namespace {

class FifoTest : public testing::Test {
protected:
    void make(size_t bytes) {
        size_ = bytes;
        memory_ = static_cast<std::byte*>(
            mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(memory_, MAP_FAILED);
        ASSERT_EQ(Fifo::format({memory_, bytes}), HANARE_STATUS_OK);
    }
    ~FifoTest() override {
        if (memory_ != nullptr) munmap(memory_, kMappedBytes);
    }
    Fifo fifo() const { return Fifo({memory_, size_}); }

    static constexpr size_t kMappedBytes = 1 << 16;
    std::byte* memory_ = nullptr;
    size_t size_ = 0;
};

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

TEST_F(FifoTest, RandomMessagesKeepOrderAndContent) {
    make(1000);  // no multiple of the unit
    Prng prng(7);
    std::deque<std::vector<std::byte>> expected;
    size_t used = 0;
    for (int turn = 0; turn < 20'000; ++turn) {
        std::vector<std::byte> room(200);
        size_t bytes = 0;
        if (prng.below(2) == 0) {
            std::vector<std::byte> message(prng.below(150));
            for (std::byte& byte : message) byte = static_cast<std::byte>(prng.next());
            const size_t needed = 8 + (message.size() + 7) / 8 * 8;
            const bool fits = used + needed <= (1000 - Fifo::kHeaderBytes) / 8 * 8;
            ASSERT_EQ(fifo().push(message), fits ? HANARE_STATUS_OK : HANARE_STATUS_FULL);
            if (!fits) continue;
            used += needed;
            expected.push_back(message);
        } else if (expected.empty()) {
            ASSERT_EQ(fifo().pop(room, bytes), HANARE_STATUS_EMPTY);
        } else {
            ASSERT_EQ(fifo().pop(room, bytes), HANARE_STATUS_OK);
            room.resize(bytes);
            ASSERT_TRUE(room == expected.front());
            used -= 8 + (bytes + 7) / 8 * 8;
            expected.pop_front();
        }
    }
}

TEST_F(FifoTest, MessagesThatDoNotFit) {
    make(Fifo::kHeaderBytes + 64);
    std::vector<std::byte> message(57);
    EXPECT_EQ(fifo().push(message), HANARE_STATUS_OUT_OF_RANGE);
    message.resize(56);
    EXPECT_EQ(fifo().push(message), HANARE_STATUS_OK);
    EXPECT_EQ(fifo().push({}), HANARE_STATUS_FULL);
    size_t bytes = 0;
    std::vector<std::byte> room(55);
    EXPECT_EQ(fifo().pop(room, bytes), HANARE_STATUS_OUT_OF_RANGE);
    EXPECT_EQ(bytes, 56u);
    room.resize(56);
    EXPECT_EQ(fifo().pop(room, bytes), HANARE_STATUS_OK);
    EXPECT_EQ(Fifo::format({memory_, Fifo::kHeaderBytes + 15}), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(Fifo::format({memory_ + 8, 1024}), HANARE_STATUS_INVALID_ARGUMENT);
}

// 64 producers in processes and threads, one consumer.
TEST_F(FifoTest, ManyProducers) {
    make(4096);
    constexpr uint32_t kProcesses = 8;
    constexpr uint32_t kThreads = 8;
    constexpr uint32_t kMessages = 300;
    struct Message {
        uint32_t producer;
        uint32_t number;
        uint64_t padding[5];
    };
    std::vector<pid_t> children;
    for (uint32_t process = 0; process < kProcesses; ++process) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            std::vector<std::thread> threads;
            for (uint32_t thread = 0; thread < kThreads; ++thread) {
                threads.emplace_back([this, producer = process * kThreads + thread] {
                    for (uint32_t number = 0; number < kMessages; ++number) {
                        const Message message = {producer, number, {producer ^ number}};
                        while (fifo().push(std::as_bytes(std::span(&message, 1))) !=
                               HANARE_STATUS_OK) {
                            std::this_thread::yield();
                        }
                    }
                });
            }
            for (std::thread& thread : threads) thread.join();
            _exit(0);
        }
        children.push_back(child);
    }
    std::map<uint32_t, uint32_t> next;
    for (uint32_t left = kProcesses * kThreads * kMessages; left > 0;) {
        Message message;
        size_t bytes = 0;
        const hanare_status status =
            fifo().pop(std::as_writable_bytes(std::span(&message, 1)), bytes);
        if (status == HANARE_STATUS_EMPTY || status == HANARE_STATUS_BUSY) {
            std::this_thread::yield();
            continue;
        }
        ASSERT_EQ(status, HANARE_STATUS_OK);
        ASSERT_EQ(bytes, sizeof message);
        ASSERT_EQ(message.number, next[message.producer]++);
        ASSERT_EQ(message.padding[0], message.producer ^ message.number);
        --left;
    }
    EXPECT_EQ(next.size(), kProcesses * kThreads);
    for (const pid_t child : children) {
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

// Messages that say of themselves whether they are whole.
struct Marked {
    uint32_t number;
    uint32_t producer;
    uint64_t copies[12];
};
Marked marked(uint32_t producer, uint32_t number) {
    Marked message = {number, producer, {}};
    for (uint64_t& copy : message.copies) copy = uint64_t{number} << 32 | producer;
    return message;
}

class FifoConsumers : public FifoTest {
protected:
    static constexpr uint32_t kMessages = 20'000;
    const uint64_t end_ns = sys::now_ns() + 60'000'000'000;

    void push_all(uint32_t producer) {
        for (uint32_t number = 0; number < kMessages; ++number) {
            const Marked message = marked(producer, number);
            while (fifo().push(std::as_bytes(std::span(&message, 1))) != HANARE_STATUS_OK) {
                if (sys::now_ns() > end_ns) return;
                std::this_thread::yield();
            }
        }
    }
    bool goes_on(uint32_t messages) const { return popped < messages && sys::now_ns() < end_ns; }

public:
    // Whether there was one; then it is counted.
    bool pop_one() {
        Marked message;
        size_t bytes = 0;
        if (fifo().pop(std::as_writable_bytes(std::span(&message, 1)), bytes) != HANARE_STATUS_OK) {
            return false;
        }
        const Marked expected = marked(message.producer, message.number);
        const bool is_good = bytes == sizeof message && message.number < kMessages &&
                             message.producer < counts.size() &&
                             std::memcmp(&message, &expected, bytes) == 0;
        if (is_good) {
            counts[message.producer][message.number].fetch_add(1);
        } else {
            bad.fetch_add(1);
        }
        popped.fetch_add(1);
        return true;
    }

protected:
    void check(uint32_t producers) {
        EXPECT_EQ(bad, 0u);
        for (uint32_t producer = 0; producer < producers; ++producer) {
            for (const auto& count : counts[producer]) ASSERT_EQ(count, 1u);
        }
    }
    std::vector<std::vector<std::atomic<uint32_t>>> counts = [] {
        std::vector<std::vector<std::atomic<uint32_t>>> all;
        for (int i = 0; i < 2; ++i) all.emplace_back(kMessages);
        return all;
    }();
    std::atomic<uint32_t> bad{0};
    std::atomic<uint32_t> popped{0};
};

// Each message goes to one of them, as a whole, though its place is written anew at once.
TEST_F(FifoConsumers, Many) {
    make(Fifo::kHeaderBytes + 3 * (sizeof(Marked) + Fifo::kMessageBytes));
    std::vector<std::jthread> threads;
    for (uint32_t producer = 0; producer < 2; ++producer) {
        threads.emplace_back([this, producer] { push_all(producer); });
    }
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([this] {
            while (goes_on(2 * kMessages)) {
                if (!pop_one()) std::this_thread::yield();
            }
        });
    }
    threads.clear();
    check(2);
}

// Who pops and is interrupted holds up no handler that pops, too.
TEST_F(FifoConsumers, InASignalHandler) {
    static FifoConsumers* popping = nullptr;
    popping = this;
    make(Fifo::kHeaderBytes + 3 * (sizeof(Marked) + Fifo::kMessageBytes));
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int) {
        for (int i = 0; i < 3; ++i) popping->pop_one();
    };
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    const pthread_t consumer = pthread_self();
    std::jthread producer([this] { push_all(0); });
    std::jthread interrupter([this, consumer] {
        while (goes_on(kMessages)) {
            pthread_kill(consumer, SIGUSR1);
            std::this_thread::yield();
        }
    });
    while (goes_on(kMessages)) {
        if (!pop_one()) std::this_thread::yield();
    }
    producer.join();
    interrupter.join();
    sigaction(SIGUSR1, &before, nullptr);
    check(1);
}

// Who is killed while it pops has popped a message, or has not; nobody waits for it.
TEST_F(FifoTest, ConsumersThatAreKilledHoldUpNobody) {
    make(4096);
    const std::string text(100, 'x');
    std::vector<std::byte> room(text.size());
    size_t bytes = 0;
    for (int round = 0; round < 50; ++round) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) fifo().pop(room, bytes);
        }
        // It has begun when there is room again.
        while (fifo().push(bytes_of(text)) != HANARE_STATUS_FULL) {
        }
        while (fifo().push(bytes_of(text)) != HANARE_STATUS_OK) std::this_thread::yield();
        kill(child, SIGKILL);
        hanare_status status = HANARE_STATUS_OK;
        // Nobody has waited for it yet.
        while ((status = fifo().pop(room, bytes)) == HANARE_STATUS_OK) {
            ASSERT_EQ(bytes, text.size());
        }
        ASSERT_EQ(status, HANARE_STATUS_EMPTY);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
    }
}

TEST_F(FifoTest, ProducersThatAreKilledTakeNothingWithThem) {
    make(4096);
    const std::string text(100, 'x');
    for (int round = 0; round < 50; ++round) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) fifo().push(bytes_of(text));
        }
        // It has begun.
        std::vector<std::byte> room(text.size());
        size_t bytes = 0;
        while (fifo().pop(room, bytes) != HANARE_STATUS_OK) std::this_thread::yield();
        kill(child, SIGKILL);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        hanare_status status = HANARE_STATUS_OK;
        while ((status = fifo().pop(room, bytes)) == HANARE_STATUS_OK) {
            ASSERT_EQ(bytes, text.size());
            ASSERT_EQ(std::memcmp(room.data(), text.data(), bytes), 0);
        }
        ASSERT_EQ(status, HANARE_STATUS_EMPTY);
        ASSERT_EQ(fifo().push(bytes_of(text)), HANARE_STATUS_OK);
        ASSERT_EQ(fifo().pop(room, bytes), HANARE_STATUS_OK);
    }
}

// Whatever is in the memory, nothing outside is touched.
TEST_F(FifoTest, Nonsense) {
    make(512);
    Prng prng(11);
    std::vector<std::byte> room(600);
    const std::vector<std::byte> message(32, std::byte{5});
    for (int round = 0; round < 20'000; ++round) {
        ASSERT_EQ(Fifo::format({memory_, 512}), HANARE_STATUS_OK);
        for (int i = 0; i < 3; ++i) fifo().push(message);
        for (uint64_t changes = 1 + prng.below(8); changes > 0; --changes) {
            memory_[prng.below(512)] = static_cast<std::byte>(prng.next());
        }
        std::memset(memory_ + 64, 0, 4);  // the lock, else every round would wait for nobody
        std::memset(memory_ + 512, 0x77, 256);
        size_t bytes = 0;
        for (int i = 0; i < 5; ++i) {
            fifo().pop(room, bytes);
            fifo().push(message);
        }
        for (size_t i = 512; i < 768; ++i) ASSERT_EQ(memory_[i], std::byte{0x77});
    }
}

}  // namespace
}  // namespace hanare::fabric
