// SPDX-License-Identifier: Apache-2.0
//
// The passes of a run: all of the same number of steps but the last.  Immutable; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hanare::stencil {

struct Pass {
    uint64_t number = 0;
    uint64_t first_step = 0;  // the grid's step when it begins
    uint64_t steps = 0;
    int64_t base = 0;  // what its first position is counted as
    const std::vector<int64_t>* heights = nullptr;
    int64_t height() const { return heights->back(); }
};

class Passes {
public:
    struct Options {
        uint64_t first_step = 0;
        uint64_t steps = 0;
        uint64_t steps_per_pass = 0;
        int64_t spacing = 0;                                 // of their bases
        const std::vector<int64_t>* heights = nullptr;       // of whole passes
        const std::vector<int64_t>* last_heights = nullptr;  // of the last one
    };
    Passes() = default;
    explicit Passes(const Options& options)
        : options_(options),
          size_((options.steps + options.steps_per_pass - 1) / options.steps_per_pass) {}

    uint64_t size() const { return size_; }
    Pass operator[](uint64_t number) const {
        const uint64_t done = number * options_.steps_per_pass;
        Pass pass;
        pass.number = number;
        pass.first_step = options_.first_step + done;
        pass.steps = std::min(options_.steps_per_pass, options_.steps - done);
        pass.base = static_cast<int64_t>(number) * options_.spacing;
        pass.heights =
            pass.steps == options_.steps_per_pass ? options_.heights : options_.last_heights;
        return pass;
    }
    // How many have a base up to `position`.
    uint64_t begun_at(int64_t position) const {
        if (position < 0) return 0;
        if (options_.spacing == 0) return size_;
        return std::min(size_, static_cast<uint64_t>(position / options_.spacing) + 1);
    }
    // Steps of the first so many.
    uint64_t steps_of(uint64_t passes) const {
        return std::min(passes * options_.steps_per_pass, options_.steps);
    }

private:
    Options options_;
    uint64_t size_ = 0;
};

}  // namespace hanare::stencil
