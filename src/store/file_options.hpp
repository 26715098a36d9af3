// SPDX-License-Identifier: Apache-2.0
//
// What the user has set, as a file store is opened with it.
#pragma once

#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "store/store.hpp"

namespace hanare::store {

// `spec` is of a file.
FileStoreOptions file_options(const config::StoreSpec& spec, const config::Options& options);

}  // namespace hanare::store
