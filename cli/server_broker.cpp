// SPDX-License-Identifier: Apache-2.0
#include "cli/server_broker.hpp"

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "config/store_spec.hpp"
#include "fabric/secret.hpp"
#include "fabric/tcp_link.hpp"
#include "lease/ask.hpp"
#include "remote/broker_service.hpp"
#include "remote/server_connection.hpp"
#include "sys/clock.hpp"
#include "sys/host_address.hpp"

namespace hanare::cli {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr const char* kSecretAdvice =
    "; it may want another secret_file (--secret-file, HANARE_SECRET_FILE), or none";

class ServerBroker final : public RunBroker {
public:
    explicit ServerBroker(std::unique_ptr<remote::BrokerService> service)
        : service_(std::move(service)) {}
    std::string place() const override { return service_->place(); }
    Result<void> start() override { return service_->start(); }

private:
    const std::unique_ptr<remote::BrokerService> service_;
};

Result<std::optional<fabric::Secret>> secret_of(const config::Options& options) {
    if (options.secret_file.empty()) return std::nullopt;
    auto secret = fabric::Secret::read_file(options.secret_file);
    if (secret) return std::move(*secret);
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "secret_file (%s): %.200s",
                options.sources[static_cast<size_t>(config::OptionId::secret_file)].c_str(),
                secret.error().text);
}

std::string why_silent(hanare_status status) {
    switch (status) {
        case HANARE_STATUS_NOT_SUPPORTED: return "is no memory server, or one of another version";
        case HANARE_STATUS_TIMEOUT: return "does not answer";
        case HANARE_STATUS_PEER_LOST:
            return std::string("has ended the connection") + kSecretAdvice;
        default: return std::string("refuses: ") + hanare_status_text(status);
    }
}

// Now, when the program does not run yet: that the server is there and has room.
Result<void> check_server(const config::StoreSpec& store, const config::Options& options,
                          const std::optional<fabric::Secret>& secret) {
    const std::string url = config::server_url(store.server);
    const auto wrong = [&](hanare_status status, const std::string& why) {
        return fail(status, "store (%s): memory server %.80s %.170s",
                    options.sources[static_cast<size_t>(config::OptionId::store)].c_str(),
                    url.c_str(), why.c_str());
    };
    const auto unavailable = [&](const std::string& why) {
        return wrong(HANARE_STATUS_STORE_UNAVAILABLE, why);
    };
    const auto timeout_ms = static_cast<int>(options.server_timeout_ms);
    const auto host = sys::look_up_host(store.server.host);
    if (!host) return unavailable(std::string("cannot be found: ") + host.error().text);
    const auto link = [&]() -> Result<std::unique_ptr<fabric::TcpLink>> {
        HANARE_TRY_ASSIGN(auto connected, remote::connect_to_server({.host = *host,
                                                                     .port = store.server.port,
                                                                     .secret = secret,
                                                                     .timeout_ms = timeout_ms}));
        return fabric::TcpLink::over(std::move(connected), 0);
    }();
    if (!link) {
        const bool may_be_secret = link.error().status == HANARE_STATUS_BAD_KEY ||
                                   link.error().status == HANARE_STATUS_PERMISSION ||
                                   (secret && link.error().os_errno == 0);
        return unavailable(std::string("cannot be used: ") + link.error().text +
                           (may_be_secret ? kSecretAdvice : ""));
    }
    lease::Question question;
    question.what = lease::Ask::kStatus;
    lease::Reply reply;
    const hanare_status status = lease::ask(
        **link, question, sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs, reply);
    if (status != HANARE_STATUS_OK) return unavailable(why_silent(status));
    if ((reply.answer.flags & lease::kDraining) != 0) return unavailable("is being drained");
    const uint64_t wanted = std::max(store.size_bytes, options.block_bytes);
    const uint64_t unleased = reply.answer.total_bytes - reply.answer.leased_bytes;
    if (unleased >= wanted) return {};
    return wrong(HANARE_STATUS_STORE_FULL, "has " + format_size(unleased) + " left of " +
                                               format_size(reply.answer.total_bytes) +
                                               ", too little for " + format_size(wanted));
}

Result<void> check_servers(const config::StoreSpec& store, const config::Options& options,
                           const std::optional<fabric::Secret>& secret) {
    if (store.kind == config::StoreKind::kServer) return check_server(store, options, secret);
    for (const config::StoreSpec& member : store.members) {
        HANARE_TRY(check_servers(member, options, secret));
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<RunBroker>> open_server_broker(const config::Options& options) {
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    HANARE_TRY_ASSIGN(const auto secret, secret_of(options));
    HANARE_TRY(check_servers(store, options, secret));
    HANARE_TRY_ASSIGN(
        auto service,
        remote::BrokerService::open(
            {.secret = secret, .timeout_ms = static_cast<int>(options.server_timeout_ms)}));
    return std::make_unique<ServerBroker>(std::move(service));
}

}  // namespace hanare::cli
