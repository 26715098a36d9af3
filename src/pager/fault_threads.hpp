// SPDX-License-Identifier: Apache-2.0
//
// FaultThreads: the threads that run a pool's FaultService, if its engine has one.  Normal context.
#pragma once

#include <memory>
#include <optional>
#include <pthread.h>
#include <vector>

#include "base/result.hpp"
#include "pager/fault/fault_service.hpp"

namespace hanare::pager {

class Pager;

class FaultThreads {
public:
    FaultThreads() = default;
    FaultThreads(const FaultThreads&) = delete;
    FaultThreads& operator=(const FaultThreads&) = delete;
    ~FaultThreads() { stop(); }

    Result<void> start(Pager& pager);
    // When no region is left.  Idempotent.
    void stop() noexcept;

private:
    struct Worker {
        FaultService* service;
        sys::WorkWait work;
        pthread_t thread{};
    };

    std::optional<FaultService> service_;
    std::optional<sys::EventFd> end_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace hanare::pager
