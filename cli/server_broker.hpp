// SPDX-License-Identifier: Apache-2.0
//
// `hanare run` on memory servers: this process stays beside the program and makes its connections
// (remote/broker_service.hpp).
#pragma once

#include <memory>

#include "base/result.hpp"
#include "cli/run.hpp"
#include "config/options.hpp"

namespace hanare::cli {

// STORE_UNAVAILABLE, STORE_FULL: what is wrong with the server, before anything is started.
Result<std::unique_ptr<RunBroker>> open_server_broker(const config::Options& options);

}  // namespace hanare::cli
