// SPDX-License-Identifier: Apache-2.0
//
// Tenants of a memory server: `--tenant NAME:SIZE:FILE`.  Each has a secret of its own, by which
// the server knows whose a client is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "fabric/secret.hpp"
#include "server/memory_server.hpp"

namespace hanare::cli {

// A size of memory that is lent: its unit is an extent.
Result<uint64_t> parse_lent_size(const char* flag, const std::string& text);

// `first` is the server's own secret; without it there are no tenants.
Result<std::vector<server::MemoryServer::Settings::Tenant>> read_tenants(
    const std::vector<std::string>& texts, const std::optional<fabric::Secret>& first);

}  // namespace hanare::cli
