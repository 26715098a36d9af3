// SPDX-License-Identifier: Apache-2.0
#include "pager/engines.hpp"

#include "base/units.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/segv_remap.hpp"
#include "pager/fault/shared.hpp"
#include "pager/fault/sigbus_copy.hpp"
#include "pager/fault/sigbus_move.hpp"
#include "pager/fault/threaded.hpp"

namespace hanare::pager {

namespace {

template <typename Type>
EngineOwner own(Type* engine) {
    return {engine, [](Engine* ended) { delete static_cast<Type*>(ended); }};
}

template <typename Moving>
Result<EngineOwner> open_moving(sys::Userfault::Features features) {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(features));
    HANARE_TRY_ASSIGN(
        auto scratch,
        sys::Mapping::reserve(Moving::kScratchBuffers * Moving::kScratchBytes, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto zeros, sys::Mapping::reserve(kBlockBytesMax, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto nursery, sys::Mapping::reserve(kHugePageBytes, kHugePageBytes));
    HANARE_TRY_ASSIGN(auto keepers_nursery, sys::Mapping::reserve(kHugePageBytes, kHugePageBytes));
    return own(new Moving(std::move(userfault), features, std::move(scratch), std::move(zeros),
                          std::move(nursery), std::move(keepers_nursery)));
}

Result<EngineOwner> open_sigbus_move() { return open_moving<SigbusMove>({.move = true}); }

Result<EngineOwner> open_sigbus_copy() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open({}));
    return own(new SigbusCopy(std::move(userfault), {}));
}

Result<EngineOwner> open_thread() {
    if (auto engine = open_moving<Threaded<MovingEngine>>({.events = true, .move = true})) {
        return engine;
    }
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open({.events = true}));
    return own(new Threaded<CopyingEngine>(std::move(userfault), {.events = true}));
}

Result<EngineOwner> open_shared() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open({.shared_memory = true}));
    return own(new Shared(std::move(userfault), {.shared_memory = true}));
}

// Moves a page there and back, as the engine does.
Result<EngineOwner> open_segv_remap() {
    HANARE_TRY_ASSIGN(const auto source, sys::Mapping::reserve(kOsPageBytes, kOsPageBytes));
    HANARE_TRY_ASSIGN(const auto target, sys::Mapping::reserve(kOsPageBytes, kOsPageBytes));
    source.address()[0] = std::byte{1};
    const int error =
        sys::move_mapping(target.address(), source.address(), kOsPageBytes, PROT_NONE);
    if (error != 0) {
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error,
                          "mremap(MREMAP_DONTUNMAP) is refused");
    }
    return own(new SegvRemap());
}

Result<EngineOwner> open_any() {
    for (const auto open : {open_sigbus_move, open_sigbus_copy}) {
        if (auto engine = open()) return engine;
    }
    return open_segv_remap();
}

}  // namespace

Result<EngineOwner> open_engine(EngineChoice choice) {
    switch (choice) {
        case EngineChoice::kAuto: break;
        case EngineChoice::kSigbusMove: return open_sigbus_move();
        case EngineChoice::kSigbusCopy: return open_sigbus_copy();
        case EngineChoice::kSegvRemap: return open_segv_remap();
        case EngineChoice::kThread: return open_thread();
        case EngineChoice::kShared: return open_shared();
    }
    return open_any();
}

}  // namespace hanare::pager
