// SPDX-License-Identifier: Apache-2.0
//
// Memory servers as the store of a program: `hanare run`, its ancestor, makes the connections.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "store/store.hpp"

namespace hanare::run {

// Before the program begins: remembers where connections come from, and loads what seals blocks if
// there is a secret, before any memory is adopted.
Result<void> prepare_servers(const config::Options& options);

// As pager::OpenStore.
Result<std::unique_ptr<store::Store>> open_server(const config::StoreSpec& spec,
                                                  const config::Options& options);

}  // namespace hanare::run
