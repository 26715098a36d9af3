// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose cards are carried by a rendezvous: that of `hanare launch`, or of whoever else sets
// HANARE_RANK, HANARE_SIZE and HANARE_RENDEZVOUS, and that of Slurm's first task.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "job/job.hpp"
#include "job/rendezvous_client.hpp"
#include "job/rendezvous_thread.hpp"

namespace hanare::job {

class RendezvousJob : public Job {
public:
    // `of_first_task`: where task 0 serves the rendezvous; with it that task is lost.
    RendezvousJob(const char* launcher, RendezvousClient client, RendezvousClient::Task task,
                  std::optional<fabric::Secret> secret, std::string host,
                  std::unique_ptr<RendezvousThread> thread = nullptr,
                  std::optional<Endpoint> of_first_task = std::nullopt)
        : launcher_(launcher),
          thread_(std::move(thread)),
          client_(std::move(client)),
          task_(task),
          secret_(std::move(secret)),
          host_(std::move(host)),
          of_first_task_(std::move(of_first_task)) {}

    const char* launcher() const noexcept override { return launcher_; }
    uint32_t rank() const noexcept override { return task_.rank; }
    uint32_t size() const noexcept override { return task_.size; }
    const std::optional<fabric::Secret>& secret() const noexcept override { return secret_; }
    const std::string& host() const noexcept override { return host_; }
    Result<void> publish(std::span<const std::byte> card, int timeout_ms) override;
    Result<std::vector<std::byte>> card_of(uint32_t rank, int timeout_ms) override;

private:
    const char* const launcher_;
    // Of the task that serves the others; outlives its own connection.
    const std::unique_ptr<RendezvousThread> thread_;
    RendezvousClient client_;
    const RendezvousClient::Task task_;
    const std::optional<fabric::Secret> secret_;
    const std::string host_;
    const std::optional<Endpoint> of_first_task_;
};

// Whether the environment speaks of such a job, and the job.
bool is_hanare_job();
Result<std::unique_ptr<Job>> join_hanare_job(const Deadline& deadline);

// What all jobs refuse alike: INVALID_ARGUMENT.
Result<void> check_card(std::span<const std::byte> card);
Result<void> check_rank(uint32_t rank, uint32_t size);

}  // namespace hanare::job
