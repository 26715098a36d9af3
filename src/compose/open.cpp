// SPDX-License-Identifier: Apache-2.0
#include "compose/open.hpp"

#include <utility>
#include <vector>

#include "compose/layout.hpp"
#include "store/file_options.hpp"

namespace hanare::compose {

namespace {

// Of mirror: those beyond are spares.
constexpr uint32_t kCopies = 2;

Layout layout_of(const config::StoreSpec& spec, uint64_t block_bytes) {
    switch (spec.kind) {
        case config::StoreKind::kMirror: return Layout::mirror(kCopies);
        case config::StoreKind::kParity: return Layout::parity(spec.data, block_bytes);
        default: return Layout::list();
    }
}

}  // namespace

Result<std::unique_ptr<store::Store>> open_store(const config::StoreSpec& spec,
                                                 const config::Options& options,
                                                 OpenServer open_server,
                                                 ComposedStore::Healing healing) {
    if (spec.kind == config::StoreKind::kFile) {
        return store::open_file_store(store::file_options(spec, options));
    }
    if (spec.kind == config::StoreKind::kServer) return open_server(spec, options);
    std::vector<std::unique_ptr<store::Store>> members;
    for (const config::StoreSpec& member : spec.members) {
        HANARE_TRY_ASSIGN(auto one, open_store(member, options, open_server, healing));
        members.push_back(std::move(one));
    }
    const auto open_member = [options, open_server, healing](
                                 const std::string& text) -> Result<std::unique_ptr<store::Store>> {
        HANARE_TRY_ASSIGN(const config::StoreSpec wanted, config::parse_store_spec(text));
        return open_store(wanted, options, open_server, healing);
    };
    return ComposedStore::open(layout_of(spec, options.block_bytes), std::move(members), healing,
                               open_member);
}

}  // namespace hanare::compose
