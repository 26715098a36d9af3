// SPDX-License-Identifier: Apache-2.0
#include "capi/control.hpp"

#include <pthread.h>
#include <unistd.h>

#include <new>

#include "control/protocol.hpp"
#include "control/server.hpp"
#include "sys/clock.hpp"
#include "sys/process_lock.hpp"
#include "sys/signal.hpp"
#include "sys/text_file.hpp"
#include "telemetry/log.hpp"

namespace hanare::capi {

namespace {

constexpr size_t kAnswerBytesMax = size_t{256} << 10;
constexpr uint64_t kNsPerMs = 1'000'000;

// A child of fork has none of it.  Whoever holds the lock waits neither for a keeper nor for far
// memory, has all signals blocked, and is no fault handler.
sys::ProcessLock lock;

struct Control {
    IntrusiveList<ControlledPool> pools;
    ControlledPool* serving = nullptr;  // whose keeper does it
    control::Server* server = nullptr;  // made once
    std::string command;
    uint64_t began_ns = 0;
};
// Made with the first pool, and never destroyed: keepers of pools that nobody closes go on while
// the process ends.
constinit Control* state HANARE_GUARDED_BY(lock) = nullptr;

// Locked, and whether there is anything to look at.
class HANARE_SCOPED_CAPABILITY ControlLock {
public:
    ControlLock() noexcept HANARE_ACQUIRE(lock) { lock.lock(); }
    ~ControlLock() HANARE_RELEASE() { lock.unlock(); }

private:
    sys::SignalBlock signals_;
};

void tell_pool(control::Answer& answer, ControlledPool& entry) {
    static_cast<void>(entry.pool->try_stats(entry.known));
    answer.open('{').member("engine", entry.pool->engine_name()).member("store", entry.store);
#define HANARE_TELL(name, text) answer.member(#name, entry.known.name);
    HANARE_COUNTER_MAP(HANARE_TELL)
    HANARE_GAUGE_MAP(HANARE_TELL)
#undef HANARE_TELL
    answer.close('}');
}

// The same figures as of programs under `hanare run`, of all pools together.
void tell_sums(control::Answer& answer, Control& control) {
    hanare_counters sum = {};
    for (auto* entry = control.pools.front(); entry != nullptr;
         entry = control.pools.after(entry)) {
#define HANARE_ADD(name, text) sum.name += entry->known.name;
        HANARE_COUNTER_MAP(HANARE_ADD)
        HANARE_GAUGE_MAP(HANARE_ADD)
#undef HANARE_ADD
    }
    answer.member("far_bytes", sum.virtual_bytes).member("local_bytes", sum.resident_bytes);
    answer.member("budget_bytes", sum.budget_bytes).member("wait_ns", sum.wait_ns);
    answer.member("faults", sum.read_faults + sum.write_faults + sum.upgrade_faults);
    answer.member("hits", sum.staged_hits)
        .member("misses", sum.demand_reads + sum.part_reads + sum.wait_faults);
    answer.member("read_bytes", sum.read_bytes).member("written_bytes", sum.written_bytes);
}

void answer_statistics(control::Answer& answer, void* context) {
    auto& control = *static_cast<Control*>(context);
    answer.open('{').member("version", HANARE_VERSION);
    answer.member("kind", control::kind_name(control::Kind::kPools));
    answer.member("process_id", static_cast<uint64_t>(getpid()));
    answer.member("elapsed_ms", (sys::now_ns() - control.began_ns) / kNsPerMs);
    answer.member("command", control.command);
    answer.name("pools").open('[');
    for (auto* entry = control.pools.front(); entry != nullptr;
         entry = control.pools.after(entry)) {
        tell_pool(answer, *entry);
    }
    answer.close(']');
    tell_sums(answer, control);
    answer.close('}');
}

bool add_store(control::Answer& answer, std::string_view spec, void* context) {
    auto& control = *static_cast<Control*>(context);
    uint64_t asked = 0;
    for (auto* entry = control.pools.front(); entry != nullptr;
         entry = control.pools.after(entry)) {
        if (entry->pool->ask_to_add(spec)) ++asked;
    }
    if (asked == 0) {
        answer.text(
            "no pool here has a store of several (tier, mirror or parity) that can take one "
            "more now");
        return false;
    }
    answer.open('{').member("pools", asked).close('}');
    return true;
}

// Of all pools: whether one is still about it, and what is wrong with the last that has failed.
void answer_added(control::Answer& answer, void* context) {
    auto& control = *static_cast<Control*>(context);
    uint64_t waiting = 0;
    const char* wrong = "";
    for (auto* entry = control.pools.front(); entry != nullptr;
         entry = control.pools.after(entry)) {
        const char* const outcome = entry->pool->added_store();
        if (outcome == nullptr) {
            ++waiting;
        } else if (*outcome != '\0') {
            wrong = outcome;
        }
    }
    answer.open('{').member("waiting", waiting).member("wrong", std::string_view(wrong)).close('}');
}

constexpr control::Request kRequests[] = {{control::kStatistics, answer_statistics},
                                          {control::kAdd, nullptr, add_store},
                                          {control::kAdded, answer_added}};

// In the thread of a keeper, which may have been relieved meanwhile.
void serve() noexcept {
    const ControlLock guard;
    state->server->serve(state);
}

std::string command_name() {
    std::string name = sys::read_text_file("/proc/self/comm").value_or("");
    while (name.ends_with('\n')) name.pop_back();
    return name;
}

void listen(Control& control) {
    if (control.server == nullptr) {
        control.server = new control::Server(kRequests, kAnswerBytesMax);
    }
    if (control.server->is_listening()) return;
    control.command = command_name();
    control.began_ns = sys::now_ns();
    if (const auto listening = control.server->listen(control::Kind::kPools); !listening) {
        telemetry::log(telemetry::LogLevel::kInfo, "%s", listening.error().text);
    }
}

void let_serve(Control& control, ControlledPool* entry) noexcept {
    if (entry == control.serving) return;
    if (control.serving != nullptr) control.serving->pool->keeper().watch(-1, serve);
    control.serving = entry;
    if (entry != nullptr) entry->pool->keeper().watch(control.server->descriptor(), serve);
}

// Nothing is half done in the child, and the parent's descriptors are not shared longer than a
// moment.
void before_fork() HANARE_NO_THREAD_SAFETY_ANALYSIS { lock.lock(); }
void after_fork() HANARE_NO_THREAD_SAFETY_ANALYSIS { lock.unlock(); }
void in_child() HANARE_NO_THREAD_SAFETY_ANALYSIS {
    if (state != nullptr) {
        if (state->server != nullptr) state->server->abandon_in_child();
        state->serving = nullptr;
        new (&state->pools) IntrusiveList<ControlledPool>;  // they are the parent's
    }
    lock.unlock();
}

void watch_forks() {
    static const int error = pthread_atfork(before_fork, after_fork, in_child);
    static_cast<void>(error);
}

[[gnu::destructor]] void remove_name() {
    const ControlLock guard;
    if (state != nullptr && state->server != nullptr) state->server->remove_name();
}

}  // namespace

void add_controlled(ControlledPool& entry, pager::Pool& pool) {
    watch_forks();
    const ControlLock guard;
    if (state == nullptr) state = new Control;
    Control& control = *state;
    entry.pool = &pool;
    entry.process_id = getpid();
    entry.store = pool.describe_store();
    control.pools.push_back(&entry);
    listen(control);
    if (control.server->is_listening() && control.serving == nullptr) let_serve(control, &entry);
}

void remove_controlled(ControlledPool& entry) noexcept {
    const ControlLock guard;
    if (entry.pool == nullptr || entry.process_id != getpid()) return;
    Control& control = *state;
    control.pools.remove(&entry);
    if (control.pools.empty()) control.server->close();
    if (control.serving == &entry) {
        let_serve(control, control.pools.empty() ? nullptr : control.pools.front());
    }
    entry.pool = nullptr;
}

}  // namespace hanare::capi
