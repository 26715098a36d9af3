// SPDX-License-Identifier: Apache-2.0
#include "cli/store_directory.hpp"

#include "config/store_spec.hpp"
#include "sys/platform.hpp"

namespace hanare::cli {

Result<std::string> store_directory(const config::Options& options) {
    constexpr const char* kRemedy = "name another directory (--store file:DIR), or set TMPDIR";
    const std::string& source = options.sources[static_cast<size_t>(config::OptionId::store)];
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    const auto report = sys::probe_directory(store.directory);
    if (!report) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "store (%s): %.150s; %s", source.c_str(),
                    report.error().text, kRemedy);
    }
    if (!report->in_memory || options.allow_tmpfs) return store.directory;
    return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                "store (%s): %s is in memory (%s), where nothing can be put away; %s",
                source.c_str(), store.directory.c_str(), report->file_system.c_str(), kRemedy);
}

}  // namespace hanare::cli
