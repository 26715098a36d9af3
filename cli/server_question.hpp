// SPDX-License-Identifier: Apache-2.0
//
// What a memory server says when it is asked, over the network.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace hanare::cli {

// As `hanare status --json`; the server is tcp://HOST[:PORT].  Takes up to five seconds.
Result<nlohmann::ordered_json> ask_server(const std::string& server,
                                          const std::optional<std::string>& secret_file);

}  // namespace hanare::cli
