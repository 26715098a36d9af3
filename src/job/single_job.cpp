// SPDX-License-Identifier: Apache-2.0
#include "job/single_job.hpp"

#include "job/environment.hpp"
#include "job/rendezvous_job.hpp"

namespace hanare::job {

Result<std::unique_ptr<Job>> SingleJob::join() {
    HANARE_TRY_ASSIGN(auto host, host_variable());
    HANARE_TRY_ASSIGN(auto secret, take_secret());
    return std::unique_ptr<Job>(new SingleJob(std::move(secret), host.value_or("127.0.0.1")));
}

Result<void> SingleJob::publish(std::span<const std::byte> card, int) {
    HANARE_TRY(check_card(card));
    card_.emplace(card.begin(), card.end());
    return {};
}

// Nobody else could publish while this task waits.
Result<std::vector<std::byte>> SingleJob::card_of(uint32_t rank, int timeout_ms) {
    HANARE_TRY(check_rank(rank, size()));
    if (card_) return *card_;
    return fail(HANARE_STATUS_TIMEOUT, "task 0 has published no card within %d ms", timeout_ms);
}

}  // namespace hanare::job
