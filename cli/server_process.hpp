// SPDX-License-Identifier: Apache-2.0
//
// A `hanare server` of a benchmark's own, at a port that was free; it ends with this object, or
// with the process that started it, however that ends.  Used by the main thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "fabric/secret.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class ServerProcess {
public:
    // Returns when clients can come.  `secret`: only for those who know it.
    static Result<ServerProcess> start(const std::string& host, uint64_t memory_bytes,
                                       const std::optional<fabric::Secret>& secret,
                                       const sys::Interrupt& interrupt);

    pid_t pid() const { return child_.pid(); }
    const std::string& url() const { return url_; }  // "tcp://HOST:PORT"

private:
    ServerProcess(sys::Child child, std::string url)
        : child_(std::move(child)), url_(std::move(url)) {}

    sys::Child child_;
    std::string url_;
};

}  // namespace hanare::cli
