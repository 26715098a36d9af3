// SPDX-License-Identifier: Apache-2.0
#include "cli/store_directory.hpp"

#include <utility>

#include "config/store_spec.hpp"

namespace hanare::cli {

Result<StoreDirectory> examine_store_directory(const config::Options& options) {
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    if (store.kind == config::StoreKind::kFile) return examine_directory_of(store, options);
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "store (%s): %.150s: memory servers, and several stores, are for hanare run and "
                "pools of the C API; here name a directory (--store file:DIR)",
                options.sources[static_cast<size_t>(config::OptionId::store)].c_str(),
                options.store.c_str());
}

Result<StoreDirectory> examine_directory_of(const config::StoreSpec& store,
                                            const config::Options& options) {
    constexpr const char* kRemedy = "name another directory (--store file:DIR), or set TMPDIR";
    const std::string& source = options.sources[static_cast<size_t>(config::OptionId::store)];
    const auto report = sys::examine_directory(store.directory);
    if (!report) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "store (%s): %.150s; %s", source.c_str(),
                    report.error().text, kRemedy);
    }
    if (!report->in_memory || options.allow_tmpfs) return StoreDirectory{store.directory, *report};
    return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                "store (%s): %s is in memory (%s), where nothing can be put away; %s",
                source.c_str(), store.directory.c_str(), report->file_system.c_str(), kRemedy);
}

Result<std::string> store_directory(const config::Options& options) {
    HANARE_TRY_ASSIGN(StoreDirectory directory, examine_store_directory(options));
    return std::move(directory.path);
}

}  // namespace hanare::cli
