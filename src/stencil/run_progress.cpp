// SPDX-License-Identifier: Apache-2.0
#include "stencil/run_progress.hpp"

#include "sys/clock.hpp"

namespace hanare::stencil {

namespace {

constexpr uint64_t kEveryNs = 100'000'000;

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

RunProgress::RunProgress(hanare_grid_progress_function function, void* user, uint64_t steps)
    : function_(function), user_(user), steps_(steps), begin_ns_(sys::now_ns()) {}

double RunProgress::elapsed_s() const { return seconds(sys::now_ns() - begin_ns_); }

bool RunProgress::tell(uint64_t steps_done, double fraction, uint64_t io_wait_ns) {
    if (function_ == nullptr) return true;
    const uint64_t now_ns = sys::now_ns();
    if (steps_done < steps_ && last_ns_ != 0 && now_ns - last_ns_ < kEveryNs) return true;
    last_ns_ = now_ns;
    hanare_grid_progress progress = {};
    progress.struct_size = sizeof progress;
    progress.steps = steps_;
    progress.steps_done = steps_done;
    progress.fraction = fraction;
    progress.elapsed_s = seconds(now_ns - begin_ns_);
    if (fraction > 0) {
        progress.remaining_s = progress.elapsed_s * (1 - fraction) / fraction;
        progress.steps_per_s = fraction * static_cast<double>(steps_) / (progress.elapsed_s + 1e-9);
    }
    progress.io_wait_s = seconds(io_wait_ns);
    return function_(&progress, user_) == 0;
}

}  // namespace hanare::stencil
