// SPDX-License-Identifier: Apache-2.0
//
// What is taken out of a run while the planes pass through memory: values of reductions, and planes
// of snapshots.  Threads that compute put parts in, within a chunk each (substep, position) once;
// end_chunk() combines the former in an order that does not depend on threads, and hands the latter
// to the writer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "stencil/geometry.hpp"
#include "stencil/passes.hpp"
#include "stencil/program.hpp"
#include "stencil/snapshots.hpp"
#include "sys/memory.hpp"

namespace hanare::stencil {

struct TapOptions {
    uint64_t run_first_step = 0;
    uint64_t steps_per_pass = 0;
    int64_t chunk = 0;             // fronts
    uint64_t lanes = 1;            // passes that may be in a chunk
    int64_t parts = 0;             // 2-D: of a row, Tiling::parts_max()
    double* reductions = nullptr;  // of the run's steps; may be NULL
    uint64_t run_steps = 0;
    SnapshotOptions snapshots;
};

class Taps {
public:
    static Result<std::unique_ptr<Taps>> make(const Geometry& geometry, const Program& program,
                                              const TapOptions& options);
    static size_t bytes(const Geometry& geometry, const Program& program,
                        const TapOptions& options);

    // All substeps between this and end_chunk() are at these fronts.
    void begin_chunk(int64_t front_begin) { front_begin_ = front_begin; }
    // Waits for what was handed over one chunk ago.
    Result<void> end_chunk(const Pass& pass, int64_t front_end);
    // What was handed over is written.
    Result<void> finish();
    uint64_t snapshot_bytes() const;
    // Their file stays even if none was due; otherwise it is removed unless planes were put in.
    void keep_snapshots();

    // Where a kernel puts the values of a row of a plane, in two dimensions of a part of the row.
    double* values(const Pass& pass, uint32_t substep, int64_t front, int64_t sheet,
                   int64_t row) const;
    // NULL unless this substep is the last of a snapshot's step to write the field: where the plane
    // goes, packed.
    std::byte* snapshot_plane(const Pass& pass, uint32_t substep, int64_t front,
                              int64_t sheet) const;
    uint32_t snapshot_field() const { return options_.snapshots.field; }

private:
    Taps(const Geometry& geometry, const Program& program, const TapOptions& options);

    void reduce(const Pass& pass, uint32_t substep, int64_t front, int64_t position);
    Result<void> hand_over(const Pass& pass, int64_t front_end);

    const Geometry& geometry_;
    const Program& program_;
    const TapOptions options_;
    int64_t front_begin_ = 0;
    mutable std::vector<double> partial_;
    std::vector<double> own_results_;
    double* results_ = nullptr;

    size_t snapshot_stage_ = 0;
    uint64_t snapshot_slots_ = 0;
    sys::Mapping staging_;
    std::unique_ptr<SnapshotWriter> writer_;
};

}  // namespace hanare::stencil
