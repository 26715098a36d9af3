// SPDX-License-Identifier: Apache-2.0
//
// Tells a run's progress to whoever asked for it, a few times a second at most.  By one thread at a
// time.
#pragma once

#include <cstdint>

#include "hanare/stencil.h"

namespace hanare::stencil {

class RunProgress {
public:
    RunProgress(hanare_grid_progress_function function, void* user, uint64_t steps);

    // False: the run is to end.
    bool tell(uint64_t steps_done, double fraction, uint64_t io_wait_ns);
    double elapsed_s() const;

private:
    const hanare_grid_progress_function function_;
    void* const user_;
    const uint64_t steps_;
    const uint64_t begin_ns_;
    uint64_t last_ns_ = 0;
};

}  // namespace hanare::stencil
