// SPDX-License-Identifier: Apache-2.0
//
// What a memory server tells of itself, as JSON: at GET /status, and by `hanare status --json`.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lease/messages.hpp"
#include "server/lease_table.hpp"

namespace hanare::cli {

// All that it knows.
nlohmann::ordered_json server_json(const server::LeaseTable::Status& status);

// What it says to clients: the part of the above that is in its answers.
nlohmann::ordered_json server_json(const lease::Answer& answer,
                                   const std::vector<lease::StatusRow>& rows);

}  // namespace hanare::cli
