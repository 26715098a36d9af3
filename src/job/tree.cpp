// SPDX-License-Identifier: Apache-2.0
#include "job/tree.hpp"

#include <algorithm>

namespace hanare::job {

uint32_t Tree::children_of(const Run& run) const noexcept {
    return std::min(arity_, run.tasks - 1);
}

// The first ones lead one more where it does not divide evenly.
Tree::Run Tree::child(const Run& run, uint32_t index) const noexcept {
    const uint32_t rest = run.tasks - 1;
    const uint32_t children = children_of(run);
    const uint32_t longer = rest % children;
    const uint32_t tasks = rest / children;
    return {run.begin + 1 + index * tasks + std::min(index, longer),
            tasks + (index < longer ? 1 : 0)};
}

uint32_t Tree::rank_at(uint32_t position) const noexcept {
    return static_cast<uint32_t>((uint64_t{root_} + position) % tasks_);
}

Tree::Place Tree::place_of(uint32_t rank) const {
    const auto position = static_cast<uint32_t>((uint64_t{rank} + tasks_ - root_) % tasks_);
    Run run = {0, tasks_};
    Place place;
    while (run.begin != position) {
        uint32_t index = children_of(run) - 1;
        while (child(run, index).begin > position) --index;
        place.parent = rank_at(run.begin);
        place.index = index;
        run = child(run, index);
    }
    place.tasks = run.tasks;
    for (uint32_t index = 0; index < children_of(run); ++index) {
        const Run below = child(run, index);
        place.children.push_back({rank_at(below.begin), below.tasks});
    }
    return place;
}

}  // namespace hanare::job
