// SPDX-License-Identifier: Apache-2.0
#include "stencil/plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "stencil/tiles.hpp"

namespace hanare::stencil {

namespace {

constexpr size_t kSecondCacheDefault = kMiB;
// Of the second-level cache, what a tile may take: the rest is for what passes through.
constexpr double kCacheShare = 0.70;
constexpr size_t kSlabBytes = kMiB;  // transfers of a MiB are as fast as longer ones
constexpr int64_t kChunkMax = 64;
constexpr uint64_t kStepsInMemory = 64;
constexpr uint64_t kStepsMax = 1024;
// A chunk begins by bringing a diamond's planes into the cache again: as long as so many cells of
// each of them take to be computed (decision 42).
constexpr double kRestartCost = 0.05;
// The first and the last row of a pass are half diamonds, and so is what they use again.
constexpr double kEndCost = 0.3;
// What of the file's bandwidth is counted on.
constexpr double kBandwidthShare = 0.75;

size_t second_cache_bytes() {
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? static_cast<size_t>(bytes) : kSecondCacheDefault;
}

class Planner {
public:
    explicit Planner(const PlanInput& input)
        : input_(input),
          geometry_(input.geometry),
          step_height_(input.program.step_height()),
          bytes_(ring_bytes(input)) {}

    Result<Plan> plan();

private:
    int64_t choose_tile_height() const;
    int64_t choose_lag(const Plan& plan) const;
    void set_rings(Plan& plan) const;
    size_t memory_of(const Plan& plan) const;
    bool fits(const Plan& plan) const { return memory_of(plan) <= input_.memory_bytes; }
    int64_t chunk_that_fits(Plan plan) const;
    double seconds_of_run(const Plan& plan) const;
    Result<void> plan_in_memory(Plan& plan) const;
    size_t taps_bytes(const Plan& plan, uint64_t lanes) const;
    Result<void> plan_in_file(Plan& plan) const;
    void search(Plan& best, int64_t slab) const;

    const PlanInput& input_;
    const Geometry& geometry_;
    const int64_t step_height_;
    const RingBytes bytes_;
};

// Rows (in two dimensions cells) that a diamond touches at one front, in all buffers.
int64_t Planner::choose_tile_height() const {
    const int64_t slope = input_.program.slope_max();
    if (input_.wishes.tile_height > 0) return std::max(input_.wishes.tile_height, slope);
    int64_t buffers = 0;
    for (uint32_t field = 0; field < input_.fields.size(); ++field) {
        if (input_.program.is_used(field)) buffers += input_.program.is_doubled(field) ? 2 : 1;
    }
    const bool is_flat = geometry_.is_flat();
    const int64_t unit_bytes =
        geometry_.element_bytes() * (is_flat ? 1 : geometry_.row_stride()) * geometry_.sheets();
    const auto room = static_cast<int64_t>(kCacheShare * static_cast<double>(second_cache_bytes()));
    const int64_t step = is_flat ? 8 : 1;
    const int64_t radius = input_.program.radius();
    int64_t height = std::max(slope, is_flat ? int64_t{8} : int64_t{2});
    for (;;) {
        const int64_t next = height + step;
        if ((2 * next * next + 4 * next * radius) * unit_bytes * buffers > room) break;
        if (next > 512) break;
        height = next;
    }
    return height;
}

// Enough tiles that can be computed at the same time.
int64_t Planner::choose_lag(const Plan& plan) const {
    if (input_.wishes.lag > 0) return input_.wishes.lag;
    const int64_t height = static_cast<int64_t>(plan.steps_per_pass) * step_height_;
    const int64_t rows = height / plan.tile_height + 2;
    return std::max<int64_t>(1, (2 * static_cast<int64_t>(plan.threads) + rows - 1) / rows);
}

void Planner::set_rings(Plan& plan) const {
    const int64_t height = static_cast<int64_t>(plan.steps_per_pass) * step_height_;
    const int64_t live = height + geometry_.radius() + plan.chunk + 2 * plan.slab;
    const auto whole_slabs = [&](int64_t positions) {
        return (positions + plan.slab - 1) / plan.slab * plan.slab;
    };
    plan.ring_length = whole_slabs(live + plan.chunk);
    // What ends in the other buffer is written from there.
    const bool ends_there = plan.steps_per_pass % 2 != 0 || input_.program.stage_count() > 1;
    plan.other_ring_length = whole_slabs(live + (ends_there ? plan.chunk : 0));
}

size_t Planner::memory_of(const Plan& plan) const {
    Plan sized = plan;
    set_rings(sized);
    return static_cast<size_t>(sized.ring_length) * bytes_.read +
           static_cast<size_t>(sized.other_ring_length) * bytes_.other + taps_bytes(plan, 2);
}

size_t Planner::taps_bytes(const Plan& plan, uint64_t lanes) const {
    TapOptions taps = input_.taps;
    taps.steps_per_pass = plan.steps_per_pass;
    taps.chunk = plan.chunk;
    taps.lanes = lanes;
    taps.parts = parts_of(geometry_, input_.program, plan);
    return Taps::bytes(geometry_, input_.program, taps);
}

int64_t Planner::chunk_that_fits(Plan plan) const {
    const int64_t wish = input_.wishes.chunk;
    int64_t low = 0;
    int64_t high = wish > 0 ? wish : std::max(kChunkMax, 8 * plan.slab);
    while (low < high) {
        plan.chunk = (low + high + 1) / 2;
        if (fits(plan)) {
            low = plan.chunk;
        } else {
            high = plan.chunk - 1;
        }
    }
    return wish > 0 && low < wish ? 0 : low;
}

// Of the whole run.
double Planner::seconds_of_run(const Plan& plan) const {
    const auto cells = static_cast<double>(geometry_.cell_count());
    const auto stages = static_cast<double>(input_.program.stage_count());
    const auto steps = static_cast<double>(plan.steps_per_pass);
    const auto passes =
        static_cast<double>((input_.steps + plan.steps_per_pass - 1) / plan.steps_per_pass);
    const auto height = static_cast<double>(plan.tile_height);
    const auto chunk = static_cast<double>(plan.chunk);
    const double restart = kRestartCost * 2 * height / chunk;
    const double ends = kEndCost * height / (steps * static_cast<double>(step_height_));
    const double computing =
        cells * stages * steps / input_.speeds.cell_updates_per_s * (1 + restart + ends);
    const double bandwidth = (input_.speeds.read_bytes_per_s + input_.speeds.write_bytes_per_s) / 2;
    const double moving = static_cast<double>(bytes_.moved_per_pass) / bandwidth;
    // The first chunk's reads and the last one's writes are waited for.
    const double waiting =
        moving * std::min(1.0, chunk / static_cast<double>(geometry_.positions()));
    return passes * std::max(computing, moving / kBandwidthShare) + waiting;
}

void Planner::search(Plan& best, int64_t slab) const {
    const uint64_t wish = input_.wishes.steps_per_pass;
    double best_s = INFINITY;
    const auto look_at = [&](uint64_t steps) {
        Plan plan = best;
        plan.slab = slab;
        plan.steps_per_pass = steps;
        plan.chunk = chunk_that_fits(plan);
        if (plan.chunk == 0) return false;
        const double seconds = seconds_of_run(plan);
        if (seconds < best_s * 0.999) {
            best_s = seconds;
            best = plan;
        }
        return true;
    };
    best.chunk = 0;
    if (wish > 0) {
        look_at(std::min(wish, input_.steps));
        return;
    }
    look_at(1);
    // Passes of about the same length, which end in the buffer that they began in.
    for (uint64_t steps = 2; steps <= kStepsMax; steps += 2) {
        const uint64_t passes = (input_.steps + steps - 1) / steps;
        const uint64_t each = (input_.steps + passes - 1) / passes;
        if (!look_at(std::min(each + each % 2, input_.steps)) || passes == 1) break;
    }
}

Result<void> Planner::plan_in_file(Plan& plan) const {
    const int64_t group = geometry_.group();
    const auto slab_max = static_cast<int64_t>((kSlabBytes + geometry_.position_bytes() - 1) /
                                               geometry_.position_bytes());
    int64_t slab = std::max<int64_t>(1, slab_max / group) * group;
    slab = std::min(slab, geometry_.stored_positions());
    for (;; slab = std::max<int64_t>(1, slab / group / 2) * group) {
        search(plan, slab);
        if (plan.chunk > 0) {
            // Small slabs only where the memory is too small for a window of larger ones.
            if (plan.steps_per_pass >= std::min<uint64_t>(4, input_.steps) || slab == group) break;
        }
        if (slab == group) break;
    }
    if (plan.chunk > 0) return {};
    Plan least = plan;
    least.slab = group;
    least.steps_per_pass =
        input_.wishes.steps_per_pass > 0 ? std::min(input_.wishes.steps_per_pass, input_.steps) : 1;
    least.chunk = std::max<int64_t>(1, input_.wishes.chunk);
    return fail(HANARE_STATUS_LIMIT,
                "memory_bytes is %s; the smallest window of this stencil takes %s",
                format_size(input_.memory_bytes).c_str(), format_size(memory_of(least)).c_str());
}

// Where what is taken out of the run does not fit beside the grid: shorter chunks, then passes.
Result<void> Planner::plan_in_memory(Plan& plan) const {
    const uint64_t passes = (input_.steps + kStepsInMemory - 1) / kStepsInMemory;
    const uint64_t each = (input_.steps + passes - 1) / passes;
    plan.steps_per_pass =
        input_.wishes.steps_per_pass > 0 ? input_.wishes.steps_per_pass : each + each % 2;
    plan.steps_per_pass = std::min(plan.steps_per_pass, input_.steps);
    plan.chunk = input_.wishes.chunk > 0 ? input_.wishes.chunk
                                         : std::max<int64_t>(kChunkMax, 8 * plan.tile_height);
    const size_t room =
        input_.memory_bytes > input_.held_bytes ? input_.memory_bytes - input_.held_bytes : 0;
    const int64_t chunk_min = input_.wishes.chunk > 0 ? plan.chunk : 1;
    const uint64_t steps_min = input_.wishes.steps_per_pass > 0 ? plan.steps_per_pass : 1;
    while ((plan.window_bytes = taps_bytes(plan, 1)) > room) {
        if (plan.chunk > std::max<int64_t>(chunk_min, kChunkMax / 8) ||
            (plan.chunk > chunk_min && plan.steps_per_pass == steps_min)) {
            plan.chunk = std::max(chunk_min, plan.chunk / 2);
        } else if (plan.steps_per_pass > steps_min) {
            plan.steps_per_pass = std::max(steps_min, plan.steps_per_pass / 4 * 2);
        } else {
            return fail(HANARE_STATUS_LIMIT,
                        "memory_bytes is %s, of which the grid takes %s; the snapshots and "
                        "reductions of this run take %s at least",
                        format_size(input_.memory_bytes).c_str(),
                        format_size(input_.held_bytes).c_str(),
                        format_size(plan.window_bytes).c_str());
        }
    }
    return {};
}

Result<Plan> Planner::plan() {
    Plan plan;
    plan.threads = input_.threads;
    plan.tile_height = choose_tile_height();
    if (input_.is_in_file) {
        HANARE_TRY(plan_in_file(plan));
        set_rings(plan);
        plan.window_bytes = memory_of(plan);
    } else {
        HANARE_TRY(plan_in_memory(plan));
    }
    plan.lag = choose_lag(plan);
    return plan;
}

}  // namespace

int64_t parts_of(const Geometry& geometry, const Program& program, const Plan& plan) {
    if (!geometry.is_flat() || program.reduction_count() == 0) return 0;
    return Tiling(geometry.lateral(), plan.tile_height, program.slope_max()).parts_max();
}

RingBytes ring_bytes(const PlanInput& input) {
    RingBytes bytes;
    const size_t position = input.geometry.position_bytes();
    const size_t stored = input.geometry.stored_bytes();
    for (uint32_t field = 0; field < input.fields.size(); ++field) {
        const hanare_field_kind kind = input.fields[field].kind;
        const bool is_kept = input.keeps_unused && kind != HANARE_FIELD_CONSTANT;
        if (!input.program.is_used(field) && !is_kept) continue;
        const bool is_written = is_kept || input.program.writes_per_step(field) > 0;
        const size_t levels = kind == HANARE_FIELD_TWO_LEVELS ? 2 : 1;
        bytes.read += levels * position;
        bytes.moved_per_pass += levels * stored * (is_written ? 2 : 1);
        if (levels == 1 && input.program.is_doubled(field)) bytes.other += position;
    }
    return bytes;
}

Result<Plan> make_plan(const PlanInput& input) { return Planner(input).plan(); }

}  // namespace hanare::stencil
