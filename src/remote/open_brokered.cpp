// SPDX-License-Identifier: Apache-2.0
#include "remote/open_brokered.hpp"

#include "remote/broker_client.hpp"
#include "remote/client_name.hpp"
#include "remote/remote_store.hpp"
#include "sys/process_usage.hpp"

namespace hanare::remote {

Result<std::unique_ptr<store::Store>> open_brokered_store(const config::StoreSpec& spec,
                                                          const config::Options& options,
                                                          const std::string& place) {
    const auto timeout_ms = static_cast<int>(options.server_timeout_ms);
    const bool is_sealed = !options.secret_file.empty();
    HANARE_TRY_ASSIGN(auto broker, BrokerClient::open(place, spec.server, timeout_ms, is_sealed));
    BrokerClient& connections = *broker;
    const auto connect = [&connections](Use use) {
        const bool may_spin = use == Use::kFaults && sys::allowed_cpus() > 1;
        return connections.connect(may_spin ? kSpin_us : 0);
    };
    HANARE_TRY_ASSIGN(auto server, Server::open({.address = config::server_url(spec.server),
                                                 .client = client_name(),
                                                 .timeout_ms = timeout_ms},
                                                connect, std::move(broker)));
    return RemoteStore::open(std::move(server),
                             {.size_bytes = spec.size_bytes, .is_sealed = is_sealed});
}

}  // namespace hanare::remote
