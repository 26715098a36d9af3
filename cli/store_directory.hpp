// SPDX-License-Identifier: Apache-2.0
//
// The directory of a file store, for commands that put files of their own beside it.  Any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "sys/platform.hpp"

namespace hanare::cli {

struct StoreDirectory {
    std::string path;
    sys::DirectoryReport report;
};

// STORE_UNAVAILABLE where it cannot be used, or is in memory and that is not allowed; the text
// names the option, where it was given and what to do.
Result<StoreDirectory> examine_store_directory(const config::Options& options);
// Of one file store among those of the option.
Result<StoreDirectory> examine_directory_of(const config::StoreSpec& store,
                                            const config::Options& options);
Result<std::string> store_directory(const config::Options& options);

}  // namespace hanare::cli
