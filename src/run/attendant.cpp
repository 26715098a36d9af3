// SPDX-License-Identifier: Apache-2.0
#include "run/attendant.hpp"

#include <cstring>
#include <pthread.h>
#include <utility>

#include "intercept/intercept.hpp"
#include "run/control.hpp"
#include "run/report.hpp"
#include "run/room.hpp"
#include "sys/event.hpp"
#include "sys/signal.hpp"
#include "sys/thread_count.hpp"
#include "telemetry/log.hpp"

namespace hanare::run {

namespace {

constexpr int kReportEvery_ms = 100;

enum Source : uint32_t { kControl, kRoom };

// What the attendant waits for beside transfers, in one descriptor.  Never destroyed: it goes on
// while the process ends.
constinit sys::ReadySet* sources = nullptr;
constinit bool watches = false;

void serve_source() noexcept {
    const int64_t source = sources->next();
    if (source == kControl) serve_control();
    if (source == kRoom) serve_room();
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
    intercept::space()->pool()->keeper().watch(sources->number(), serve_source);
    return true;
}

void tick() noexcept {
    report_figures();
    if (!watches) watches = begin_watching();
}

void* attend(void*) {
    const sys::SignalBlock none_here;
    const sys::OwnThread own;
    intercept::Space& space = *intercept::space();
    space.wait_until_open();
    if (space.pool() == nullptr) {
        telemetry::log(telemetry::LogLevel::kWarn, "the program runs in plain memory: %s",
                       space.failure());
        return nullptr;
    }
    if (space.failure()[0] != '\0') {
        telemetry::log(telemetry::LogLevel::kWarn, "some of the program's memory may be plain: %s",
                       space.failure());
    }
    space.pool()->keeper().serve(tick, kReportEvery_ms);
}

}  // namespace

void start_attendant(const hook::RewriteReport& report, uint64_t local_bytes) {
    open_report(report, local_bytes);
    // The thread is of libc's heap, which may be far memory by now.
    const sys::SignalBlockButFaults inherited_by_the_thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, attend, nullptr);
    pthread_attr_destroy(&attributes);
    if (error == 0) return;
    note_unattended();
    telemetry::log(telemetry::LogLevel::kWarn,
                   "no thread can be had that works ahead (%s): far memory is slower",
                   std::strerror(error));
}

}  // namespace hanare::run
