// SPDX-License-Identifier: Apache-2.0
//
// Computes one substep of a part of a position: calls the kernel with the right pointers, then adds
// sources, copies what fixed boundaries need and makes halos.  Several threads at once, for parts
// that do not depend on each other; each has a Scratch of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "stencil/geometry.hpp"
#include "stencil/program.hpp"
#include "stencil/ring.hpp"
#include "stencil/taps.hpp"
#include "stencil/tiles.hpp"

namespace hanare::stencil {

class Executor {
public:
    class Scratch {
        friend class Executor;
        std::vector<const void*> in_;
        std::vector<void*> out_;
    };

    Executor(const Geometry& geometry, const Program& program,
             const std::vector<FieldRings>& rings);

    // `substep` 0 is the first of the pass; `part` is of the lateral axis, and not empty.  Its
    // number (Tiling::part_number) is for reductions.
    void update(const Pass& pass, uint32_t substep, int64_t position, Interval part,
                Scratch& scratch, int64_t part_number = 0) const;
    // Which of a field's rings holds it after so many steps of a pass.
    size_t ring_after(uint32_t field, uint64_t steps) const {
        return program_.is_doubled(field) ? steps * program_.writes_per_step(field) % 2 : 0;
    }
    // May be NULL.
    void set_taps(Taps* taps) { taps_ = taps; }

private:
    struct Box;

    void point_in(const Box& box, Scratch& scratch) const;
    void call_kernel(const Box& box, const Scratch& scratch) const;
    void add_sources(const Box& box) const;
    void copy_frame(const Box& box, uint32_t field, size_t target) const;
    void make_column_halos(const Box& box, const Ring& ring) const;
    void make_row_halos(const Box& box, const Ring& ring) const;
    void take_snapshot(const Box& box, uint32_t field, size_t ring) const;
    size_t ring_before(const Box& box, uint32_t field) const;

    const Geometry& geometry_;
    const Program& program_;
    const std::vector<FieldRings>& rings_;
    Taps* taps_ = nullptr;
};

}  // namespace hanare::stencil
