// SPDX-License-Identifier: Apache-2.0
//
// A job for tests: the cards lie in memory that threads, and processes which
// were forked later, share.  Included by *_test.cpp only.
#pragma once

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "fabric/ucx_context.hpp"
#include "job/communicator.hpp"
#include "job/group.hpp"
#include "job/job.hpp"
#include "sys/event.hpp"
#include "sys/memory.hpp"

namespace hanare::job::testing {

// Of any wait in a test: reached only by what has failed.
inline constexpr int kTestMs = 60'000;
inline uint64_t soon() { return deadline_after(kTestMs); }

// By what the tasks of a job reach each other.
enum class By : uint8_t { kMemory, kSockets, kUcxAndMemory, kUcxAndSockets };
inline constexpr std::array kAllWays = {By::kMemory, By::kSockets, By::kUcxAndMemory,
                                        By::kUcxAndSockets};

inline bool is_by_ucx(By by) { return by == By::kUcxAndMemory || by == By::kUcxAndSockets; }

// Why it cannot be tried here; empty: it can.
inline std::string what_lacks(By by) {
    if (!is_by_ucx(by)) return "";
    const auto context = fabric::UcxContext::open({});
    return context ? "" : context.error().text;
}

inline std::string name_of(By by) {
    switch (by) {
        case By::kMemory: return "Memory";
        case By::kSockets: return "Sockets";
        case By::kUcxAndMemory: return "UcxAndMemory";
        default: return "UcxAndSockets";
    }
}

class Table {
public:
    explicit Table(uint32_t tasks, bool is_secret = false, By by = By::kMemory)
        : memory_(sys::Mapping::reserve_shared(tasks * sizeof(Entry)).value()),
          tasks_(tasks),
          settings_{.uses_shared_memory = by == By::kMemory || by == By::kUcxAndMemory,
                    .uses_ucx = is_by_ucx(by)} {
        for (uint32_t rank = 0; rank < tasks; ++rank) {
            published_.push_back(sys::EventFd::open().value());
        }
        if (is_secret) secret_ = fabric::Secret::make().value();
    }

    struct Entry {
        std::atomic<uint64_t> bytes;
        std::byte card[Job::kCardBytesMax];
    };
    Entry& entry(uint32_t rank) { return reinterpret_cast<Entry*>(memory_.address())[rank]; }
    uint32_t tasks() const { return tasks_; }
    sys::EventFd& published(uint32_t rank) { return published_[rank]; }
    const std::optional<fabric::Secret>& secret() const { return secret_; }
    const Communicator::Settings& settings() const { return settings_; }

private:
    sys::Mapping memory_;
    const uint32_t tasks_;
    const Communicator::Settings settings_;
    std::vector<sys::EventFd> published_;
    std::optional<fabric::Secret> secret_;
};

class TableJob : public Job {
public:
    TableJob(Table& table, uint32_t rank) : table_(table), rank_(rank) {}

    const char* launcher() const noexcept override { return "test"; }
    uint32_t rank() const noexcept override { return rank_; }
    uint32_t size() const noexcept override { return table_.tasks(); }
    const std::optional<fabric::Secret>& secret() const noexcept override {
        return table_.secret();
    }
    const std::string& host() const noexcept override { return host_; }
    Result<void> publish(std::span<const std::byte> card, int) override {
        std::memcpy(table_.entry(rank_).card, card.data(), card.size());
        table_.entry(rank_).bytes = card.size();
        table_.published(rank_).post();
        return {};
    }
    Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) override {
        if (!sys::wait_until_readable(table_.published(rank).number(), -1, timeout_ms).first) {
            return fail(HANARE_STATUS_TIMEOUT, "no card of task %u", rank);
        }
        const Table::Entry& entry = table_.entry(rank);
        return std::vector<std::byte>(entry.card, entry.card + entry.bytes);
    }

private:
    Table& table_;
    const uint32_t rank_;
    const std::string host_ = "127.0.0.1";
};

// A task, wherever it runs.
struct Task {
    Task(Table& table, uint32_t rank)
        : job(table, rank),
          communicator(Communicator::open(job, table.settings()).value()),
          group(Group::open(*communicator).value()) {}

    TableJob job;
    Communicator::Handle communicator;
    Group::Handle group;
};

// Each task in a thread of its own.
inline void run_threads(Table& table, const std::function<void(Task&)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < table.tasks(); ++rank) {
        threads.emplace_back([&, rank] {
            Task task(table, rank);
            body(task);
            // Nobody leaves before all have done what they wanted of the others.
            EXPECT_TRUE(task.group->barrier(soon()));
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// Runs the body in a process of its own, which ends with the test; a failed
// expectation there is its exit status.
inline pid_t start_process(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(kTestMs / 1000);
    body();
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace hanare::job::testing
