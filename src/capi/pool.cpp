// SPDX-License-Identifier: Apache-2.0
//
// hanare_pool_*, hanare_alloc and what follows from them: checks arguments, merges the options with
// environment and file, and calls pager::Pool.
#include "pager/pool.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/units.hpp"
#include "capi/arguments.hpp"
#include "capi/control.hpp"
#include "capi/guard.hpp"
#include "compose/open.hpp"
#include "config/options.hpp"
#include "hanare/hanare.h"
#include "intercept/region_memory.hpp"
#include "pager/pool_options.hpp"
#include "pager/view.hpp"
#include "remote/open.hpp"
#include "telemetry/log.hpp"

struct hanare_pool {
    std::unique_ptr<hanare::pager::Pool> pool;
    hanare::capi::ControlledPool control;
    bool serves_calls = false;  // its regions are for system calls, too
};

namespace hanare::capi {

namespace {

config::Overrides overrides_of(const hanare_pool_options& given) {
    using config::OptionId;
    config::Overrides overrides;
    const auto add = [&](OptionId id, std::string text, const char* field) {
        overrides.push_back({id, std::move(text), std::string("hanare_pool_options.") + field});
    };
    if (given.local_bytes != 0) {
        add(OptionId::local_bytes, std::to_string(given.local_bytes), "local_bytes");
    }
    if (given.store != nullptr) add(OptionId::store, given.store, "store");
    if (given.block_bytes != 0) {
        add(OptionId::block_bytes, std::to_string(given.block_bytes), "block_bytes");
    }
    if (given.engine != nullptr) add(OptionId::engine, given.engine, "engine");
    if (given.read_ahead_blocks == HANARE_READ_AHEAD_OFF) {
        add(OptionId::read_ahead_blocks, "0", "read_ahead_blocks");
    } else if (given.read_ahead_blocks != 0) {
        add(OptionId::read_ahead_blocks, std::to_string(given.read_ahead_blocks),
            "read_ahead_blocks");
    }
    if ((given.flags & HANARE_POOL_ALLOW_TMPFS) != 0) {
        add(OptionId::allow_tmpfs, "true", "flags");
    }
    if ((given.flags & HANARE_POOL_SYSCALLS) != 0) add(OptionId::syscalls, "on", "flags");
    if (given.replacement != nullptr) {
        add(OptionId::replacement, given.replacement, "replacement");
    }
    if (given.background != nullptr) add(OptionId::background, given.background, "background");
    return overrides;
}

Result<std::unique_ptr<store::Store>> open_other_store(const config::StoreSpec& spec,
                                                       const config::Options& options) {
    return compose::open_store(spec, options, remote::open_server_store,
                               compose::ComposedStore::Healing::kByThread);
}

// Below `hanare run` there is another Hanare in the process.  A fault in what this one needs to
// serve a fault could not be served: all of the program's memory is far, or what its pools have.
Result<void> be_the_only_one() {
    auto* const stand_aside =
        reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, "hanare_run_stand_aside"));
    if (stand_aside == nullptr || stand_aside()) return {};
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "all of the program's memory is far already, below hanare run: it opens a pool of "
                "its own before it asks for more than 8 MiB, or runs without hanare run");
}

Result<hanare_pool*> open_pool(const hanare_pool_options* given) {
    HANARE_TRY_ASSIGN(const auto known, copy_options("hanare_pool_open", given));
    if ((known.flags & ~(HANARE_POOL_ALLOW_TMPFS | HANARE_POOL_SYSCALLS)) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare_pool_open: flags 0x%x; allowed are HANARE_POOL_ALLOW_TMPFS and "
                    "HANARE_POOL_SYSCALLS",
                    known.flags);
    }
    HANARE_TRY_ASSIGN(const config::Options options, config::load_options(overrides_of(known)));
    telemetry::apply_log_options(options);
    HANARE_TRY(be_the_only_one());
    HANARE_TRY_ASSIGN(const pager::PoolOptions pool,
                      pager::pool_options(options, open_other_store));
    auto handle = std::make_unique<hanare_pool>();
    handle->serves_calls = options.syscalls == config::Switch::kOn;
    // Before the pool has a thread.
    if (handle->serves_calls) {
        HANARE_TRY(intercept::region_memory().begin());
        intercept::region_memory().note_pool(pool.local_bytes);
    }
    HANARE_TRY_ASSIGN(handle->pool, pager::Pool::open(pool));
    telemetry::log(telemetry::LogLevel::kInfo, "pool of %s over %s, engine %s",
                   format_size(pool.local_bytes).c_str(), handle->pool->describe_store().c_str(),
                   handle->pool->engine_name());
    if (options.control == config::Switch::kOn) add_controlled(handle->control, *handle->pool);
    return handle.release();
}

// An entry point that works on an open pool.
template <typename Body>
hanare_status on_pool(const char* function, hanare_pool* handle, Body body) noexcept {
    if (handle == nullptr) return report(null_argument(function, "pool"));
    return guarded(function, [&] { return body(*handle->pool); });
}

}  // namespace

}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::guarded;
using hanare::capi::null_argument;
using hanare::capi::on_pool;
using hanare::capi::report;
using hanare::pager::Pool;

namespace {

uintptr_t owner_of(const hanare_pool* pool) { return reinterpret_cast<uintptr_t>(pool); }

}  // namespace

extern "C" {

hanare_status hanare_pool_open(const hanare_pool_options* options, hanare_pool** pool) {
    if (pool == nullptr) return report(null_argument(__func__, "pool"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*pool, hanare::capi::open_pool(options));
        return {};
    });
}

hanare_status hanare_pool_close(hanare_pool* pool) {
    return on_pool(__func__, pool, [&](Pool& opened) -> Result<void> {
        HANARE_TRY(opened.check_unpinned());
        hanare::capi::remove_controlled(pool->control);
        hanare::intercept::region_memory().remove_all(owner_of(pool));
        delete pool;
        return {};
    });
}

hanare_status hanare_catch_system_calls(void) {
    return guarded(__func__, [] { return hanare::intercept::region_memory().begin(); });
}

hanare_status hanare_alloc(hanare_pool* pool, size_t bytes, const hanare_alloc_options* options,
                           void** address) {
    if (address == nullptr) return report(null_argument(__func__, "address"));
    return on_pool(__func__, pool, [&](Pool& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(const auto known, hanare::capi::copy_options("hanare_alloc", options));
        HANARE_TRY_ASSIGN(void* const made, opened.alloc(bytes, known.block_bytes, known.address));
        if (pool->serves_calls) {
            const auto added = hanare::intercept::region_memory().add(
                reinterpret_cast<uintptr_t>(made), hanare::round_up(bytes, hanare::kOsPageBytes),
                owner_of(pool));
            if (!added) {
                static_cast<void>(opened.free(made));
                return added;
            }
        }
        *address = made;
        return {};
    });
}

hanare_status hanare_free(hanare_pool* pool, void* address) {
    return on_pool(__func__, pool, [&](Pool& opened) -> Result<void> {
        auto& calls = hanare::intercept::region_memory();
        const auto begin = reinterpret_cast<uintptr_t>(address);
        const size_t bytes = pool->serves_calls ? calls.remove(begin, owner_of(pool)) : 0;
        const auto freed = opened.free(address);
        if (!freed && bytes != 0) HANARE_TRY(calls.add(begin, bytes, owner_of(pool)));
        return freed;
    });
}

hanare_status hanare_advise(hanare_pool* pool, const void* address, size_t bytes,
                            hanare_advice advice) {
    return on_pool(__func__, pool,
                   [&](Pool& opened) { return opened.advise(address, bytes, advice); });
}

hanare_status hanare_prefetch(hanare_pool* pool, const void* address, size_t bytes) {
    return on_pool(__func__, pool, [&](Pool& opened) {
        return opened.advise(address, bytes, HANARE_ADVICE_WILLNEED);
    });
}

hanare_status hanare_pin(hanare_pool* pool, const void* address, size_t bytes,
                         hanare_access access) {
    return on_pool(__func__, pool,
                   [&](Pool& opened) { return opened.pin(address, bytes, access); });
}

hanare_status hanare_unpin(hanare_pool* pool, const void* address, size_t bytes) {
    return on_pool(__func__, pool, [&](Pool& opened) { return opened.unpin(address, bytes); });
}

hanare_status hanare_flush(hanare_pool* pool, const void* address, size_t bytes) {
    return on_pool(__func__, pool, [&](Pool& opened) { return opened.flush(address, bytes); });
}

hanare_status hanare_region_export(hanare_pool* pool, const void* address, int* descriptor) {
    if (descriptor == nullptr) return report(null_argument(__func__, "descriptor"));
    return on_pool(__func__, pool, [&](Pool& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(*descriptor, opened.export_region(address));
        return {};
    });
}

hanare_status hanare_view_open(int descriptor, const void** address, size_t* bytes) {
    if (address == nullptr) return report(null_argument(__func__, "address"));
    if (bytes == nullptr) return report(null_argument(__func__, "bytes"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(const auto view, hanare::pager::open_view(descriptor));
        *address = view.address;
        *bytes = view.bytes;
        return {};
    });
}

hanare_status hanare_view_close(const void* address) {
    return guarded(__func__, [&] { return hanare::pager::close_view(address); });
}

hanare_status hanare_stats(hanare_pool* pool, const void* address, hanare_counters* counters) {
    if (counters == nullptr) return report(null_argument(__func__, "counters"));
    return on_pool(__func__, pool, [&](Pool& opened) -> Result<void> {
        const size_t known = std::min(counters->struct_size, sizeof(hanare_counters));
        if (known < sizeof(size_t)) {
            return hanare::fail(HANARE_STATUS_INVALID_ARGUMENT,
                                "hanare_stats: counters->struct_size is %zu; set it to sizeof "
                                "the struct",
                                counters->struct_size);
        }
        hanare_counters found = {};
        HANARE_TRY(opened.stats(address, found));
        found.struct_size = counters->struct_size;
        std::memcpy(counters, &found, known);
        return {};
    });
}

}  // extern "C"
