// SPDX-License-Identifier: Apache-2.0
#include "fabric/self_link.hpp"

#include "fabric/apply.hpp"

namespace hanare::fabric {

void SelfLink::post(Operation& operation) noexcept {
    hanare_status status = is_lost() ? HANARE_STATUS_PEER_LOST : check(operation);
    if (status == HANARE_STATUS_OK) status = apply(regions_, operation);
    operation.note_failure(status);
    operation.finish();
}

}  // namespace hanare::fabric
