// SPDX-License-Identifier: Apache-2.0
//
// What the user has set (config/options.hpp), as a pool is opened with it.
#pragma once

#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "pager/pool.hpp"

namespace hanare::pager {

using OpenStore = Result<std::unique_ptr<store::Store>> (*)(const config::StoreSpec& spec,
                                                            const config::Options& options);
// Fails where the store's SPEC cannot be understood; NOT_SUPPORTED: it is no file, and nobody here
// opens others.
Result<PoolOptions> pool_options(const config::Options& options, OpenStore open_other = nullptr);

}  // namespace hanare::pager
