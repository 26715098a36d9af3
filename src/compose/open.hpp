// SPDX-License-Identifier: Apache-2.0
//
// From a SPEC and options to a store, of whatever members.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "compose/composed_store.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "store/store.hpp"

namespace hanare::compose {

using OpenServer = Result<std::unique_ptr<store::Store>> (*)(const config::StoreSpec& spec,
                                                             const config::Options& options);

// Errors are those of the members: the first that cannot be opened.
Result<std::unique_ptr<store::Store>> open_store(const config::StoreSpec& spec,
                                                 const config::Options& options,
                                                 OpenServer open_server,
                                                 ComposedStore::Healing healing);

}  // namespace hanare::compose
