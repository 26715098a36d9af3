// SPDX-License-Identifier: Apache-2.0
//
// Slot tables for tests, and children that share them and do what the test tells them to.
// Included by *_test.cpp only.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "store/slot_table.hpp"
#include "sys/file.hpp"
#include "sys/test_support.hpp"

namespace hanare::store {

// Tables on unnamed files.
class TestTables {
public:
    TestTables() { EXPECT_EQ(sys::open_unnamed(directory_.path(), file_), 0); }

    int file() const { return file_.number(); }
    SlotTable& make(uint32_t capacity, SlotTable::Spread spread = SlotTable::Spread::kRuns) {
        table_.reset();
        auto table = SlotTable::create(capacity, file(), {}, spread);
        if (!table) std::fprintf(stderr, "%s\n", table.error().text);
        table_ = std::make_unique<SlotTable>(std::move(table.value()));
        return *table_;
    }

private:
    sys::testing::TemporaryDirectory directory_;
    sys::FileDescriptor file_;
    std::unique_ptr<SlotTable> table_;
};

// Numbers to a child and back.  Both sides close what is the other's, so that a read ends when the
// other side does.
class Line {
public:
    static constexpr uint32_t kEnded = 0xdead0000;

    Line() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
        child_in_ = sys::FileDescriptor(ends[0]);
        test_out_ = sys::FileDescriptor(ends[1]);
        if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
        test_in_ = sys::FileDescriptor(ends[0]);
        child_out_ = sys::FileDescriptor(ends[1]);
    }
    void be_test() {
        child_in_.close();
        child_out_.close();
    }
    void be_child() {
        test_in_.close();
        test_out_.close();
    }

    // The test's side.
    void tell(uint32_t number) { put(test_out_.number(), number); }
    uint32_t answer() { return get(test_in_.number()).value_or(kEnded); }
    uint32_t ask(uint32_t number) {
        tell(number);
        return answer();
    }
    // The child's side; it ends with the test.
    void say(uint32_t number) { put(child_out_.number(), number); }
    uint32_t hear() {
        const auto number = get(child_in_.number());
        if (!number) _exit(0);
        return *number;
    }
    // Until it is killed.
    [[noreturn]] void stay() {
        for (;;) hear();
    }
    int child_in() const { return child_in_.number(); }
    int child_out() const { return child_out_.number(); }

private:
    static void put(int file, uint32_t number) {
        if (write(file, &number, sizeof number) != sizeof number) std::abort();
    }
    static std::optional<uint32_t> get(int file) {
        uint32_t number = 0;
        ssize_t got;
        do {
            got = read(file, &number, sizeof number);
        } while (got < 0 && errno == EINTR);
        return got == sizeof number ? std::optional(number) : std::nullopt;
    }

    sys::FileDescriptor child_in_;
    sys::FileDescriptor child_out_;
    sys::FileDescriptor test_in_;
    sys::FileDescriptor test_out_;
};

// A child that runs `body` and is killed at the end of the scope.
class Peer {
public:
    using Body = std::function<void(Line&)>;

    // With a row of the table.
    Peer(SlotTable& table, const Body& body) {
        const auto row = table.begin_child();
        if (!row) return;
        start([&](Line& line) {
            table.become_child(*row);
            body(line);
        });
        table.child_started(*row, pid_);
    }
    // Any child.
    explicit Peer(const Body& body) { start(body); }
    Peer(Peer&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)), line_(std::move(other.line_)) {}
    Peer& operator=(Peer&&) = delete;
    ~Peer() { kill(); }

    bool is_started() const { return pid_ > 0; }
    pid_t pid() const { return pid_; }
    Line& line() { return line_; }
    // SIGKILL, and waits.
    void kill() {
        if (pid_ > 0) ::kill(pid_, SIGKILL);
        wait();
    }
    int wait() {
        int status = 0;
        if (pid_ <= 0) return status;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return status;
    }

private:
    void start(const Body& body) {
        std::fflush(nullptr);
        pid_ = fork();
        if (pid_ == 0) {
            alarm(300);
            line_.be_child();
            body(line_);
            _exit(0);
        }
        line_.be_test();
    }

    pid_t pid_ = -1;
    Line line_;
};

}  // namespace hanare::store
