// SPDX-License-Identifier: Apache-2.0
#include "cli/store_directory.hpp"

#include "config/store_spec.hpp"
#include "sys/platform.hpp"

namespace hanare::cli {

Result<std::string> store_directory(const config::Options& options) {
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    HANARE_TRY_ASSIGN(const sys::DirectoryReport report, sys::probe_directory(store.directory));
    if (!report.in_memory || options.allow_tmpfs) return store.directory;
    return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                "--store: %s is in memory (%s), where nothing can be put away; name a directory "
                "on a disk, or set TMPDIR",
                store.directory.c_str(), report.file_system.c_str());
}

}  // namespace hanare::cli
