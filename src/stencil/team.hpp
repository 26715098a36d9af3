// SPDX-License-Identifier: Apache-2.0
//
// The threads of a run: `body` is called by each of them, the calling thread among them, and run_on
// returns when all have returned.  Where the system allows fewer threads, it is called by fewer;
// nothing may wait for a certain number.
#pragma once

#include <cstdint>
#include <functional>

namespace hanare::stencil {

void run_on(uint32_t threads, bool is_pinned, const std::function<void()>& body);

// For who waits for what another thread does soon: looks again at once, then lets others run.
class Patience {
public:
    void wait() noexcept;

private:
    uint32_t looks_ = 0;
};

}  // namespace hanare::stencil
