// SPDX-License-Identifier: Apache-2.0
//
// SelfLink: operations of a process on memory that it exposes itself.  They are done when post()
// returns.  Keys are checked and find errors; they protect nothing from code in the same process.
#pragma once

#include "fabric/exposed_regions.hpp"
#include "fabric/link.hpp"

namespace hanare::fabric {

class SelfLink : public Link {
public:
    // The regions live longer.
    explicit SelfLink(ExposedRegions& regions) noexcept : regions_(regions) {}

    void post(Operation& operation) noexcept override;
    bool test(Operation& operation) noexcept override { return operation.is_done(); }
    hanare_status wait(Operation& operation) noexcept override { return operation.status(); }
    hanare_status carry_out(Operation& operation) noexcept override {
        post(operation);
        return operation.status();
    }
    void end() noexcept override { lost_.store(true, std::memory_order_relaxed); }
    bool is_lost() const noexcept override { return lost_.load(std::memory_order_relaxed); }

private:
    ExposedRegions& regions_;
    std::atomic<bool> lost_{false};
};

}  // namespace hanare::fabric
