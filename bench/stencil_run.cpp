// SPDX-License-Identifier: Apache-2.0
#include "bench/stencil_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "hanare/status.h"
#include "sys/block_device.hpp"
#include "sys/clock.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int64_t kPartPlanes = 8;
constexpr size_t kMomentsMax = 200;

// What is timed, and what the process uses meanwhile.
class Timed {
public:
    explicit Timed(const StencilJob& job)
        : series_(job.series_every_ms * kNsPerMs), begin_ns_(sys::now_ns()) {}

    void end(StencilOutcome& outcome) {
        outcome.seconds += static_cast<double>(sys::now_ns() - begin_ns_) * 1e-9;
        const std::vector<ProcessMoment> moments = series_.end();
        outcome.read_bytes += moments.back().read_bytes;
        outcome.written_bytes += moments.back().written_bytes;
        // A run of an hour is told by as many as one of a minute.
        const size_t every = moments.size() / kMomentsMax + 1;
        outcome.series.clear();
        for (size_t i = 0; i + 1 < moments.size(); i += every) outcome.series.push_back(moments[i]);
        outcome.series.push_back(moments.back());
    }

private:
    ProcessSeries series_;
    uint64_t begin_ns_;
};

// Two buffers, and steps from one to the other.
class Sweeps {
public:
    explicit Sweeps(const StencilJob& job) : job_(job), shape_(job.shape()) {}

    Result<void> allocate() {
        if (job_.kind == "mapped") {
            HANARE_TRY_ASSIGN(memory_, file_memory(job_.directory, sys::AccessOrder::kUnknown));
        } else {
            memory_ = plain_memory(HugePages::kAsked);
        }
        for (double*& buffer : buffers_) {
            HANARE_TRY_ASSIGN(buffer, memory_->allocate(shape_.buffer_bytes()));
        }
        in_parallel(job_.threads, shape_.z, [&](int64_t plane) {
            const int64_t first = plane * shape_.plane_cells();
            seven_fill_plane(shape_, plane, buffers_[0] + first);
            std::memcpy(buffers_[1] + first, buffers_[0] + first,
                        static_cast<size_t>(shape_.plane_cells()) * sizeof(double));
        });
        return memory_->flush();
    }

    // The fastest of the candidates, which compute the first step several times.
    void choose_blocks() {
        uint64_t best_ns = UINT64_MAX;
        for (const SevenBlocks& candidate : seven_candidates(shape_)) {
            uint64_t own_ns = UINT64_MAX;
            for (int look = 0; look < 2; ++look) {
                const uint64_t begin_ns = sys::now_ns();
                sweep_blocks(candidate);
                own_ns = std::min(own_ns, sys::now_ns() - begin_ns);
            }
            if (own_ns >= best_ns) continue;
            best_ns = own_ns;
            blocks_ = candidate;
        }
    }

    void run(uint64_t steps) {
        for (uint64_t step = 0; step < steps; ++step) {
            if (job_.kind == "blocks") {
                sweep_blocks(blocks_);
            } else {
                const int64_t parts = (shape_.z + kPartPlanes - 1) / kPartPlanes;
                in_parallel(job_.threads, parts, [&](int64_t part) {
                    seven_plain(shape_, buffers_[0], buffers_[1], part * kPartPlanes,
                                (part + 1) * kPartPlanes);
                });
            }
            std::swap(buffers_[0], buffers_[1]);
        }
    }

    SevenResult result() const {
        return seven_result(shape_, job_.threads, [&](int64_t plane, double*) {
            return buffers_[0] + plane * shape_.plane_cells();
        });
    }

    const SevenBlocks& blocks() const { return blocks_; }

private:
    void sweep_blocks(const SevenBlocks& blocks) {
        constexpr int64_t kBlockPlanes = 64;
        const int64_t along = (shape_.z + kBlockPlanes - 1) / kBlockPlanes;
        const int64_t across = (shape_.y - 2 + blocks.rows - 1) / blocks.rows;
        in_parallel(job_.threads, along * across, [&](int64_t number) {
            const int64_t z = number / across * kBlockPlanes;
            const int64_t y = 1 + number % across * blocks.rows;
            seven_block(shape_, buffers_[0], buffers_[1], blocks.is_streamed, z, z + kBlockPlanes,
                        y, y + blocks.rows);
        });
    }

    const StencilJob& job_;
    const SevenShape shape_;
    std::unique_ptr<Memory> memory_;
    double* buffers_[2] = {};
    SevenBlocks blocks_;
};

Result<StencilOutcome> run_sweeps(const StencilJob& job) {
    Sweeps sweeps(job);
    StencilOutcome outcome;
    HANARE_TRY(sweeps.allocate());
    if (job.kind == "blocks") {
        sweeps.choose_blocks();
        outcome.details = sweeps.blocks().name();
    }
    if (job.kind == "mapped") {
        HANARE_TRY(sys::sync_file_system(job.directory));
        outcome.minimal_bytes = job.steps * job.shape().domain_bytes();
    }
    if (job.early_steps > 0) {
        Timed timed(job);
        sweeps.run(job.early_steps);
        timed.end(outcome);
        outcome.early.digest = sweeps.result().digest;
    }
    Timed timed(job);
    sweeps.run(job.steps - job.early_steps);
    timed.end(outcome);
    outcome.result = sweeps.result();
    return outcome;
}

// Hanare

Result<void> checked(hanare_status status) {
    if (status == HANARE_STATUS_OK) return {};
    char text[256];
    hanare_last_error(text, sizeof text);
    return fail(status, "%s", text);
}

struct CloseGrid {
    void operator()(hanare_grid* grid) const { hanare_grid_close(grid); }
};
using GridPointer = std::unique_ptr<hanare_grid, CloseGrid>;

class GridRun {
public:
    explicit GridRun(const StencilJob& job) : job_(job), shape_(job.shape()) {
        stage_.kernel = seven_kernel;
        stage_.reads = &read_;
        stage_.read_count = 1;
        stage_.writes = &write_;
        stage_.write_count = 1;
        stencil_.stages = &stage_;
        stencil_.stage_count = 1;
    }

    Result<StencilOutcome> run();

private:
    Result<void> create();
    Result<void> fill();
    hanare_grid_run_options options(const hanare_grid_statistics* planned) const;
    Result<void> read_result(SevenResult& result);
    bool is_streaming() const { return job_.method.empty(); }

    const StencilJob& job_;
    const SevenShape shape_;
    hanare_stencil_read read_ = {0, 1};
    uint32_t write_ = 0;
    hanare_stencil_stage stage_ = {};
    hanare_stencil stencil_ = {sizeof stencil_, nullptr, nullptr, 0, 0};
    std::string snapshots_;
    GridPointer grid_;
};

Result<void> GridRun::create() {
    hanare_grid_options options = {};
    options.struct_size = sizeof options;
    options.dimensions = 3;
    const int64_t shape[] = {shape_.z, shape_.y, shape_.x};
    for (size_t axis = 0; axis < 3; ++axis)
        options.shape[axis] = static_cast<uint64_t>(shape[axis]);
    options.memory_bytes = job_.memory_bytes;
    options.directory = job_.directory.c_str();
    options.place = job_.kind == "memory" ? HANARE_PLACE_MEMORY : HANARE_PLACE_FILE;
    if (job_.is_ping_pong) options.durability = HANARE_DURABILITY_PING_PONG;
    if (!is_streaming()) {
        options.method = job_.method == "two_level" ? HANARE_METHOD_TRAPEZOID_TWO_LEVEL
                                                    : HANARE_METHOD_TRAPEZOID;
        options.io = job_.kind == "swap" ? HANARE_GRID_IO_SWAP : HANARE_GRID_IO_AIO;
    }
    hanare_grid* grid = nullptr;
    HANARE_TRY(checked(hanare_grid_create(&options, &grid)));
    grid_.reset(grid);
    return {};
}

Result<void> GridRun::fill() {
    const auto plane = [](uint64_t number, void* cells, void* shape) {
        seven_fill_plane(*static_cast<const SevenShape*>(shape), static_cast<int64_t>(number),
                         static_cast<double*>(cells));
        return 0;
    };
    return checked(hanare_grid_fill(grid_.get(), 0, 0, plane, const_cast<SevenShape*>(&shape_)));
}

hanare_grid_run_options GridRun::options(const hanare_grid_statistics* planned) const {
    hanare_grid_run_options options = {};
    options.struct_size = sizeof options;
    options.threads = job_.threads;
    options.steps_per_pass = job_.steps_per_pass;
    options.window_planes = job_.block;
    if (planned == nullptr) return options;
    options.steps_per_pass = planned->steps_per_pass;
    options.window_planes = planned->window_planes;
    return options;
}

Result<void> GridRun::read_result(SevenResult& result) {
    Result<void> done;
    result = seven_result(shape_, 1, [&](int64_t plane, double* room) {
        const uint64_t offset[] = {static_cast<uint64_t>(plane), 0, 0};
        const uint64_t extent[] = {1, static_cast<uint64_t>(shape_.y),
                                   static_cast<uint64_t>(shape_.x)};
        const auto status = hanare_grid_read(grid_.get(), 0, 0, offset, extent, room);
        if (done) done = checked(status);
        return room;
    });
    return done;
}

Result<StencilOutcome> GridRun::run() {
    StencilOutcome outcome;
    HANARE_TRY(create());
    HANARE_TRY(fill());
    // Memory is cleared, and speeds are known, when it is timed, as those of the other systems.
    hanare_grid_statistics found = {};
    found.struct_size = sizeof found;
    hanare_grid_run_options wanted = options(nullptr);
    HANARE_TRY(checked(hanare_grid_plan(grid_.get(), job_.steps, &stencil_, &wanted, &found)));
    wanted = options(is_streaming() ? &found : nullptr);
    const uint64_t warming =
        is_streaming() ? std::min<uint64_t>(job_.steps, found.steps_per_pass) : 1;
    HANARE_TRY(checked(hanare_grid_run(grid_.get(), warming, &stencil_, &wanted)));
    HANARE_TRY(fill());
    wanted = options(nullptr);
    if (job_.snapshot_every > 0) {
        hanare_grid_info info = {};
        info.struct_size = sizeof info;
        HANARE_TRY(checked(hanare_grid_describe(grid_.get(), &info)));
        snapshots_ = job_.directory + "/snapshots.npy";
        wanted.snapshot_path = snapshots_.c_str();
        wanted.snapshot_every = job_.snapshot_every;
    }
    HANARE_TRY(sys::sync_file_system(job_.directory));
    Timed timed(job_);
    const auto done = checked(hanare_grid_run(grid_.get(), job_.steps, &stencil_, &wanted));
    timed.end(outcome);
    HANARE_TRY(done);
    HANARE_TRY(checked(hanare_grid_statistics_of(grid_.get(), &found)));
    outcome.minimal_bytes = found.minimal_bytes;
    outcome.snapshot_bytes = found.snapshot_bytes;
    outcome.write_bytes_per_s = found.write_bytes_per_s;
    outcome.io_wait_s = found.io_wait_s;
    outcome.redundant_updates = found.redundant_updates;
    outcome.details = format("%u steps a pass, %u planes, tiles of %u", found.steps_per_pass,
                             found.window_planes, found.tile_height);
    HANARE_TRY(read_result(outcome.result));
    if (!snapshots_.empty()) unlink(snapshots_.c_str());
    return outcome;
}

}  // namespace

Result<StencilOutcome> run_stencil(const StencilJob& job) {
    const bool is_sweep = job.kind == "plain" || job.kind == "blocks" || job.kind == "mapped";
    return is_sweep ? run_sweeps(job) : GridRun(job).run();
}

}  // namespace hanare::bench
