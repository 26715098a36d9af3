// SPDX-License-Identifier: Apache-2.0
//
// What a server is doing, as Prometheus reads it (its text format, version 0.0.4).
#pragma once

#include <string>

#include "server/lease_table.hpp"

namespace hanare::server {

std::string metrics_text(const LeaseTable::Status& status);

}  // namespace hanare::server
