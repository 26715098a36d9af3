// SPDX-License-Identifier: Apache-2.0
//
// Runs of a grid: what has to be there before, the method, and what is told afterwards.
#include <algorithm>
#include <atomic>

#include "base/units.hpp"
#include "stencil/bandwidth.hpp"
#include "stencil/grid.hpp"
#include "stencil/run_progress.hpp"
#include "stencil/stream.hpp"
#include "stencil/transfers.hpp"
#include "stencil/trapezoid.hpp"

namespace hanare::stencil {

namespace {

// A thread's, of a simple kernel in cache: rather too fast, so that passes get longer and not the
// file's turn.
constexpr double kUpdatesPerThread = 1.8e9;
constexpr Speeds kFastDisk = {2.0e9, 2.0e9, 0};

}  // namespace

TapOptions Grid::tap_options(const Program& program, uint64_t steps, const RunOptions& options,
                             const Plan& plan) const {
    TapOptions taps;
    taps.run_first_step = step_;
    taps.steps_per_pass = plan.steps_per_pass;
    taps.chunk = plan.chunk;
    taps.lanes = is_in_file() ? 2 : 1;
    taps.parts = plan.chunk > 0 ? parts_of(geometry_, program, plan) : 0;
    taps.reductions = options.reductions;
    taps.run_steps = steps;
    taps.snapshots = options.snapshots;
    return taps;
}

Result<Speeds> Grid::speeds(const RunOptions& options) {
    Speeds speeds = kFastDisk;
    if (is_in_file() && options.measures) {
        if (measured_.read_bytes_per_s == 0) {
            HANARE_TRY_ASSIGN(measured_, measure_bandwidth(*storage_, options_.memory_bytes));
        }
        speeds = measured_;
    }
    const double cell = static_cast<double>(geometry_.element_bytes()) / sizeof(double);
    speeds.cell_updates_per_s =
        updates_per_s_ > 0 ? updates_per_s_ : kUpdatesPerThread * options.threads / cell;
    return speeds;
}

Result<Plan> Grid::make_plan(const Program& program, uint64_t steps, const RunOptions& options) {
    PlanInput input = {geometry_, fields_, program};
    input.is_in_file = is_in_file();
    input.keeps_unused = options_.durability == HANARE_DURABILITY_PING_PONG;
    input.steps = steps;
    input.memory_bytes = options_.memory_bytes;
    input.held_bytes = is_in_file() ? 0 : memory_needed();
    input.threads = options.threads;
    HANARE_TRY_ASSIGN(input.speeds, speeds(options));
    input.wishes = options.wishes;
    input.taps = tap_options(program, steps, options, {});
    statistics_.read_bytes_per_s = measured_.read_bytes_per_s;
    statistics_.write_bytes_per_s = measured_.write_bytes_per_s;
    statistics_.cell_updates_per_s = input.speeds.cell_updates_per_s;
    return options_.method == HANARE_METHOD_STREAM ? stencil::make_plan(input)
                                                   : plan_trapezoid(input);
}

void Grid::note(const Plan& plan, const Program& program, uint64_t steps) {
    PlanInput input = {geometry_, fields_, program};
    input.keeps_unused = options_.durability == HANARE_DURABILITY_PING_PONG;
    hanare_grid_statistics& all = statistics_;
    all.steps = steps;
    all.passes = (steps + plan.steps_per_pass - 1) / plan.steps_per_pass;
    all.steps_per_pass = static_cast<uint32_t>(plan.steps_per_pass);
    all.window_planes = static_cast<uint32_t>(plan.chunk);
    all.tile_height = static_cast<uint32_t>(plan.tile_height);
    all.threads = plan.threads;
    all.window_bytes = plan.window_bytes;
    all.read_bytes = all.written_bytes = all.snapshot_bytes = 0;
    all.elapsed_s = all.io_wait_s = all.steps_per_s = 0;
    all.redundant_updates = 0;
    all.cell_updates = 0;
    // Without padding: what has to be moved at least.
    const double packed = static_cast<double>(geometry_.cell_count()) *
                          static_cast<double>(geometry_.element_bytes()) /
                          static_cast<double>(geometry_.stored_bytes());
    all.minimal_bytes =
        is_in_file()
            ? all.passes * static_cast<uint64_t>(
                               packed * static_cast<double>(ring_bytes(input).moved_per_pass))
            : 0;
}

Result<void> Grid::check_steps(uint64_t steps) const {
    constexpr uint64_t kStepsMax = uint64_t{1} << 48;
    if (steps <= kStepsMax && step_ <= kStepsMax) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "steps: %llu; a run has %llu at most",
                static_cast<unsigned long long>(steps), static_cast<unsigned long long>(kStepsMax));
}

Result<hanare_grid_statistics> Grid::plan(const Program& program, uint64_t steps,
                                          const RunOptions& options) {
    HANARE_TRY(check_usable(false));
    HANARE_TRY(check_steps(steps));
    const hanare_grid_statistics kept = statistics_;
    const auto plan = make_plan(program, steps, options);
    if (plan) note(*plan, program, steps);
    hanare_grid_statistics planned = statistics_;
    statistics_ = kept;
    if (!plan) return std::unexpected(plan.error());
    return planned;
}

// The memory stays for the next run: to have pages cleared takes as long as to compute some steps.
Result<std::vector<FieldRings>> Grid::make_rings(const Program& program, const Plan& plan) {
    const bool keeps_unused = options_.durability == HANARE_DURABILITY_PING_PONG;
    std::vector<FieldRings> rings(fields_.size());
    size_t bytes = 0;
    for (int round = 0; round < 2; ++round) {
        if (round == 1) {
            HANARE_TRY(reserve_window(round_up(bytes, kHugePageBytes)));
            bytes = 0;
        }
        for (uint32_t field = 0; field < fields_.size(); ++field) {
            const bool is_kept = keeps_unused && fields_[field].kind != HANARE_FIELD_CONSTANT;
            if (!program.is_used(field) && !is_kept) continue;
            const bool is_two = fields_[field].kind == HANARE_FIELD_TWO_LEVELS;
            const size_t count = program.is_doubled(field) ? 2 : 1;
            for (size_t i = 0; i < count; ++i) {
                Ring& ring = rings[field].rings[i];
                ring = {window_.address() + bytes,
                        i == 0 || is_two ? plan.ring_length : plan.other_ring_length,
                        geometry_.position_bytes(), geometry_.sheet_bytes()};
                bytes += ring.bytes();
            }
        }
    }
    return rings;
}

Result<void> Grid::reserve_window(size_t bytes) {
    if (window_.bytes() == bytes) return {};
    window_ = sys::Mapping();  // first the old one, then the new one: the budget is for one
    HANARE_TRY_ASSIGN(window_, sys::Mapping::reserve(bytes, kHugePageBytes));
    sys::advise_huge_pages(window_, true);
    // The paper keeps it from being swapped; as far as the limit (ulimit -l) allows it.
    if (storage_->io() == HANARE_GRID_IO_SWAP) static_cast<void>(window_.lock());
    return {};
}

Result<void> Grid::prepare_memory(const Program& program) {
    for (uint32_t field = 0; field < fields_.size(); ++field) {
        if (!program.is_doubled(field) || buffers_[field].rings[1].memory != nullptr) continue;
        HANARE_TRY(add_buffer(field, 1));
    }
    return {};
}

Result<void> Grid::run(const Program& program, uint64_t steps, const RunOptions& options) {
    HANARE_TRY(check_usable(true));
    if (options.snapshots.every > 0 && (options.snapshots.field >= fields_.size() ||
                                        program.writes_per_step(options.snapshots.field) == 0)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "snapshot_field %u does not exist, or the stencil does not write it",
                    options.snapshots.field);
    }
    HANARE_TRY(check_steps(steps));
    if (steps == 0) return {};
    if (options_.method != HANARE_METHOD_STREAM) return run_trapezoid(program, steps, options);
    HANARE_TRY_ASSIGN(const Plan plan, make_plan(program, steps, options));
    note(plan, program, steps);
    return run_stream(program, steps, options, plan);
}

void Grid::tell(const Program& program, uint64_t steps, const RunResult& result, double elapsed_s) {
    hanare_grid_statistics& all = statistics_;
    if (result.steps < steps && all.passes > 0) {
        all.minimal_bytes = all.minimal_bytes / all.passes * result.passes;
    }
    all.steps = result.steps;
    all.passes = result.passes;
    all.read_bytes = result.read_bytes;
    all.written_bytes = result.written_bytes;
    all.redundant_updates = result.redundant_updates;
    all.elapsed_s = elapsed_s;
    all.io_wait_s = static_cast<double>(result.io_wait_ns) * 1e-9;
    all.steps_per_s = static_cast<double>(result.steps) / (elapsed_s + 1e-9);
    const uint64_t needed = geometry_.updated_planes() * geometry_.updated_cells() * result.steps *
                            program.stage_count();
    all.cell_updates = needed + result.redundant_updates;
    updates_per_s_ = static_cast<double>(all.cell_updates) / (elapsed_s - all.io_wait_s + 1e-9);
}

// Its cells are of several steps from now on, unless this fails.
Result<void> Grid::begin_in_place(uint32_t copy) {
    const Result<void> begun = storage_->commit(step_, copy, true);
    if (!begun && storage_->is_unsure() && !storage_->commit(step_, copy, false)) is_broken_ = true;
    return begun;
}

Result<void> Grid::run_stream(const Program& program, uint64_t steps, const RunOptions& options,
                              const Plan& plan) {
    std::vector<FieldRings> rings;
    if (is_in_file()) {
        HANARE_TRY_ASSIGN(rings, make_rings(program, plan));
    } else {
        HANARE_TRY(prepare_memory(program));
    }
    const bool has_taps = options.snapshots.every > 0 || program.reduction_count() > 0;
    std::unique_ptr<Taps> taps;
    if (has_taps) {
        HANARE_TRY_ASSIGN(
            taps, Taps::make(geometry_, program, tap_options(program, steps, options, plan)));
    }
    const bool is_in_place = is_in_file() && options_.durability == HANARE_DURABILITY_IN_PLACE;
    if (is_in_file()) HANARE_TRY(Transfers::make(*storage_));  // whether there are any
    RunProgress progress(options.progress, options.progress_user, steps);
    Stream stream({geometry_, fields_, program, is_in_file() ? rings : buffers_, plan,
                   storage_.get(), taps.get(), &progress, step_, steps, options.is_pinned});
    // Ping-pong: what the program has written by itself, until the first pass is finished.
    if (is_in_file()) HANARE_TRY(is_in_place ? begin_in_place(0) : storage_->sync());
    RunResult result;
    Result<void> done = stream.run(result);
    if (done && is_in_place) done = storage_->commit(step_ + result.steps, 0, false);
    const double elapsed_s = progress.elapsed_s();
    if (!done && (!is_in_file() || is_in_place)) {
        // As it was, unless something has been changed.
        const bool is_whole = !result.has_changed_cells &&
                              (!is_in_file() || storage_->commit(step_, 0, false).has_value());
        if (!is_whole) is_broken_ = true;
    }
    if (is_in_file() && storage_->is_unsure()) is_broken_ = true;
    if (done && taps != nullptr) taps->keep_snapshots();
    step_ += result.steps;

    tell(program, steps, result, elapsed_s);
    statistics_.snapshot_bytes = taps != nullptr ? taps->snapshot_bytes() : 0;
    if (done)
        progress.tell(result.steps, static_cast<double>(result.steps) / static_cast<double>(steps),
                      result.io_wait_ns);
    return done;
}

// For a crash there is no state that is whole while it runs: each pass overwrites what the one
// before began with, and nothing waits for the device.  A run that fails leaves the passes that it
// has finished.
Result<void> Grid::run_trapezoid(const Program& program, uint64_t steps,
                                 const RunOptions& options) {
    const bool has_levels = std::ranges::any_of(
        fields_, [](const FieldSpec& field) { return field.kind == HANARE_FIELD_TWO_LEVELS; });
    if (has_levels || program.reduction_count() > 0 || options.snapshots.every > 0) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "the trapezoid method has no fields of two levels, reductions or snapshots");
    }
    if (options_.durability != HANARE_DURABILITY_PING_PONG) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "the trapezoid method needs a file that was made for it, or ping-pong");
    }
    HANARE_TRY_ASSIGN(const Plan plan, make_plan(program, steps, options));
    note(plan, program, steps);
    HANARE_TRY_ASSIGN(const auto rings, make_rings(program, plan));
    const uint32_t copy = storage_->header().copy;
    HANARE_TRY(begin_in_place(copy));
    RunProgress progress(options.progress, options.progress_user, steps);
    RunResult result;
    Result<void> done = stencil::run_trapezoid(
        {geometry_, fields_, program, rings, plan, *storage_, progress, step_, steps,
         options_.method == HANARE_METHOD_TRAPEZOID_TWO_LEVEL, options.is_pinned},
        result);
    const double elapsed_s = progress.elapsed_s();
    const Result<void> committed = storage_->commit(
        step_ + result.steps, static_cast<uint32_t>((copy + result.passes) % 2), false);
    if (!committed) is_broken_ = true;
    if (done) done = committed;
    step_ += result.steps;
    tell(program, steps, result, elapsed_s);
    if (done) progress.tell(result.steps, 1, result.io_wait_ns);
    return done;
}

}  // namespace hanare::stencil
