// SPDX-License-Identifier: Apache-2.0
//
// The job of a task that nobody has started together with others.
#pragma once

#include <memory>
#include <optional>

#include "job/job.hpp"

namespace hanare::job {

class SingleJob : public Job {
public:
    static Result<std::unique_ptr<Job>> join();

    const char* launcher() const noexcept override { return "single"; }
    uint32_t rank() const noexcept override { return 0; }
    uint32_t size() const noexcept override { return 1; }
    const std::optional<fabric::Secret>& secret() const noexcept override { return secret_; }
    const std::string& host() const noexcept override { return host_; }
    Result<void> publish(std::span<const std::byte> card, int timeout_ms) override;
    Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) override;

private:
    SingleJob(std::optional<fabric::Secret> secret, std::string host)
        : secret_(std::move(secret)), host_(std::move(host)) {}

    const std::optional<fabric::Secret> secret_;
    const std::string host_;
    std::optional<std::vector<std::byte>> card_;
};

}  // namespace hanare::job
