// SPDX-License-Identifier: Apache-2.0
#include "run/servers.hpp"

#include <cstdlib>
#include <string>

#include "compose/open.hpp"
#include "remote/open_brokered.hpp"
#include "run/cipher_library.hpp"

namespace hanare::run {

namespace {

// Never destroyed: a pool may be opened while the process ends.
constinit std::string* place = nullptr;

}  // namespace

Result<void> prepare_servers(const config::Options& options) {
    HANARE_TRY_ASSIGN(const config::StoreSpec spec, config::parse_store_spec(options.store));
    if (!config::uses_servers(spec)) return {};
    const char* const given = std::getenv("HANARE_RUN_BROKER");
    place = new std::string(given != nullptr ? given : "");
    return options.secret_file.empty() ? Result<void>() : load_cipher_library();
}

Result<std::unique_ptr<store::Store>> open_server(const config::StoreSpec& spec,
                                                  const config::Options& options) {
    if (spec.kind != config::StoreKind::kServer) {
        return compose::open_store(spec, options, open_server,
                                   compose::ComposedStore::Healing::kInTurns);
    }
    if (place == nullptr) {  // it is added later
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "%s: nobody makes connections for a program that had no server at first",
                    config::server_url(spec.server).c_str());
    }
    return remote::open_brokered_store(spec, options, *place);
}

}  // namespace hanare::run
