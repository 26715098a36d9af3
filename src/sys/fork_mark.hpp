// SPDX-License-Identifier: Apache-2.0
//
// ForkMark: whether the calling process is the one that has made it, or a child of fork (however
// that was made), in which threads, locks and connections of the parent are of no use.
// is_child() is for any thread, async-signal-safe and without a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "sys/memory.hpp"

namespace hanare::sys {

class ForkMark {
public:
    static Result<ForkMark> make();

    bool is_child() const noexcept { return word_->load(std::memory_order_relaxed) == 0; }

private:
    explicit ForkMark(Mapping page) noexcept;

    // The kernel hands it to children as zeros.
    Mapping page_;
    std::atomic<uint32_t>* word_;
};

}  // namespace hanare::sys
