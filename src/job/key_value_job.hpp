// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose launcher keeps values by name (PMIx, PMI-1): each task puts its own, all exchange, and
// then each can get those of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "job/deadline.hpp"
#include "job/job.hpp"
#include "job/timed_lock.hpp"

namespace hanare::job {

// What there is of a launcher.  By one thread at a time.
class KeyValues {
public:
    virtual ~KeyValues() = default;

    virtual uint32_t rank() const noexcept = 0;
    virtual uint32_t size() const noexcept = 0;
    // False when nobody knows.
    virtual bool is_on_one_machine() const noexcept = 0;

    // A value of this task's; names consist of letters and hyphens.
    virtual Result<void> put(const std::string& name, std::span<const std::byte> value,
                             const Deadline& deadline) = 0;
    // Of all tasks, together.
    virtual Result<void> exchange(const Deadline& deadline) = 0;
    virtual Result<std::vector<std::byte>> get(uint32_t rank, const std::string& name,
                                               const Deadline& deadline) = 0;
};

class KeyValueJob : public Job {
public:
    // All tasks call it.  Where nobody has been given a secret, the first task makes one, which the
    // launcher then carries to the others.
    static Result<std::unique_ptr<Job>> join(const char* launcher,
                                             std::unique_ptr<KeyValues> values,
                                             const Deadline& deadline);

    const char* launcher() const noexcept override { return launcher_; }
    uint32_t rank() const noexcept override { return values_->rank(); }
    uint32_t size() const noexcept override { return values_->size(); }
    const std::optional<fabric::Secret>& secret() const noexcept override { return secret_; }
    const std::string& host() const noexcept override { return host_; }
    Result<void> publish(std::span<const std::byte> card, int timeout_ms) override;
    Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) override;

private:
    KeyValueJob(const char* launcher, std::unique_ptr<KeyValues> values,
                std::optional<fabric::Secret> secret, std::string host)
        : launcher_(launcher),
          values_(std::move(values)),
          secret_(std::move(secret)),
          host_(std::move(host)) {}

    const char* const launcher_;
    const std::unique_ptr<KeyValues> values_;
    const std::optional<fabric::Secret> secret_;
    const std::string host_;
    // Held while asking: once all have exchanged nobody waits for a task.
    TimedLock asking_;
    std::unordered_map<uint32_t, std::vector<std::byte>> cards_;  // by who holds it
};

}  // namespace hanare::job
