// SPDX-License-Identifier: Apache-2.0
#include "pager/pool_options.hpp"

#include "config/store_spec.hpp"
#include "store/file_options.hpp"

namespace hanare::pager {

Result<PoolOptions> pool_options(const config::Options& options, OpenStore open_other) {
    HANARE_TRY_ASSIGN(const config::StoreSpec spec, config::parse_store_spec(options.store));
    PoolOptions result;
    if (spec.kind != config::StoreKind::kFile) {
        if (open_other == nullptr) {
            return fail(HANARE_STATUS_NOT_SUPPORTED, "store %.200s: not supported here yet",
                        options.store.c_str());
        }
        result.open_store = [spec, options, open_other] { return open_other(spec, options); };
    }
    result.local_bytes = options.local_bytes;
    result.block_bytes = options.block_bytes;
    result.read_ahead_blocks = options.read_ahead_blocks;
    switch (options.engine) {
        case config::Engine::kAuto: result.engine = EngineChoice::kAuto; break;
        case config::Engine::kSigbusMove: result.engine = EngineChoice::kSigbusMove; break;
        case config::Engine::kSigbusCopy: result.engine = EngineChoice::kSigbusCopy; break;
        case config::Engine::kSegvRemap: result.engine = EngineChoice::kSegvRemap; break;
        case config::Engine::kThread: result.engine = EngineChoice::kThread; break;
        case config::Engine::kShared: result.engine = EngineChoice::kShared; break;
    }
    if (options.replacement == config::Replacement::kRoundRobin) {
        result.replacement = Replacement::kRoundRobin;
    }
    result.works_ahead = options.background != config::Background::kOff;
    result.store = store::file_options(spec, options);
    return result;
}

}  // namespace hanare::pager
