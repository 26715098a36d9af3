// SPDX-License-Identifier: Apache-2.0
//
// A memory server as the store of a program below `hanare run`, which makes its connections.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "store/store.hpp"

namespace hanare::remote {

// `place`: of the broker (broker_service.hpp).  Blocks are sealed where there is a secret, of which
// only the option says so here.  Errors as of open_server_store().
Result<std::unique_ptr<store::Store>> open_brokered_store(const config::StoreSpec& spec,
                                                          const config::Options& options,
                                                          const std::string& place);

}  // namespace hanare::remote
