// SPDX-License-Identifier: Apache-2.0
#include "stencil/taps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/units.hpp"

namespace hanare::stencil {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double neutral(hanare_reduction reduction) {
    if (reduction == HANARE_REDUCTION_SUM) return 0;
    return reduction == HANARE_REDUCTION_MAX ? -kInfinity : kInfinity;
}

void combine(hanare_reduction reduction, double& all, double value) {
    switch (reduction) {
        // What is no number stays.
        case HANARE_REDUCTION_MAX:
            if (value > all || std::isnan(value)) all = value;
            break;
        case HANARE_REDUCTION_MIN:
            if (value < all || std::isnan(value)) all = value;
            break;
        default: all += value;
    }
}

// Snapshots that passes in a chunk take part in.
uint64_t slots_of(const TapOptions& options) {
    if (options.snapshots.every == 0) return 0;
    return (options.lanes * options.steps_per_pass + options.snapshots.every - 1) /
           options.snapshots.every;
}

size_t staging_bytes(const Geometry& geometry, const TapOptions& options) {
    return 2 * slots_of(options) * static_cast<size_t>(options.chunk * geometry.sheets()) *
           geometry.packed_plane_bytes();
}

// Values that are formed separately of a plane.
int64_t rows_of(const Geometry& geometry, const TapOptions& options) {
    return geometry.is_flat() ? options.parts : geometry.rows().cells;
}

size_t partial_count(const Geometry& geometry, const Program& program, const TapOptions& options) {
    return program.reduction_count() * options.lanes * options.steps_per_pass *
           static_cast<size_t>(options.chunk * geometry.sheets() * rows_of(geometry, options));
}

}  // namespace

size_t Taps::bytes(const Geometry& geometry, const Program& program, const TapOptions& options) {
    return staging_bytes(geometry, options) +
           partial_count(geometry, program, options) * sizeof(double);
}

Result<std::unique_ptr<Taps>> Taps::make(const Geometry& geometry, const Program& program,
                                         const TapOptions& options) {
    std::unique_ptr<Taps> made(new Taps(geometry, program, options));
    if (options.snapshots.every == 0) return made;
    const auto steps = SnapshotSteps::of_run(options.snapshots.every, options.run_first_step,
                                             options.run_first_step + options.run_steps);
    const size_t bytes = round_up(staging_bytes(geometry, options), kOsPageBytes);
    HANARE_TRY_ASSIGN(made->staging_, sys::Mapping::reserve(bytes, kOsPageBytes));
    HANARE_TRY_ASSIGN(made->writer_, SnapshotWriter::open(options.snapshots, geometry, steps));
    return made;
}

Taps::Taps(const Geometry& geometry, const Program& program, const TapOptions& options)
    : geometry_(geometry),
      program_(program),
      options_(options),
      partial_(partial_count(geometry, program, options)),
      results_(options.reductions),
      snapshot_slots_(slots_of(options)) {
    const size_t count = program.reduction_count();
    if (count > 0 && results_ == nullptr) {
        own_results_.resize(options.run_steps * count);
        results_ = own_results_.data();
    }
    const auto set_neutral = [&](double* values, size_t steps) {
        for (size_t i = 0; i < steps; ++i) {
            for (const Stage& stage : program.stages()) {
                for (const hanare_reduction each : stage.reductions) *values++ = neutral(each);
            }
        }
    };
    if (count > 0) {
        set_neutral(results_, options.run_steps);
        set_neutral(partial_.data(), partial_.size() / count);
    }
    for (size_t i = 0; i < program.stage_count(); ++i) {
        if (std::ranges::count(program.stages()[i].writes, options.snapshots.field) > 0) {
            snapshot_stage_ = i;
        }
    }
}

double* Taps::values(const Pass& pass, uint32_t substep, int64_t front, int64_t sheet,
                     int64_t row) const {
    const size_t stages = program_.stage_count();
    const uint64_t step = substep / stages + pass.number % options_.lanes * options_.steps_per_pass;
    const auto number = static_cast<size_t>(
        ((static_cast<int64_t>(step) * options_.chunk + front - front_begin_) * geometry_.sheets() +
         sheet) *
            rows_of(geometry_, options_) +
        row);
    return partial_.data() + number * program_.reduction_count() +
           program_.stages()[substep % stages].first_reduction;
}

std::byte* Taps::snapshot_plane(const Pass& pass, uint32_t substep, int64_t front,
                                int64_t sheet) const {
    const uint64_t every = options_.snapshots.every;
    const size_t stages = program_.stage_count();
    if (every == 0 || substep % stages != snapshot_stage_) return nullptr;
    const uint64_t step = pass.first_step + substep / stages + 1;
    if (step % every != 0) return nullptr;
    const uint64_t half = static_cast<uint64_t>(front_begin_ / options_.chunk) % 2;
    const uint64_t slot = half * snapshot_slots_ + step / every % snapshot_slots_;
    const auto plane = static_cast<size_t>(
        (static_cast<int64_t>(slot) * options_.chunk + front - front_begin_) * geometry_.sheets() +
        sheet);
    return staging_.address() + plane * geometry_.packed_plane_bytes();
}

// Rows in order, then planes in order.
void Taps::reduce(const Pass& pass, uint32_t substep, int64_t front, int64_t position) {
    const size_t stages = program_.stage_count();
    const Stage& stage = program_.stages()[substep % stages];
    const uint64_t step = pass.first_step - options_.run_first_step + substep / stages;
    double* const all = results_ + step * program_.reduction_count() + stage.first_reduction;
    const int64_t begin = geometry_.is_flat() ? 0 : geometry_.rows().begin();
    const int64_t end = geometry_.is_flat() ? options_.parts : geometry_.rows().end();
    const size_t next = program_.reduction_count();
    for (int64_t sheet = 0; sheet < geometry_.sheets_at(position); ++sheet) {
        if (geometry_.is_frame_plane(geometry_.plane_of(position, sheet))) continue;
        double* const first = values(pass, substep, front, sheet, 0);
        for (size_t i = 0; i < stage.reductions.size(); ++i) {
            double plane = neutral(stage.reductions[i]);
            for (int64_t row = begin; row < end; ++row) {
                double& value = first[static_cast<size_t>(row) * next + i];
                combine(stage.reductions[i], plane, value);
                value = neutral(stage.reductions[i]);
            }
            combine(stage.reductions[i], all[i], plane);
        }
    }
}

Result<void> Taps::hand_over(const Pass& pass, int64_t front_end) {
    const uint64_t every = options_.snapshots.every;
    const size_t stages = program_.stage_count();
    for (uint64_t step = pass.first_step + 1; step <= pass.first_step + pass.steps; ++step) {
        if (step % every != 0) continue;
        const auto substep =
            static_cast<uint32_t>((step - 1 - pass.first_step) * stages + snapshot_stage_);
        for (int64_t front = front_begin_; front < front_end; ++front) {
            const int64_t position = front - (*pass.heights)[substep] - pass.base;
            if (position < 0 || position >= geometry_.positions()) continue;
            for (int64_t sheet = 0; sheet < geometry_.sheets_at(position); ++sheet) {
                writer_->put({step, geometry_.plane_of(position, sheet),
                              snapshot_plane(pass, substep, front, sheet)});
            }
        }
    }
    return {};
}

Result<void> Taps::end_chunk(const Pass& pass, int64_t front_end) {
    if (program_.reduction_count() > 0) {
        const auto substeps = static_cast<uint32_t>(pass.heights->size());
        for (uint32_t substep = 0; substep < substeps; ++substep) {
            if (program_.stages()[substep % program_.stage_count()].reductions.empty()) continue;
            for (int64_t front = front_begin_; front < front_end; ++front) {
                const int64_t position = front - (*pass.heights)[substep] - pass.base;
                if (position < 0 || position >= geometry_.positions()) continue;
                reduce(pass, substep, front, position);
            }
        }
    }
    return writer_ != nullptr ? hand_over(pass, front_end) : Result<void>();
}

Result<void> Taps::finish() { return writer_ != nullptr ? writer_->wait() : Result<void>(); }

void Taps::keep_snapshots() {
    if (writer_ != nullptr) writer_->keep();
}

uint64_t Taps::snapshot_bytes() const { return writer_ != nullptr ? writer_->bytes() : 0; }

}  // namespace hanare::stencil
