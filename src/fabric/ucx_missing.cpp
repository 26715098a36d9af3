// SPDX-License-Identifier: Apache-2.0
//
// The engine `ucx` where the headers of UCX were not there when this was built: nothing but this,
// since without a context there is nothing to call.
#ifndef HANARE_HAVE_UCX

#include "fabric/ucx_context.hpp"

namespace hanare::fabric {

Result<std::unique_ptr<UcxContext>> UcxContext::open(const Settings&) {
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "built without UCX: <ucp/api/ucp.h>, of Debian's libucx-dev, was not there");
}

UcxContext::~UcxContext() = default;

UcxMemory::~UcxMemory() = default;

}  // namespace hanare::fabric

#endif
