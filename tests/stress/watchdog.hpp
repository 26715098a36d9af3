// SPDX-License-Identifier: Apache-2.0
//
// Ends the process when a test hangs, and says where: the states of all blocks, and what every
// thread does (kernel stack where that may be read, and the calls that lie on its own stack).
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hanare::stress {

// The time runs from construction to destruction.
class Watchdog {
public:
    Watchdog(std::string what, int limit_s);
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog();

private:
    void watch();

    const std::string what_;
    const int limit_s_;
    std::mutex lock_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
};

// Seconds of one test that hangs for certain; HANARE_STRESS_PATIENCE.
int patience_s();

}  // namespace hanare::stress
