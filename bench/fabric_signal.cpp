// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_signal.hpp"

#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <span>
#include <unistd.h>

#include "bench/fabric_address.hpp"
#include "bench/table.hpp"
#include "fabric/link.hpp"
#include "fabric/signal_queue.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/life_lock.hpp"
#include "sys/thread_state.hpp"

namespace hanare::bench {
namespace {

constexpr uint32_t kHandler = 1;
constexpr int kKernelSignal = SIGUSR2;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kPatience_ns = 5'000 * kNsPerMs;
// Between two signals, so that who sleeps sleeps.
constexpr uint64_t kPause_ns = 300'000;
constexpr double kNsPerUs = 1000;
// How many steps of its work a program does between two looks for signals.
constexpr uint32_t kStepsBetweenLooks = 20;

SignalWords* signalled_words = nullptr;

void note(SignalWords& words) {
    words.time_ns.store(sys::now_ns());
    words.handled.fetch_add(1);
}

// What a program computes: something that the compiler cannot leave out.
uint64_t compute(uint64_t value) {
    for (uint32_t step = 0; step < kStepsBetweenLooks; ++step) {
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    return value;
}

Result<void> be_signalled_by_hanare(fabric::SignalQueue& queue, SignalWords& words,
                                    TargetState state) {
    volatile uint64_t value = 1;
    if (state == TargetState::kComputes) HANARE_TRY(queue.interrupt_this_thread());
    while (words.is_over.load(std::memory_order_relaxed) == 0) {
        if (state == TargetState::kSleeps) {
            queue.wait(sys::now_ns() + 20 * kNsPerMs);
        } else {
            value = compute(value);
            if (state == TargetState::kPolls) queue.poll();
        }
    }
    queue.stop_interrupting();
    return {};
}

void be_signalled_by_kernel(SignalWords& words, TargetState state) {
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int) { note(*signalled_words); };
    sigaction(kKernelSignal, &action, &before);
    volatile uint64_t value = 1;
    while (words.is_over.load(std::memory_order_relaxed) == 0) {
        if (state == TargetState::kSleeps) {
            const uint32_t seen = words.futex.load();
            if (seen == words.handled.load()) sys::shared_futex_wait(words.futex, seen, 20);
            if (words.futex.load() != words.handled.load()) note(words);
        } else {
            value = compute(value);
        }
    }
    sigaction(kKernelSignal, &before, nullptr);
}

// The target's words, as the source reaches them.
class RemoteWords {
public:
    RemoteWords(fabric::Link& link, const fabric::Capability& capability)
        : link_(link), capability_(capability) {}

    Result<uint64_t> get(size_t offset) {
        uint64_t value = 0;
        fabric::Operation get;
        aim(get, offset);
        get.kind = fabric::Kind::kGet;
        get.destination = std::as_writable_bytes(std::span(&value, 1));
        return done(get, value);
    }
    Result<uint64_t> add(size_t offset, bool wakes) {
        fabric::Operation add;
        aim(add, offset);
        add.kind = fabric::Kind::kFetch;
        add.width = sizeof(uint32_t);
        add.operand = 1;
        add.wakes = wakes;
        HANARE_TRY(done(add, 0));
        return add.value();
    }
    // Until that many signals were handled.
    Result<uint64_t> time_of(uint64_t number) {
        const uint64_t end_ns = sys::now_ns() + kPatience_ns;
        while (sys::now_ns() < end_ns) {
            HANARE_TRY_ASSIGN(const uint64_t handled, get(offsetof(SignalWords, handled)));
            if (handled == number) return get(offsetof(SignalWords, time_ns));
        }
        return fail(HANARE_STATUS_TIMEOUT, "no handler has run");
    }

private:
    void aim(fabric::Operation& operation, size_t offset) const {
        operation.capability = capability_;
        operation.offset = kFabricSignalWords + offset;
        operation.deadline_ns = sys::now_ns() + kPatience_ns;
    }
    Result<uint64_t> done(fabric::Operation& operation, const uint64_t& value) {
        const hanare_status status = link_.carry_out(operation);
        if (status == HANARE_STATUS_OK) return value;
        return fail(status, "a word of the target: %s", hanare_status_text(status));
    }

    fabric::Link& link_;
    const fabric::Capability capability_;
};

Result<fabric::Capability> parse_target(const std::string& line, int& process) {
    fabric::Capability key;
    if (std::sscanf(line.c_str(), "signals %d %u %u %u %" SCNu64 " %" SCNu64, &process, &key.region,
                    &key.epoch, &key.rights, &key.key.words[0], &key.key.words[1]) == 6) {
        return key;
    }
    return fail(HANARE_STATUS_INTERNAL, "not a line of a target: %.100s", line.c_str());
}

void pause() {
    const uint64_t end_ns = sys::now_ns() + kPause_ns;
    while (sys::now_ns() < end_ns) {
    }
}

Result<void> end_of(RemoteWords& words) {
    HANARE_TRY(words.add(offsetof(SignalWords, is_over), false));
    return {};
}

}  // namespace

const std::vector<SignalCase>& signal_cases() {
    static const std::vector<SignalCase> cases = {
        {"signal_computing", TargetState::kComputes, true},
        {"signal_sleeping", TargetState::kSleeps, true},
        {"signal_polling", TargetState::kPolls, false},
    };
    return cases;
}

Result<void> be_signalled(fabric::ExposedRegions& regions, SignalWords& words, TargetState state,
                          Caller caller, const std::function<void(const std::string&)>& announce) {
    words.handled = 0;
    words.futex = 0;
    words.is_over = 0;
    signalled_words = &words;
    HANARE_TRY_ASSIGN(const auto queue, fabric::SignalQueue::open(regions, 64 * 1024));
    queue->set_handler(
        kHandler,
        [](void* context, std::span<const std::byte>) {
            note(*static_cast<SignalWords*>(context));
        },
        &words);
    const fabric::Capability& key = queue->capability();
    announce(format("signals %d %u %u %u %" PRIu64 " %" PRIu64, getpid(), key.region, key.epoch,
                    key.rights, key.key.words[0], key.key.words[1]));
    if (caller == Caller::kHanare) return be_signalled_by_hanare(*queue, words, state);
    be_signalled_by_kernel(words, state);
    return {};
}

Result<std::vector<double>> signal_target(const std::string& address, const std::string& target,
                                          TargetState state, Caller caller, uint32_t signals) {
    HANARE_TRY_ASSIGN(const FabricAddress at, parse_address(address));
    HANARE_TRY_ASSIGN(const auto link, connect_by(at, FabricEngine::kShm));
    int process = 0;
    HANARE_TRY_ASSIGN(const fabric::Capability key, parse_target(target, process));
    RemoteWords words(*link, at.capability);
    const std::array<uint32_t, 2> message = {kHandler, 0};
    std::vector<double> times;
    for (uint32_t i = 0; i < signals; ++i) {
        pause();
        const uint64_t begin_ns = sys::now_ns();
        if (caller == Caller::kHanare) {
            fabric::Operation signal;
            signal.kind = fabric::Kind::kSignal;
            signal.capability = key;
            signal.source = std::as_bytes(std::span(message));
            signal.deadline_ns = begin_ns + kPatience_ns;
            if (const hanare_status status = link->carry_out(signal); status != HANARE_STATUS_OK) {
                return fail(status, "a signal: %s", hanare_status_text(status));
            }
        } else if (state == TargetState::kSleeps) {
            HANARE_TRY(words.add(offsetof(SignalWords, futex), true));
        } else {
            sys::signal_thread_of(process, static_cast<uint32_t>(process), kKernelSignal);
        }
        HANARE_TRY_ASSIGN(const uint64_t handled_ns, words.time_of(i + 1));
        times.push_back(static_cast<double>(handled_ns - begin_ns) / kNsPerUs);
    }
    HANARE_TRY(end_of(words));
    return times;
}

Result<std::vector<double>> get_from_busy(const std::string& address, const std::string& target,
                                          FabricEngine engine, uint32_t gets) {
    HANARE_TRY_ASSIGN(const FabricAddress at, parse_address(address));
    HANARE_TRY_ASSIGN(const auto link, connect_by(at, engine));
    int process = 0;
    HANARE_TRY(parse_target(target, process));
    std::vector<double> times;
    std::array<std::byte, 64> room;
    for (uint32_t i = 0; i < gets; ++i) {
        pause();
        fabric::Operation get;
        get.kind = fabric::Kind::kGet;
        get.capability = at.capability;
        get.destination = room;
        const uint64_t begin_ns = sys::now_ns();
        get.deadline_ns = begin_ns + kPatience_ns;
        if (const hanare_status status = link->carry_out(get); status != HANARE_STATUS_OK) {
            return fail(status, "a get: %s", hanare_status_text(status));
        }
        times.push_back(static_cast<double>(sys::now_ns() - begin_ns) / kNsPerUs);
    }
    RemoteWords words(*link, at.capability);
    HANARE_TRY(end_of(words));
    return times;
}

}  // namespace hanare::bench
