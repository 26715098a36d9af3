// SPDX-License-Identifier: Apache-2.0
//
// Runs of stencils.  A run is computed by a thread of its own, so that the one that called can look
// at signals meanwhile: Ctrl-C, or whatever a handler raises, ends the run with the passes that
// have been begun.  Callbacks take the interpreter's lock; what one raises ends the run in the same
// way, so that it does not cost the grid's content, and is raised at the end.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "grid.hpp"

namespace nb = nanobind;

namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// kernel, user, reads (field, radius), writes, reductions
using Stage = std::tuple<uintptr_t, uintptr_t, std::vector<std::tuple<uint32_t, uint32_t>>,
                         std::vector<uint32_t>, std::vector<int>>;
// stage, field, position, first step, address and count of the series
using Source = std::tuple<uint32_t, uint32_t, std::vector<uint64_t>, uint64_t, uintptr_t, uint64_t>;

// The C structs of a stencil, and what they point to.
class Program {
public:
    Program(const std::vector<Stage>& stages, const std::vector<Source>& sources) {
        reads_.resize(stages.size());
        reductions_.resize(stages.size());
        writes_.resize(stages.size());
        for (size_t i = 0; i < stages.size(); ++i) {
            const auto& [kernel, user, reads, writes, reductions] = stages[i];
            for (const auto& [field, radius] : reads) reads_[i].push_back({field, radius});
            for (const int kind : reductions) {
                reductions_[i].push_back(static_cast<hanare_reduction>(kind));
            }
            writes_[i] = writes;
            stages_.push_back({.kernel = reinterpret_cast<hanare_stencil_kernel>(kernel),
                               .user = reinterpret_cast<void*>(user),
                               .reads = reads_[i].data(),
                               .read_count = static_cast<uint32_t>(reads_[i].size()),
                               .write_count = static_cast<uint32_t>(writes_[i].size()),
                               .writes = writes_[i].data(),
                               .reductions = reductions_[i].data(),
                               .reduction_count = static_cast<uint32_t>(reductions_[i].size()),
                               .reserved = 0});
        }
        for (const auto& [stage, field, position, first_step, series, count] : sources) {
            hanare_stencil_source source = {.stage = stage,
                                            .field = field,
                                            .position = {},
                                            .first_step = first_step,
                                            .series = reinterpret_cast<const double*>(series),
                                            .series_count = count};
            std::copy_n(position.begin(), std::min<size_t>(position.size(), 3), source.position);
            sources_.push_back(source);
        }
        stencil_.struct_size = sizeof stencil_;
        stencil_.stages = stages_.data();
        stencil_.sources = sources_.data();
        stencil_.stage_count = static_cast<uint32_t>(stages_.size());
        stencil_.source_count = static_cast<uint32_t>(sources_.size());
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    const hanare_stencil* get() const { return &stencil_; }

private:
    std::vector<std::vector<hanare_stencil_read>> reads_;
    std::vector<std::vector<hanare_reduction>> reductions_;
    std::vector<std::vector<uint32_t>> writes_;
    std::vector<hanare_stencil_stage> stages_;
    std::vector<hanare_stencil_source> sources_;
    hanare_stencil stencil_ = {};
};

// What the callbacks of a run share; Python objects are touched with the interpreter's lock only.
struct Callbacks {
    nb::object progress;
    nb::object snapshot;
    std::optional<std::pair<uint64_t, uint64_t>> planes;  // first and last of those wanted
    size_t plane_bytes = 0;
    std::atomic<bool> ends{false};
    std::optional<nb::python_error> failure;

    void failed(nb::python_error& error) {
        if (!failure) failure.emplace(std::move(error));
        ends = true;
    }
};

int on_progress(const hanare_grid_progress* progress, void* user) {
    auto* const callbacks = static_cast<Callbacks*>(user);
    if (callbacks->ends) return 1;
    if (callbacks->progress.is_none()) return 0;
    const nb::gil_scoped_acquire acquire;
    try {
        const nb::object wish = callbacks->progress(
            progress->steps, progress->steps_done, progress->fraction, progress->elapsed_s,
            progress->remaining_s, progress->steps_per_s, progress->io_wait_s);
        if (nb::cast<bool>(nb::bool_(wish))) callbacks->ends = true;
    } catch (nb::python_error& error) {
        callbacks->failed(error);
    }
    return callbacks->ends ? 1 : 0;
}

int on_snapshot(uint64_t step, uint64_t plane, const void* cells, void* user) {
    auto* const callbacks = static_cast<Callbacks*>(user);
    if (callbacks->planes &&
        (plane < callbacks->planes->first || plane > callbacks->planes->second)) {
        return 0;
    }
    const nb::gil_scoped_acquire acquire;
    if (callbacks->failure) return 0;
    try {
        callbacks->snapshot(step, plane,
                            nb::bytes(static_cast<const char*>(cells), callbacks->plane_bytes));
    } catch (nb::python_error& error) {
        callbacks->failed(error);
    }
    return 0;
}

// For threads that begin meanwhile: Python's handlers are the main thread's.  Kernels and functions
// may touch far memory, whose faults are signals.
class BlockedSignals {
public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        sigdelset(&all, SIGSEGV);
        sigdelset(&all, SIGBUS);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
    sigset_t before_;
};

// hanare_grid_run in a thread of its own; the calling one waits and looks at signals.
class Run {
public:
    Run(hanare_grid* grid, uint64_t steps, const Program& program,
        const hanare_grid_run_options& options, Callbacks& callbacks)
        : callbacks_(callbacks) {
        const BlockedSignals block;
        thread_ = std::thread([this, grid, steps, &program, &options] {
            try {
                hanare::check(hanare_grid_run(grid, steps, program.get(), &options));
            } catch (const hanare::Error& error) {
                error_ = error;
            }
            const std::lock_guard lock(mutex_);
            ended_ = true;
            wake_.notify_one();
        });
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void finish() {
        {
            const nb::gil_scoped_release release;
            while (!ended_within(kBetweenLooks)) {
                const nb::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() == 0) continue;
                nb::python_error raised;
                callbacks_.failed(raised);
            }
            thread_.join();
        }
        if (callbacks_.failure) throw std::move(*callbacks_.failure);
        if (error_) throw *error_;
    }

private:
    bool ended_within(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        return wake_.wait_for(lock, time, [this] { return ended_; });
    }

    Callbacks& callbacks_;
    std::optional<hanare::Error> error_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool ended_ = false;
    std::thread thread_;
};

// threads, flags, steps per pass, planes of a window, height of a tile
using SizeTuple = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
// field, every so many steps, path or nothing, bytes of a plane
using SnapshotTuple = std::tuple<uint32_t, uint64_t, std::string, size_t>;

hanare_grid_run_options with_sizes(const SizeTuple& sizes) {
    hanare_grid_run_options options = {};
    options.struct_size = sizeof options;
    std::tie(options.threads, options.flags, options.steps_per_pass, options.window_planes,
             options.tile_height) = sizes;
    return options;
}

void run(Grid& grid, uint64_t steps, const std::vector<Stage>& stages,
         const std::vector<Source>& sources, const SizeTuple& sizes, const SnapshotTuple& snapshots,
         std::optional<std::tuple<uint64_t, uint64_t>> planes, nb::object snapshot,
         nb::object progress, uintptr_t reductions) {
    const Grid::Use use(grid);
    const Program program(stages, sources);
    Callbacks callbacks;
    callbacks.progress = std::move(progress);
    callbacks.snapshot = std::move(snapshot);
    if (planes) callbacks.planes.emplace(std::get<0>(*planes), std::get<1>(*planes));
    hanare_grid_run_options options = with_sizes(sizes);
    std::string path;
    std::tie(options.snapshot_field, options.snapshot_every, path, callbacks.plane_bytes) =
        snapshots;
    options.snapshot_path = path.empty() ? nullptr : path.c_str();
    if (!callbacks.snapshot.is_none()) {
        options.snapshot = on_snapshot;
        options.snapshot_user = &callbacks;
    }
    options.progress = on_progress;
    options.progress_user = &callbacks;
    options.reductions = reinterpret_cast<double*>(reductions);
    Run(*use, steps, program, options, callbacks).finish();
}

nb::dict plan(Grid& grid, uint64_t steps, const std::vector<Stage>& stages,
              const std::vector<Source>& sources, const SizeTuple& sizes) {
    const Grid::Use use(grid);
    const Program program(stages, sources);
    const hanare_grid_run_options options = with_sizes(sizes);
    hanare_grid_statistics statistics = {};
    statistics.struct_size = sizeof statistics;
    {
        const nb::gil_scoped_release release;
        hanare::check(hanare_grid_plan(*use, steps, program.get(), &options, &statistics));
    }
    return as_dict(statistics);
}

}  // namespace

void define_runs(nb::class_<Grid>& grid) {
    grid.def("run", &run, nb::arg("steps"), nb::arg("stages"), nb::arg("sources"), nb::arg("sizes"),
             nb::arg("snapshots"), nb::arg("planes").none(), nb::arg("snapshot").none(),
             nb::arg("progress").none(), nb::arg("reductions"))
        .def("plan", &plan, nb::arg("steps"), nb::arg("stages"), nb::arg("sources"),
             nb::arg("sizes"));
}
