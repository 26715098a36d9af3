// SPDX-License-Identifier: Apache-2.0
#include "remote/open.hpp"

#include <optional>

#include "fabric/secret.hpp"
#include "remote/client_name.hpp"
#include "remote/remote_store.hpp"
#include "remote/server_connection.hpp"
#include "sys/host_address.hpp"
#include "sys/process_usage.hpp"

namespace hanare::remote {
Result<std::unique_ptr<store::Store>> open_server_store(const config::StoreSpec& spec,
                                                        const config::Options& options) {
    std::optional<fabric::Secret> secret;
    if (!options.secret_file.empty()) {
        auto found = fabric::Secret::read_file(options.secret_file);
        if (!found) {
            return fail(found.error().status, "secret_file (HANARE_SECRET_FILE): %s",
                        found.error().text);
        }
        secret = std::move(*found);
    }
    const auto host = sys::look_up_host(spec.server.host);
    if (!host) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "memory server %s: %s",
                    config::server_url(spec.server).c_str(), host.error().text);
    }
    const auto connect = [&](Use use) -> Result<std::unique_ptr<fabric::TcpLink>> {
        const bool may_spin = use == Use::kFaults && sys::allowed_cpus() > 1;
        HANARE_TRY_ASSIGN(
            auto connected,
            connect_to_server({.host = *host,
                               .port = spec.server.port,
                               .secret = secret,
                               .timeout_ms = static_cast<int>(options.server_timeout_ms)}));
        return fabric::TcpLink::over(std::move(connected), may_spin ? kSpin_us : 0);
    };
    HANARE_TRY_ASSIGN(auto server,
                      Server::open({.address = config::server_url(spec.server),
                                    .client = client_name(),
                                    .timeout_ms = static_cast<int>(options.server_timeout_ms)},
                                   connect));
    return RemoteStore::open(std::move(server),
                             {.size_bytes = spec.size_bytes, .is_sealed = secret.has_value()});
}

}  // namespace hanare::remote
