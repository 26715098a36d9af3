// SPDX-License-Identifier: Apache-2.0
//
// A memory server as the store of a pool, as the user has asked for it.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "store/store.hpp"

namespace hanare::remote {

// STORE_UNAVAILABLE: the server cannot be used; STORE_FULL: it has not as much as the SPEC says;
// NOT_FOUND, PERMISSION, INVALID_ARGUMENT: the secret's file.
Result<std::unique_ptr<store::Store>> open_server_store(const config::StoreSpec& spec,
                                                        const config::Options& options);

}  // namespace hanare::remote
