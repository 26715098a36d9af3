// SPDX-License-Identifier: Apache-2.0
//
// What a memory server says when it is asked, over the network.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "config/server_address.hpp"

namespace hanare::cli {

// As `hanare status --json`; the server is tcp://HOST[:PORT].  Takes up to five seconds.
Result<nlohmann::ordered_json> ask_server(const std::string& server,
                                          const std::optional<std::string>& secret_file);

// STORE_UNAVAILABLE: there is somebody who says nothing, for five seconds.  Whoever says anything,
// be it that another secret is wanted, is not silent, nor is who cannot be reached from here.
Result<void> check_not_silent(const config::ServerAddress& server,
                              const std::optional<std::string>& secret_file);

}  // namespace hanare::cli
