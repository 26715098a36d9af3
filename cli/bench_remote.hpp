// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench remote`: memory servers next to raw sockets that move the same bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct RemoteFlags {
    // Where nothing is given, `quick` decides.
    std::optional<std::string> size;
    std::optional<std::string> cases;
    std::optional<std::string> networks;
    std::optional<std::string> rounds;
    bool quick = false;
    std::optional<std::string> json;
    std::optional<std::string> near;  // this process is one end
    std::optional<std::string> far;
    std::shared_ptr<config::Overrides> overrides;
};

// "loopback,veth,..."
std::string remote_network_names();

// Returns the exit status.
int run_bench_remote(const RemoteFlags& flags);

}  // namespace hanare::cli
