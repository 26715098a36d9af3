// SPDX-License-Identifier: Apache-2.0
#include "stencil/trapezoid.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/units.hpp"
#include "stencil/executor.hpp"
#include "stencil/team.hpp"
#include "stencil/transfers.hpp"
#include "sys/clock.hpp"

namespace hanare::stencil {

namespace {

constexpr int64_t kBlockCells = 32;  // the paper's second level, section 3.2
constexpr size_t kTransferBytes = kMiB;

struct Range {
    int64_t begin = 0;
    int64_t end = 0;
};

class Trapezoid {
public:
    explicit Trapezoid(const TrapezoidJob& job)
        : job_(job),
          geometry_(job.geometry),
          executor_(job.geometry, job.program, job.rings),
          copy_(job.storage.header().copy) {}

    Result<void> run(RunResult& result);

private:
    Result<void> run_pass(const Pass& pass);
    Result<void> run_slab(const Pass& pass, Range own);
    void compute(const Pass& pass, uint32_t substep, Range positions);
    void compute_blocks(const Pass& pass, uint32_t substep, Range positions);
    void move(const Pass& pass, bool writes, Range positions);
    // Until at most so many of what was started is left.
    void start_up_to(size_t end);
    Result<void> wait(size_t left);
    int64_t group_end(int64_t position) const {
        const int64_t group = geometry_.group();
        return std::min((position + group - 1) / group * group, geometry_.stored_positions());
    }

    const TrapezoidJob& job_;
    const Geometry& geometry_;
    Executor executor_;
    uint32_t copy_;  // that is read
    std::unique_ptr<Transfers> transfers_;
    std::vector<Transfer> queue_;
    size_t next_ = 0;  // in queue_
    size_t in_flight_ = 0;
    RunResult result_;
    uint64_t computed_ = 0;  // planes
};

void Trapezoid::start_up_to(size_t end) {
    while (next_ < end && in_flight_ < Transfers::kInFlightMax) {
        transfers_->start(queue_[next_++]);
        ++in_flight_;
    }
}

// All but the last ones of the queue, which are started then: transfers end in any order.
Result<void> Trapezoid::wait(size_t left) {
    const uint64_t begin_ns = sys::now_ns();
    const size_t end = queue_.size() - left;
    while (next_ < end || in_flight_ > 0) {
        start_up_to(end);
        Transfers::Completion completion;
        if (!transfers_->collect(completion, true)) continue;
        --in_flight_;
        if (completion.error == 0) continue;
        return fail_errno(transfer_status(completion.error), completion.error,
                          "cannot move a slab of the grid");
    }
    result_.io_wait_ns += sys::now_ns() - begin_ns;
    start_up_to(queue_.size());
    return {};
}

void Trapezoid::move(const Pass& pass, bool writes, Range positions) {
    const int64_t group = geometry_.group();
    const auto at_once = static_cast<int64_t>(kTransferBytes / geometry_.position_bytes());
    const int64_t step = std::max<int64_t>(1, at_once / group) * group;
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
    for (int64_t first = positions.begin; first < positions.end; first += step) {
        for (uint32_t field = 0; field < job_.fields.size(); ++field) {
            const bool is_constant = job_.fields[field].kind == HANARE_FIELD_CONSTANT;
            if (is_constant && (writes || !job_.program.is_used(field))) continue;
            const Ring& ring =
                job_.rings[field].rings[writes ? executor_.ring_after(field, pass.steps) : 0];
            const uint32_t copy = is_constant ? 0 : writes ? 1 - copy_ : copy_;
            for (int64_t at = first; at < std::min(first + step, positions.end);) {
                // Not beyond the ring's end.
                const int64_t room = ring.length - at % ring.length;
                const int64_t count = std::min({first + step - at, positions.end - at, room});
                Transfer transfer;
                transfer.writes = writes;
                transfer.offset = job_.storage.region(field, 0, copy) +
                                  static_cast<uint64_t>(at) * geometry_.position_bytes();
                transfer.memory = ring.at(at);
                transfer.bytes = static_cast<size_t>(count) * geometry_.position_bytes();
                (writes ? result_.written_bytes : result_.read_bytes) += transfer.bytes;
                queue_.push_back(transfer);
                at += count;
            }
        }
    }
}

void Trapezoid::compute(const Pass& pass, uint32_t substep, Range positions) {
    if (positions.begin >= positions.end) return;
    computed_ += static_cast<uint64_t>(positions.end - positions.begin);
    if (job_.is_blocked) return compute_blocks(pass, substep, positions);
    const Axis& axis = geometry_.lateral();
    std::atomic<int64_t> next{positions.begin};
    run_on(job_.plan.threads, job_.is_pinned, [&] {
        Executor::Scratch scratch;
        for (int64_t at = next++; at < positions.end; at = next++) {
            executor_.update(pass, substep, at, {axis.begin(), axis.end()}, scratch);
        }
    });
}

void Trapezoid::compute_blocks(const Pass& pass, uint32_t substep, Range positions) {
    const Axis& axis = geometry_.lateral();
    const int64_t across = (axis.end() - axis.begin() + kBlockCells - 1) / kBlockCells;
    const int64_t along = (positions.end - positions.begin + kBlockCells - 1) / kBlockCells;
    std::atomic<int64_t> next{0};
    run_on(job_.plan.threads, job_.is_pinned, [&] {
        Executor::Scratch scratch;
        for (int64_t block = next++; block < across * along; block = next++) {
            const int64_t first = positions.begin + block / across * kBlockCells;
            const int64_t begin = axis.begin() + block % across * kBlockCells;
            const Interval part = {begin, std::min(begin + kBlockCells, axis.end())};
            for (int64_t at = first; at < std::min(first + kBlockCells, positions.end); ++at) {
                executor_.update(pass, substep, at, part, scratch);
            }
        }
    });
}

Result<void> Trapezoid::run_slab(const Pass& pass, Range own) {
    const int64_t height = pass.height();
    const auto range_at = [&](int64_t tau) {
        return Range{std::max<int64_t>(0, own.begin - (height - tau)),
                     std::min(geometry_.positions(), own.end + (height - tau))};
    };
    const Range all = range_at(0);
    const int64_t first = all.begin / geometry_.group() * geometry_.group();
    const int64_t middle = group_end((all.begin + all.end) / 2);
    move(pass, false, {first, middle});
    const size_t before_middle = queue_.size();
    move(pass, false, {middle, group_end(all.end)});
    HANARE_TRY(wait(queue_.size() - before_middle));

    const std::vector<int64_t>& heights = *pass.heights;
    const auto last = static_cast<uint32_t>(heights.size()) - 1;
    for (uint32_t substep = 0; substep <= last; ++substep) {
        const Range range = range_at(heights[substep]);
        int64_t half = range.begin;
        if (substep == 0) {
            half = std::clamp(middle - geometry_.radius(), range.begin, range.end);
            compute(pass, substep, {range.begin, half});
            HANARE_TRY(wait(0));
        }
        if (substep == last) {
            const int64_t written =
                std::clamp(group_end((own.begin + own.end) / 2), own.begin, own.end);
            compute(pass, substep, {half, std::max(half, written)});
            half = std::max(half, written);
            move(pass, true, {own.begin, group_end(written)});
            if (written < own.end) HANARE_TRY(wait(queue_.size() > 8 ? queue_.size() - 8 : 0));
            compute(pass, substep, {half, range.end});
            if (group_end(written) < own.end) {
                move(pass, true, {group_end(written), group_end(own.end)});
            }
        } else {
            compute(pass, substep, {half, range.end});
        }
    }
    return wait(0);
}

Result<void> Trapezoid::run_pass(const Pass& pass) {
    computed_ = 0;
    for (int64_t begin = 0; begin < geometry_.positions(); begin += job_.plan.chunk) {
        HANARE_TRY(
            run_slab(pass, {begin, std::min(begin + job_.plan.chunk, geometry_.positions())}));
    }
    const uint64_t needed = static_cast<uint64_t>(geometry_.positions()) * pass.heights->size();
    result_.redundant_updates += (computed_ - needed) * static_cast<uint64_t>(geometry_.sheets()) *
                                 geometry_.updated_cells();
    copy_ = 1 - copy_;
    ++result_.passes;
    result_.steps += pass.steps;
    return {};
}

Result<void> Trapezoid::run(RunResult& result) {
    HANARE_TRY_ASSIGN(transfers_, Transfers::make(job_.storage));
    Result<void> done;
    for (uint64_t steps = 0; done && steps < job_.steps;) {
        Pass pass;
        pass.number = result_.passes;
        pass.first_step = job_.first_step + steps;
        pass.steps = std::min(job_.plan.steps_per_pass, job_.steps - steps);
        const std::vector<int64_t> heights = job_.program.heights(pass.steps);
        pass.heights = &heights;
        done = run_pass(pass);
        steps += pass.steps;
        if (!done || steps == job_.steps) break;
        const double fraction = static_cast<double>(steps) / static_cast<double>(job_.steps);
        if (!job_.progress.tell(steps, fraction, result_.io_wait_ns)) break;
    }
    // What is left in flight has its memory until here.
    transfers_.reset();
    result = result_;
    return done;
}

}  // namespace

Result<Plan> plan_trapezoid(const PlanInput& input) {
    const Geometry& geometry = input.geometry;
    const RingBytes bytes = ring_bytes(input);
    const int64_t group = geometry.group();
    const auto whole = [&](int64_t positions) { return (positions + group - 1) / group * group; };
    const auto ring_positions = [&](uint64_t steps, int64_t slab) {
        const auto height = static_cast<int64_t>(steps) * input.program.step_height();
        return std::min(whole(slab + 2 * height) + 2 * group, geometry.stored_positions() + group);
    };
    const auto memory = [&](int64_t positions) {
        return static_cast<size_t>(positions) * (bytes.read + bytes.other);
    };
    const auto cells = static_cast<double>(geometry.cell_count());
    const auto positions = static_cast<double>(geometry.positions());
    Plan best;
    best.threads = input.threads;
    double best_s = 0;
    for (uint64_t steps = 1; steps <= input.steps; ++steps) {
        if (input.wishes.steps_per_pass > 0 &&
            steps != std::min(input.wishes.steps_per_pass, input.steps)) {
            continue;
        }
        int64_t slab = whole(input.wishes.chunk > 0 ? input.wishes.chunk : geometry.positions());
        while (slab > 0 && memory(ring_positions(steps, slab)) > input.memory_bytes) {
            slab = input.wishes.chunk > 0 ? 0 : slab - group;
        }
        if (slab <= 0) {
            if (input.wishes.steps_per_pass > 0 || steps > 1) break;
            continue;
        }
        const auto height =
            static_cast<double>(input.program.step_height()) * static_cast<double>(steps);
        const double halo = std::min(height / static_cast<double>(slab), positions);
        const double computing = cells * static_cast<double>(input.program.stage_count()) *
                                 (1 + halo) / input.speeds.cell_updates_per_s;
        const double moving = static_cast<double>(bytes.moved_per_pass) * (1 + halo) /
                              input.speeds.read_bytes_per_s / static_cast<double>(steps);
        if (best.chunk != 0 && computing + moving >= best_s) continue;
        best_s = computing + moving;
        best.steps_per_pass = steps;
        best.chunk = slab;
        best.ring_length = best.other_ring_length = ring_positions(steps, slab);
        best.window_bytes = memory(best.ring_length);
    }
    if (best.chunk > 0) return best;
    return fail(HANARE_STATUS_LIMIT, "memory_bytes is %s; the smallest slab with halo takes %s",
                format_size(input.memory_bytes).c_str(),
                format_size(memory(ring_positions(1, group))).c_str());
}

Result<void> run_trapezoid(const TrapezoidJob& job, RunResult& result) {
    return Trapezoid(job).run(result);
}

}  // namespace hanare::stencil
