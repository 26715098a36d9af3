// SPDX-License-Identifier: Apache-2.0
#include "fabric/operation.hpp"

namespace hanare::fabric {

bool is_fetch(FetchOp op, uint64_t width) noexcept {
    return op >= FetchOp::kAdd && op <= FetchOp::kCompareSwap &&
           (width == sizeof(uint32_t) || width == sizeof(uint64_t));
}

hanare_status check(const Operation& operation) noexcept {
    switch (operation.kind) {
        case Kind::kPut:
        case Kind::kGet: break;
        case Kind::kFetch:
            if (!is_fetch(operation.fetch_op, operation.width)) {
                return HANARE_STATUS_INVALID_ARGUMENT;
            }
            break;
        case Kind::kPush:
        case Kind::kPop:
        case Kind::kSignal:
        case Kind::kCall:
            if (operation.offset != 0) return HANARE_STATUS_INVALID_ARGUMENT;
            if (operation.bytes() > kMessageBytesMax) return HANARE_STATUS_OUT_OF_RANGE;
            break;
        default: return HANARE_STATUS_INVALID_ARGUMENT;
    }
    const bool wraps = operation.offset + operation.bytes() < operation.offset;
    return wraps ? HANARE_STATUS_OUT_OF_RANGE : HANARE_STATUS_OK;
}

}  // namespace hanare::fabric
