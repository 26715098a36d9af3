// SPDX-License-Identifier: Apache-2.0
//
// Transfers between memory and a grid's storage, several at a time: by io_uring, by io_submit, or
// one after the other by the calling thread (mappings, and where the kernel has neither).  Used by
// one thread, but for wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "stencil/storage.hpp"

namespace hanare::stencil {

struct Transfer {
    bool writes = false;
    uint64_t offset = 0;
    std::byte* memory = nullptr;
    size_t bytes = 0;
    size_t tag = 0;
};

class Transfers {
public:
    struct Completion {
        size_t tag = 0;
        int error = 0;  // 0 or an errno value
    };
    static constexpr size_t kInFlightMax = 32;

    // NOT_SUPPORTED: the storage asks for what the kernel does not offer.
    static Result<std::unique_ptr<Transfers>> make(const Storage& storage);
    virtual ~Transfers() = default;

    // At most kInFlightMax that have not been collected.
    virtual void start(const Transfer& transfer) = 0;
    // False: nothing is to be collected.  Sleeps until something is, or somebody has called wake().
    virtual bool collect(Completion& completion, bool may_sleep) = 0;
    // Any thread.
    virtual void wake() noexcept = 0;
};

}  // namespace hanare::stencil
