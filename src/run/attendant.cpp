// SPDX-License-Identifier: Apache-2.0
#include "run/attendant.hpp"

#include <cstring>
#include <pthread.h>

#include "intercept/intercept.hpp"
#include "run/control.hpp"
#include "run/report.hpp"
#include "sys/signal.hpp"
#include "sys/thread_count.hpp"
#include "telemetry/log.hpp"

namespace hanare::run {

namespace {

constexpr int kReportEvery_ms = 100;

void tick() noexcept {
    report_figures();
    offer_control();
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
    space.pool()->keeper().serve(tick, kReportEvery_ms);
}

}  // namespace

void start_attendant(const hook::RewriteReport& report, uint64_t local_bytes) {
    open_report(report, local_bytes);
    const sys::SignalBlock inherited_by_the_thread;
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
