// SPDX-License-Identifier: Apache-2.0
//
// What the user has set (config/options.hpp), as a pool is opened with it.
#pragma once

#include "config/options.hpp"
#include "pager/pool.hpp"

namespace hanare::pager {

// Fails where the store's SPEC cannot be understood.
Result<PoolOptions> pool_options(const config::Options& options);

}  // namespace hanare::pager
