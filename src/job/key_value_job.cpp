// SPDX-License-Identifier: Apache-2.0
#include "job/key_value_job.hpp"

#include "job/environment.hpp"
#include "job/rendezvous_job.hpp"
#include "job/wipe.hpp"
#include "sys/host_address.hpp"
#include "sys/pipe.hpp"

namespace hanare::job {
namespace {

constexpr const char* kCard = "hanare-card";
constexpr const char* kSecret = "hanare-secret";

Result<std::string> host_of(const KeyValues& values) {
    HANARE_TRY_ASSIGN(const auto host, host_variable());
    if (host) return *host;
    if (values.is_on_one_machine()) return "127.0.0.1";
    auto address = sys::outward_address();
    if (address) return address;
    return fail(HANARE_STATUS_NOT_FOUND, "%s; %s can name the address of this machine",
                address.error().text, kHostVariable);
}

// As a descriptor would bring it.
Result<fabric::Secret> secret_of(std::span<const std::byte> bytes) {
    if (bytes.size() != fabric::Secret::kBytes) {
        return fail(HANARE_STATUS_BAD_KEY, "the first task has published a secret of %zu bytes",
                    bytes.size());
    }
    HANARE_TRY_ASSIGN(const sys::FileDescriptor pipe, sys::pipe_holding(bytes));
    return fabric::Secret::read_descriptor(pipe.number());
}

Result<std::optional<fabric::Secret>> agree_on_secret(KeyValues& values, const Deadline& deadline) {
    HANARE_TRY_ASSIGN(auto secret, take_secret());
    if (secret || values.size() == 1) return secret;
    if (values.rank() == 0) {
        HANARE_TRY_ASSIGN(secret, fabric::Secret::make());
        HANARE_TRY(values.put(kSecret, secret->bytes(), deadline));
    }
    HANARE_TRY(values.exchange(deadline));
    if (secret) return secret;
    HANARE_TRY_ASSIGN(auto bytes, values.get(0, kSecret, deadline));
    const WipeAtEnd wiping(bytes);
    HANARE_TRY_ASSIGN(secret, secret_of(bytes));
    return secret;
}

}  // namespace

Result<std::unique_ptr<Job>> KeyValueJob::join(const char* launcher,
                                               std::unique_ptr<KeyValues> values,
                                               const Deadline& deadline) {
    HANARE_TRY_ASSIGN(std::string host, host_of(*values));
    HANARE_TRY_ASSIGN(auto secret, agree_on_secret(*values, deadline));
    return std::unique_ptr<Job>(
        new KeyValueJob(launcher, std::move(values), std::move(secret), std::move(host)));
}

Result<void> KeyValueJob::publish(std::span<const std::byte> card, int timeout_ms) {
    HANARE_TRY(check_card(card));
    const Deadline deadline(timeout_ms);
    HANARE_TRY(values_->put(kCard, card, deadline));
    return values_->exchange(deadline);
}

Result<std::vector<std::byte>> KeyValueJob::card_of(uint32_t rank, int timeout_ms) {
    HANARE_TRY(check_rank(rank, size()));
    const Deadline deadline(timeout_ms);
    const TimedLock::Guard guard(asking_, deadline_after(timeout_ms));
    if (!guard) {
        return fail(HANARE_STATUS_TIMEOUT, "task %u: other threads ask for cards", rank);
    }
    if (const auto known = cards_.find(rank); known != cards_.end()) return known->second;
    HANARE_TRY_ASSIGN(auto card, values_->get(rank, kCard, deadline));
    return cards_[rank] = std::move(card);
}

}  // namespace hanare::job
