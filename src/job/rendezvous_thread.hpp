// SPDX-License-Identifier: Apache-2.0
//
// A rendezvous served by a thread of its own, for a task that computes meanwhile.  In the end it
// serves those that are still there, or still to come, for a while.
#pragma once

#include <memory>
#include <thread>

#include "base/result.hpp"
#include "job/rendezvous_server.hpp"
#include "sys/event.hpp"

namespace hanare::job {

class RendezvousThread {
public:
    static Result<std::unique_ptr<RendezvousThread>> start(std::unique_ptr<RendezvousServer> server,
                                                           int farewell_ms);
    ~RendezvousThread();

private:
    RendezvousThread(std::unique_ptr<RendezvousServer> server, int farewell_ms, sys::EventFd end)
        : server_(std::move(server)), farewell_ms_(farewell_ms), end_(std::move(end)) {}
    void run();

    std::unique_ptr<RendezvousServer> server_;  // the thread's
    const int farewell_ms_;
    sys::EventFd end_;
    std::thread thread_;
};

}  // namespace hanare::job
