// SPDX-License-Identifier: Apache-2.0
//
// Tree: who passes on to whom what one task, the root, has for all.  Whoever is in it leads a run
// of neighbouring ranks (counted from the root, round the end), itself first; the rest of the run
// is divided evenly among its children.  So every subtree is a run, and everybody knows the whole
// tree.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hanare::job {

class Tree {
public:
    // `arity` is at least 1; `root` < `tasks`.
    Tree(uint32_t tasks, uint32_t arity, uint32_t root) noexcept
        : tasks_(tasks), arity_(arity), root_(root) {}

    struct Child {
        uint32_t rank = 0;
        uint32_t tasks = 0;  // that it leads, itself included
    };
    struct Place {
        std::optional<uint32_t> parent;  // none: the root
        uint32_t index = 0;              // among the parent's children
        uint32_t tasks = 0;
        std::vector<Child> children;
    };
    Place place_of(uint32_t rank) const;

private:
    struct Run {
        uint32_t begin = 0;  // counted from the root
        uint32_t tasks = 0;
    };
    uint32_t children_of(const Run& run) const noexcept;
    Run child(const Run& run, uint32_t index) const noexcept;
    uint32_t rank_at(uint32_t position) const noexcept;

    const uint32_t tasks_;
    const uint32_t arity_;
    const uint32_t root_;
};

}  // namespace hanare::job
