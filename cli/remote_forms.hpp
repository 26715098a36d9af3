// SPDX-License-Identifier: Apache-2.0
//
// The stores that `hanare bench remote` measures: one memory server, and several as one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace hanare::cli {

struct StoreForm {
    const char* name;
    unsigned servers;
    const char* spec;     // "%1" is the first server's "HOST:PORT", and so on
    double bytes_factor;  // what is written to all servers together, by what the program writes
};

// The first is one server alone.
std::span<const StoreForm> store_forms();

// With the servers' addresses ("tcp://HOST:PORT") in their places.
std::string spec_of(const StoreForm& form, const std::vector<std::string>& urls);

}  // namespace hanare::cli
