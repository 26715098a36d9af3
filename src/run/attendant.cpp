// SPDX-License-Identifier: Apache-2.0
#include "run/attendant.hpp"

#include <cstring>
#include <pthread.h>
#include <utility>

#include "hook/system_calls.hpp"
#include "intercept/intercept.hpp"
#include "run/control.hpp"
#include "run/report.hpp"
#include "run/room.hpp"
#include "sys/bare_thread.hpp"
#include "sys/event.hpp"
#include "sys/futex.hpp"
#include "sys/identity.hpp"
#include "sys/process_lock.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"
#include "telemetry/log.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::run {

namespace {

constexpr int kReportEvery_ms = 100;

enum Source : uint32_t { kControl, kRoom, kIdentity };

// Nothing here is ever destroyed: the attendant goes on while the process ends.
constinit sys::BareThread* thread = nullptr;  // that can be started; none in a child
constinit uint32_t process_id = 0;            // whose it is, also where others share its memory
constinit std::atomic<bool> is_called{false};
constinit std::atomic<bool> is_there{false};

// What the attendant waits for beside transfers, in one descriptor.
constinit sys::ReadySet* sources = nullptr;
constinit bool watches = false;

// How the program's thread is that has changed it last, for the attendant to become the same.
constinit sys::ProcessLock identity_turn;
constinit sys::Identity identity;
constinit std::atomic<uint32_t> identity_wanted{0};  // a futex; 0: the attendant has it
constinit sys::EventFd* identity_changes = nullptr;

void take_identity() noexcept {
    if (identity_wanted.load() == 0) return;
    identity.give_to_caller();
    identity_wanted.store(0);
    sys::futex_wake_all(identity_wanted);
}

int offer_identity() noexcept {
    auto event = sys::EventFd::open();
    if (!event) return -1;
    identity_changes = new sys::EventFd(std::move(*event));
    return identity_changes->number();
}

void serve_source() noexcept {
    const int64_t source = sources->next();
    if (source == kControl) serve_control();
    if (source == kRoom) serve_room();
    if (source == kIdentity) {
        identity_changes->clear();
        take_identity();
    }
}

// False: not now; the program may have no descriptor left.
bool begin_watching() noexcept {
    auto set = sys::ReadySet::open();
    if (!set) return false;
    sources = new sys::ReadySet(std::move(*set));
    const auto add = [](int descriptor, Source source) {
        if (descriptor >= 0) sources->add(descriptor, source, sys::ReadySet::For::kReading);
    };
    add(offer_control(), kControl);
    add(offer_room(), kRoom);
    add(offer_identity(), kIdentity);
    intercept::space()->pool()->keeper().watch(sources->number(), serve_source);
    return true;
}

void tick() noexcept {
    take_identity();
    report_figures();
    if (!watches) watches = begin_watching();
}

void attend(void*) {
    note_attended();
    intercept::space()->pool()->keeper().serve(tick, kReportEvery_ms);
}

void note_absence(int error) noexcept {
    telemetry::RawLine line;
    line.text("hanare: warn: no thread can be had that works ahead (errno ")
        .signed_decimal(error)
        .text("): far memory is slower");
    line.write_stderr();
}

// False: there is none.  Also in a fault.
bool call_attendant() noexcept {
    // A child of vfork would take it along when it calls exec.
    if (thread == nullptr || sys::raw_process_id() != process_id) return false;
    if (is_called.exchange(true)) return is_there.load();
    if (!hook::catch_system_calls()) return false;
    const sys::SignalBlock inherited_by_the_thread;
    intercept::space()->note_threads();
    // Before it has begun: who changes the user now must not go on without it.
    is_there.store(true);
    const int error = thread->start(attend, nullptr);
    if (error == 0) return true;
    is_there.store(false);
    identity_wanted.store(0);
    sys::futex_wake_all(identity_wanted);
    note_absence(error);
    return false;
}

bool has_taken_half(pager::Pager& pager) noexcept {
    const pager::FrameTable::Usage usage = pager.frames().usage();
    return 2 * (usage.metadata_bytes + usage.frame_bytes) >= usage.budget_bytes;
}

// What fits well, of a program that is alone, needs nobody who works ahead or gives room to
// others.  A second thread makes system calls slower, as the kernel then has to count who uses a
// file.
void serve_need(pager::Pager& pager) noexcept {
    if (sys::raw_process_id() != process_id) return;  // a child of vfork, which has no part
    if ((has_taken_half(pager) || !is_alone()) && call_attendant()) return;
    share_budget(pager);
}

void call_if_needed() noexcept { call_attendant(); }

// Somebody has to take back what the child gives up, and what it needs at once is set aside.
void begin_fork() noexcept {
    if (sys::raw_process_id() != process_id) return;  // a child of vfork, which has no part
    call_attendant();
    set_aside_for_child();
}

// The attendant becomes as the calling thread is before that goes on.
void pass_identity_on() noexcept {
    if (!is_there.load() || sys::raw_process_id() != process_id) return;
    const sys::ProcessLockGuard guard(identity_turn);
    identity.take_from_caller();
    identity_wanted.store(1);
    if (identity_changes != nullptr) identity_changes->post();
    while (is_there.load() && identity_wanted.load() != 0) {
        sys::futex_wait(identity_wanted, 1, kReportEvery_ms);
    }
}

void tell_failure() noexcept {
    const intercept::Space& space = *intercept::space();
    if (space.failure()[0] == '\0') return;
    telemetry::log(telemetry::LogLevel::kWarn,
                   space.is_open() ? "some of the program's memory may be plain: %s"
                                   : "the program runs in plain memory: %s",
                   space.failure());
}

void begin_child() noexcept {
    thread = nullptr;
    process_id = sys::raw_process_id();
    is_there.store(false);
    identity_changes = nullptr;
    begin_child_report();
}

// Where libc keeps to itself how threads are made: from the beginning, by libc.
int start_by_libc() {
    const auto wait_and_attend = [](void*) -> void* {
        intercept::space()->wait_until_decided();
        if (intercept::space()->pool() != nullptr) attend(nullptr);
        return nullptr;
    };
    // The thread is of libc's heap, which may be far memory by now.
    const sys::SignalBlockButFaults inherited_by_the_thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t started;
    const int error = pthread_create(&started, &attributes, wait_and_attend, nullptr);
    pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace

void prepare_attendant(uint64_t local_bytes) {
    open_report(local_bytes);
    process_id = sys::raw_process_id();
    auto* const made = new sys::BareThread;
    if (made->prepare()) {
        thread = made;
    } else if (hook::catch_system_calls()) {  // who fails says so later
        if (const int error = start_by_libc(); error != 0) note_absence(error);
    }
    intercept::space()->set_hooks({.opened = tell_failure,
                                   .needs_memory = serve_need,
                                   .needs_keeper = call_if_needed,
                                   .fork_begins = begin_fork,
                                   .fork_ended = note_child,
                                   .child_began = begin_child,
                                   .has_other_identity = pass_identity_on});
}

}  // namespace hanare::run
