// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous_thread.hpp"

#include <system_error>

#include "sys/signal.hpp"

namespace hanare::job {

Result<std::unique_ptr<RendezvousThread>> RendezvousThread::start(
    std::unique_ptr<RendezvousServer> server, int farewell_ms) {
    HANARE_TRY_ASSIGN(sys::EventFd end, sys::EventFd::open());
    std::unique_ptr<RendezvousThread> made(
        new RendezvousThread(std::move(server), farewell_ms, std::move(end)));
    // The program's signals are for the program's threads.
    const sys::SignalBlock blocked;
    try {
        made->thread_ = std::thread(&RendezvousThread::run, made.get());
    } catch (const std::system_error& error) {
        return fail_errno(HANARE_STATUS_SYSTEM, error.code().value(), "cannot start a thread");
    }
    return made;
}

RendezvousThread::~RendezvousThread() {
    end_.post();
    if (thread_.joinable()) thread_.join();
}

void RendezvousThread::run() {
    while (!sys::wait_until_readable(server_->descriptor(), end_.number(), -1).second) {
        server_->serve();
    }
    const Deadline farewell(farewell_ms_);
    while (!server_->is_finished() && !farewell.is_over()) {
        sys::wait_until_readable(server_->descriptor(), -1, farewell.left_ms());
        server_->serve();
    }
}

}  // namespace hanare::job
