// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous_job.hpp"

#include "job/environment.hpp"
#include "sys/host_address.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

Result<Endpoint> rendezvous_variable() {
    const auto text = variable(kRendezvousVariable);
    if (!text) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s is set and %s is not; both are needed",
                    kRankVariable, kRendezvousVariable);
    }
    HANARE_TRY_ASSIGN(Endpoint endpoint, parse_endpoint(kRendezvousVariable, *text));
    HANARE_TRY_ASSIGN(endpoint.host, sys::look_up_host(endpoint.host));
    return endpoint;
}

}  // namespace

Result<void> check_card(std::span<const std::byte> card) {
    if (card.size() <= Job::kCardBytesMax) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "a card of %zu bytes; allowed are %zu", card.size(),
                Job::kCardBytesMax);
}

Result<void> check_rank(uint32_t rank, uint32_t size) {
    if (rank < size) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "there is no task %u in a job of %u", rank, size);
}

Result<void> RendezvousJob::publish(std::span<const std::byte> card, int timeout_ms) {
    HANARE_TRY(check_card(card));
    return client_.publish(card, Deadline(timeout_ms));
}

Result<std::vector<std::byte>> RendezvousJob::card_of(uint32_t rank, int timeout_ms) {
    HANARE_TRY(check_rank(rank, task_.size));
    const Deadline deadline(timeout_ms);
    auto card = client_.card_of(rank, deadline);
    const bool may_be_lost = !card && card.error().status == HANARE_STATUS_SYSTEM && rank == 0 &&
                             of_first_task_.has_value();
    if (!may_be_lost) return card;
    // Unless it is only this task's connection that is over.
    const auto socket =
        sys::connect_tcp(of_first_task_->host, of_first_task_->port, deadline.left_ms());
    if (socket || socket.error().status != HANARE_STATUS_PEER_LOST) return card;
    return fail(HANARE_STATUS_PEER_LOST, "task 0, which served the rendezvous, has ended");
}

bool is_hanare_job() {
    return variable(kRankVariable) || variable(kSizeVariable) || variable(kRendezvousVariable);
}

Result<std::unique_ptr<Job>> join_hanare_job(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(const Place own, place_variables(kRankVariable, kSizeVariable));
    RendezvousPlace place;
    HANARE_TRY_ASSIGN(place.endpoint, rendezvous_variable());
    HANARE_TRY_ASSIGN(const auto host, host_variable());
    HANARE_TRY_ASSIGN(place.secret, take_secret());
    place.protection = protection_towards(place.endpoint.host);
    const RendezvousClient::Task task = {.rank = own.rank, .size = own.size};
    HANARE_TRY_ASSIGN(RendezvousClient client, RendezvousClient::join(place, task, deadline));
    HANARE_TRY_ASSIGN(const std::string seen, client.local_address());
    return std::make_unique<RendezvousJob>("hanare", std::move(client), task, place.secret,
                                           host.value_or(seen));
}

}  // namespace hanare::job
