// SPDX-License-Identifier: Apache-2.0
#include "pager/pool_options.hpp"

#include "config/store_spec.hpp"

namespace hanare::pager {

Result<PoolOptions> pool_options(const config::Options& options, OpenServer open_server) {
    HANARE_TRY_ASSIGN(const config::StoreSpec spec, config::parse_store_spec(options.store));
    PoolOptions result;
    if (spec.kind == config::StoreKind::kServer) {
        if (open_server == nullptr) {
            return fail(HANARE_STATUS_NOT_SUPPORTED, "store %.200s: not supported here yet",
                        options.store.c_str());
        }
        result.open_store = [spec, options, open_server] { return open_server(spec, options); };
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
    result.store.directory = spec.directory;
    result.store.size_bytes = spec.size_bytes;
    result.store.allow_tmpfs = options.allow_tmpfs;
    result.store.use_direct = options.use_direct;
    result.store.use_uring = options.io != config::Io::kSync;
    result.store.need_uring = options.io == config::Io::kUring;
    return result;
}

}  // namespace hanare::pager
