// SPDX-License-Identifier: Apache-2.0
#include "pager/fault_threads.hpp"

#include <algorithm>
#include <thread>

#include "pager/fault/pager.hpp"
#include "sys/signal.hpp"

namespace hanare::pager {

namespace {

// They wait for the store most of the time.  One may hang on standard error (FaultService::tell).
constexpr unsigned kThreadsMin = 2;
constexpr unsigned kThreadsMax = 8;

unsigned thread_count() {
    return std::clamp(2 * std::thread::hardware_concurrency(), kThreadsMin, kThreadsMax);
}

}  // namespace

Result<void> FaultThreads::start(Pager& pager) {
    Engine& engine = pager.engine();
    if (engine.events() == nullptr) return {};
    service_.emplace(engine);
    pager.set_fault_service(&*service_);
    HANARE_TRY_ASSIGN(end_, sys::EventFd::open());
    const sys::SignalBlock inherited_by_the_threads;
    // No OwnThread: a signal handler of the thread that waits runs beside them.
    const auto body = [](void* argument) -> void* {
        const auto* worker = static_cast<const Worker*>(argument);
        worker->service->run(worker->work);
        return nullptr;
    };
    workers_.reserve(kThreadsMax);
    for (unsigned i = 0; i < thread_count(); ++i) {
        HANARE_TRY_ASSIGN(auto work, sys::WorkWait::open(engine.events()->descriptor(), *end_));
        auto worker = std::make_unique<Worker>(&*service_, std::move(work));
        if (const int error = pthread_create(&worker->thread, nullptr, body, worker.get());
            error != 0) {
            return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot start a thread for faults");
        }
        pthread_setname_np(worker->thread, "hanare-fault");
        workers_.push_back(std::move(worker));
    }
    return {};
}

void FaultThreads::stop() noexcept {
    if (workers_.empty()) return;
    end_->post();
    for (const auto& worker : workers_) pthread_join(worker->thread, nullptr);
    workers_.clear();
}

}  // namespace hanare::pager
