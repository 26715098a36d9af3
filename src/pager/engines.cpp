// SPDX-License-Identifier: Apache-2.0
#include "pager/engines.hpp"

#include "base/units.hpp"
#include "pager/fault/frame.hpp"
#include "pager/fault/sigbus_copy.hpp"
#include "pager/fault/sigbus_move.hpp"

namespace hanare::pager {

namespace {

template <typename Type>
EngineOwner own(Type* engine) {
    return {engine, [](Engine* ended) { delete static_cast<Type*>(ended); }};
}

Result<EngineOwner> open_sigbus_move() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(true));
    HANARE_TRY_ASSIGN(auto scratch,
                      sys::Mapping::reserve(SigbusMove::kScratchBuffers * SigbusMove::kScratchBytes,
                                            kOsPageBytes));
    HANARE_TRY_ASSIGN(auto zeros, sys::Mapping::reserve(kBlockBytesMax, kOsPageBytes));
    HANARE_TRY_ASSIGN(auto nursery, sys::Mapping::reserve(kHugePageBytes, kHugePageBytes));
    return own(new SigbusMove(std::move(userfault), std::move(scratch), std::move(zeros),
                              std::move(nursery)));
}

Result<EngineOwner> open_sigbus_copy() {
    HANARE_TRY_ASSIGN(auto userfault, sys::Userfault::open(false));
    return own(new SigbusCopy(std::move(userfault)));
}

}  // namespace

Result<EngineOwner> open_engine(EngineChoice choice) {
    if (choice != EngineChoice::kSigbusCopy) {
        auto engine = open_sigbus_move();
        if (engine || choice == EngineChoice::kSigbusMove) return engine;
    }
    return open_sigbus_copy();
}

}  // namespace hanare::pager
