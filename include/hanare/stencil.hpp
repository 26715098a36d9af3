/* SPDX-License-Identifier: Apache-2.0
 *
 * C++20 over hanare/stencil.h: stencils written as lambdas, on grids that may be larger than
 * memory. Header only.
 *
 *     hanare::Grid<double> grid({.shape = {2048, 1024, 1024}, .memory_bytes = 1u << 30});
 *     grid.fill("u", [](auto z, auto y, auto x) { return initial(z, y, x); });
 *     grid.run(1000, [=](const auto& u) {
 *         return u(0, 0, 0) + k * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) +
 *                                  u(0, 0, -1) + u(0, 0, 1) - 6 * u(0, 0, 0));
 *     });
 *
 * Several fields, stages, reductions: Stage (hanare/stencil_kernel.hpp), Stencil.  Coordinates and
 * offsets are written slowest first: (z, y, x), (y, x) in two dimensions.
 *
 * Ownership: a Grid is movable, not copyable; a moved-from one may only be assigned to or
 * destroyed. Stages and stencils are values.  Threads: a grid is used by one at a time; lambdas of
 * stages are called by several.
 *
 * Errors: a call that fails throws hanare::Error; what hanare/stencil.h says of the state of the
 * grid then holds.  What a function that is called by a run throws ends the run with the passes
 * that were begun, and is thrown by it.
 */
#ifndef HANARE_STENCIL_HPP
#define HANARE_STENCIL_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hanare/hanare.hpp"
#include "hanare/stencil.h"
#include "hanare/stencil_kernel.hpp"

namespace hanare {
inline namespace cpp {

enum class Boundary {
    kFixed = HANARE_BOUNDARY_FIXED,
    kReflect = HANARE_BOUNDARY_REFLECT,
    kPeriodic = HANARE_BOUNDARY_PERIODIC,
};
enum class FieldKind {
    kState = HANARE_FIELD_STATE,
    kTwoLevels = HANARE_FIELD_TWO_LEVELS,
    kConstant = HANARE_FIELD_CONSTANT,
};
enum class GridPlace {
    kAuto = HANARE_PLACE_AUTO,
    kMemory = HANARE_PLACE_MEMORY,
    kFile = HANARE_PLACE_FILE,
};
enum class Durability {
    kInPlace = HANARE_DURABILITY_IN_PLACE,
    kPingPong = HANARE_DURABILITY_PING_PONG,
};
enum class GridMethod {
    kStream = HANARE_METHOD_STREAM,
    kTrapezoid = HANARE_METHOD_TRAPEZOID,
    kTrapezoidTwoLevel = HANARE_METHOD_TRAPEZOID_TWO_LEVEL,
};
enum class GridIo {
    kAuto = HANARE_GRID_IO_AUTO,
    kUring = HANARE_GRID_IO_URING,
    kAio = HANARE_GRID_IO_AIO,
    kMmap = HANARE_GRID_IO_MMAP,
    kSwap = HANARE_GRID_IO_SWAP,
};

struct GridField {
    std::string name;
    FieldKind kind = FieldKind::kState;
};

/* See hanare_grid_options; zero and empty mean "default". */
template <unsigned D>
struct GridOptions {
    std::array<std::uint64_t, D> shape = {};
    std::vector<GridField> fields = {{"u"}};
    std::array<Boundary, D> boundary = {};
    std::uint32_t radius = 1;
    std::uint64_t memory_bytes = 0;
    GridPlace place = GridPlace::kAuto;
    std::string path = {};
    std::string directory = {};
    Durability durability = Durability::kInPlace;
    GridMethod method = GridMethod::kStream;
    GridIo io = GridIo::kAuto;
    bool allow_tmpfs = false;
};

struct GridOpenOptions {
    std::uint64_t memory_bytes = 0;
    bool read_only = false;
    GridMethod method = GridMethod::kStream;
    GridIo io = GridIo::kAuto;
};

/* series[i] is added to a cell after the stage of step first_step + i. */
template <unsigned D>
struct GridSource {
    std::array<std::uint64_t, D> position = {};
    std::vector<double> series = {};
    std::string field = "";  // one that the stage writes; "": its first
    std::uint32_t stage = 0;
    std::uint64_t first_step = 0;
};

/* Stages and sources: what a step computes. */
template <typename T, unsigned D = 3>
struct Stencil {
    std::vector<Stage<T, D>> stages;
    std::vector<GridSource<D>> sources = {};
};

/* See hanare_grid_run_options; zero and empty mean "default". */
template <typename T>
struct RunOptions {
    std::uint32_t threads = 0;
    std::uint32_t steps_per_pass = 0;
    std::uint32_t window_planes = 0;
    std::uint32_t tile_height = 0;
    bool pin_threads = false;
    bool measure = true;
    std::uint64_t snapshot_every = 0;
    std::string snapshot_field = "";  // "": the first
    std::string snapshot_path = "";
    std::function<void(std::uint64_t step, std::uint64_t plane, std::span<const T> cells)>
        snapshot = {};
    /* Whether the run should end with the passes that were begun. */
    std::function<bool(const hanare_grid_progress&)> progress = {};
};

struct RunResult {
    std::uint64_t steps = 0; /* that were computed */
    /* By stages' reductions in order, one value for each step. */
    std::vector<std::vector<double>> reductions = {};
    hanare_grid_statistics statistics = {};
};

namespace detail {

/* The C structs of a stencil for a grid, and what they point to. */
template <typename T, unsigned D>
class Program {
public:
    template <typename FieldNumber>
    Program(const Stencil<T, D>& stencil, FieldNumber&& number) {
        const std::size_t count = stencil.stages.size();
        reads_.resize(count);
        writes_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Stage<T, D>& stage = stencil.stages[i];
            for (std::size_t k = 0; k < stage.reads().size(); ++k) {
                reads_[i].push_back({number(stage.reads()[k]), stage.radii()[k]});
            }
            for (const std::string& name : stage.writes()) writes_[i].push_back(number(name));
            hanare_stencil_stage c_stage = {};
            c_stage.kernel = stage.kernel();
            c_stage.user = const_cast<void*>(stage.user());
            c_stage.reads = reads_[i].data();
            c_stage.read_count = static_cast<std::uint32_t>(reads_[i].size());
            c_stage.writes = writes_[i].data();
            c_stage.write_count = static_cast<std::uint32_t>(writes_[i].size());
            c_stage.reductions = stage.reductions().data();
            c_stage.reduction_count = static_cast<std::uint32_t>(stage.reductions().size());
            reductions_ += stage.reductions().size();
            stages_.push_back(c_stage);
        }
        for (const GridSource<D>& source : stencil.sources) {
            if (source.stage >= count) {
                throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                            "a source is for a stage that is not there");
            }
            hanare_stencil_source c_source = {};
            c_source.stage = source.stage;
            c_source.field =
                source.field.empty() ? writes_[source.stage].at(0) : number(source.field);
            std::copy(source.position.begin(), source.position.end(), c_source.position);
            c_source.first_step = source.first_step;
            c_source.series = source.series.data();
            c_source.series_count = source.series.size();
            sources_.push_back(c_source);
        }
        stencil_.struct_size = sizeof stencil_;
        stencil_.stages = stages_.data();
        stencil_.stage_count = static_cast<std::uint32_t>(stages_.size());
        stencil_.sources = sources_.data();
        stencil_.source_count = static_cast<std::uint32_t>(sources_.size());
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    const hanare_stencil* get() const noexcept { return &stencil_; }
    std::size_t reductions() const noexcept { return reductions_; }

private:
    std::vector<std::vector<hanare_stencil_read>> reads_;
    std::vector<std::vector<std::uint32_t>> writes_;
    std::vector<hanare_stencil_stage> stages_;
    std::vector<hanare_stencil_source> sources_;
    hanare_stencil stencil_ = {};
    std::size_t reductions_ = 0;
};

/* Functions of a run, and what one of them has thrown. */
template <typename T>
class Callbacks {
public:
    Callbacks(const RunOptions<T>& options, std::size_t plane_cells)
        : options_(options), plane_cells_(plane_cells) {}
    Callbacks(const Callbacks&) = delete;
    Callbacks& operator=(const Callbacks&) = delete;

    static int on_progress(const hanare_grid_progress* progress, void* user) {
        auto& self = *static_cast<Callbacks*>(user);
        if (self.options_.progress && !self.ends_) {
            self.guarded([&] {
                if (self.options_.progress(*progress)) self.ends_ = true;
            });
        }
        return self.ends_ ? 1 : 0;
    }
    static int on_snapshot(std::uint64_t step, std::uint64_t plane, const void* cells, void* user) {
        auto& self = *static_cast<Callbacks*>(user);
        self.guarded([&] {
            self.options_.snapshot(
                step, plane, std::span<const T>(static_cast<const T*>(cells), self.plane_cells_));
        });
        return 0;
    }
    void rethrow() const {
        if (thrown_) std::rethrow_exception(thrown_);
    }

private:
    template <typename Call>
    void guarded(Call&& call) {
        try {
            call();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!thrown_) thrown_ = std::current_exception();
            ends_ = true;
        }
    }

    const RunOptions<T>& options_;
    std::size_t plane_cells_;
    std::mutex mutex_;
    std::exception_ptr thrown_; /* guarded by mutex_ while a run goes on */
    std::atomic<bool> ends_{false};
};

}  // namespace detail

/* Fields of T on a grid of D dimensions, at one time step. */
template <typename T, unsigned D = 3>
class Grid {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>);
    static_assert(D == 2 || D == 3);

public:
    using Index = std::array<std::uint64_t, D>;

    explicit Grid(const GridOptions<D>& options) {
        std::vector<hanare_field> fields;
        for (const GridField& field : options.fields) {
            fields.push_back({field.name.c_str(), static_cast<hanare_field_kind>(field.kind)});
        }
        hanare_grid_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.dimensions = D;
        c_options.element = std::is_same_v<T, float> ? HANARE_ELEMENT_FLOAT : HANARE_ELEMENT_DOUBLE;
        for (unsigned axis = 0; axis < D; ++axis) {
            c_options.shape[axis] = options.shape[axis];
            c_options.boundary[axis] = static_cast<hanare_boundary>(options.boundary[axis]);
        }
        c_options.radius = options.radius;
        c_options.field_count = static_cast<std::uint32_t>(fields.size());
        c_options.fields = fields.data();
        c_options.memory_bytes = options.memory_bytes;
        c_options.place = static_cast<hanare_place>(options.place);
        c_options.path = options.path.empty() ? nullptr : options.path.c_str();
        c_options.directory = options.directory.empty() ? nullptr : options.directory.c_str();
        c_options.durability = static_cast<hanare_durability>(options.durability);
        c_options.method = static_cast<hanare_method>(options.method);
        c_options.io = static_cast<hanare_grid_io>(options.io);
        c_options.flags = options.allow_tmpfs ? HANARE_GRID_ALLOW_TMPFS : 0;
        hanare_grid* grid = nullptr;
        check(hanare_grid_create(&c_options, &grid));
        grid_.reset(grid);
        learn();
    }

    /* The grid in a file; INVALID_ARGUMENT if it is not of T and D. */
    static Grid open(const std::string& path, const GridOpenOptions& options = {}) {
        hanare_grid_open_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.memory_bytes = options.memory_bytes;
        c_options.method = static_cast<hanare_method>(options.method);
        c_options.io = static_cast<hanare_grid_io>(options.io);
        c_options.flags = options.read_only ? HANARE_GRID_READ_ONLY : 0;
        hanare_grid* grid = nullptr;
        check(hanare_grid_open(path.c_str(), &c_options, &grid));
        return Grid(grid);
    }

    /* Ends the grid and says whether all of it is in its file, which a destructor cannot. */
    void close() { check(hanare_grid_close(grid_.release())); }

    const Index& shape() const noexcept { return shape_; }
    std::uint64_t cells() const noexcept { return product(shape_); }
    std::uint64_t step() const { return info().step; }
    hanare_grid_info info() const {
        hanare_grid_info info = {};
        info.struct_size = sizeof info;
        check(hanare_grid_describe(grid_.get(), &info));
        return info;
    }
    /* NOT_FOUND; "" is the first field. */
    std::uint32_t field(const std::string& name) const {
        std::uint32_t number = 0;
        if (!name.empty()) check(hanare_grid_find_field(grid_.get(), name.c_str(), &number));
        return number;
    }

    /* All cells, or those of a box; packed, x fastest.  `level` 1: the one before. */
    void read(const std::string& name, std::span<T> cells, std::uint32_t level = 0) const {
        read(name, {}, shape_, cells, level);
    }
    void read(const std::string& name, const Index& offset, const Index& extent, std::span<T> cells,
              std::uint32_t level = 0) const {
        require_size(extent, cells.size());
        check(hanare_grid_read(grid_.get(), field(name), level, offset.data(), extent.data(),
                               cells.data()));
    }
    std::vector<T> read(const std::string& name, std::uint32_t level = 0) const {
        std::vector<T> found(cells());
        read(name, found, level);
        return found;
    }
    void write(const std::string& name, std::span<const T> cells, std::uint32_t level = 0) {
        write(name, {}, shape_, cells, level);
    }
    void write(const std::string& name, const Index& offset, const Index& extent,
               std::span<const T> cells, std::uint32_t level = 0) {
        require_size(extent, cells.size());
        check(hanare_grid_write(grid_.get(), field(name), level, offset.data(), extent.data(),
                                cells.data()));
    }
    /* Each cell becomes function(z, y, x), or function(y, x). */
    template <typename Function>
    void fill(const std::string& name, Function&& function, std::uint32_t level = 0) {
        Filling<std::remove_reference_t<Function>> filling{*this, function, {}};
        const hanare_status status =
            hanare_grid_fill(grid_.get(), field(name), level, filling.plane, &filling);
        if (filling.thrown) std::rethrow_exception(filling.thrown);
        check(status);
    }

    RunResult run(std::uint64_t steps, const Stencil<T, D>& stencil,
                  const RunOptions<T>& options = {}) {
        const detail::Program<T, D> program(stencil,
                                            [this](const auto& name) { return field(name); });
        detail::Callbacks<T> callbacks(options, product(shape_) / shape_[0]);
        std::vector<double> values(steps * program.reductions());
        hanare_grid_run_options c_options = sizes_of(options);
        c_options.snapshot_field = field(options.snapshot_field);
        c_options.snapshot_every = options.snapshot_every;
        c_options.snapshot_path =
            options.snapshot_path.empty() ? nullptr : options.snapshot_path.c_str();
        if (options.snapshot) c_options.snapshot = callbacks.on_snapshot;
        c_options.snapshot_user = &callbacks;
        c_options.progress = callbacks.on_progress;
        c_options.progress_user = &callbacks;
        c_options.reductions = values.empty() ? nullptr : values.data();
        const std::uint64_t before = step();
        check(hanare_grid_run(grid_.get(), steps, program.get(), &c_options));
        callbacks.rethrow();
        RunResult result;
        result.steps = step() - before;
        result.statistics = statistics();
        result.reductions.resize(program.reductions());
        for (std::size_t i = 0; i < result.reductions.size(); ++i) {
            for (std::uint64_t at = 0; at < result.steps; ++at) {
                result.reductions[i].push_back(values[at * result.reductions.size() + i]);
            }
        }
        return result;
    }
    /* One stage: a lambda. */
    template <typename Function>
        requires(!std::convertible_to<Function, Stencil<T, D>>)
    RunResult run(std::uint64_t steps, Function function, const RunOptions<T>& options = {}) {
        return run(steps, Stencil<T, D>{.stages = {Stage<T, D>(std::move(function))}}, options);
    }

    /* What a run would be; nothing is computed. */
    hanare_grid_statistics plan(std::uint64_t steps, const Stencil<T, D>& stencil,
                                const RunOptions<T>& options = {}) const {
        const detail::Program<T, D> program(stencil,
                                            [this](const auto& name) { return field(name); });
        const hanare_grid_run_options c_options = sizes_of(options);
        hanare_grid_statistics found = {};
        found.struct_size = sizeof found;
        check(hanare_grid_plan(grid_.get(), steps, program.get(), &c_options, &found));
        return found;
    }
    hanare_grid_statistics statistics() const {
        hanare_grid_statistics found = {};
        found.struct_size = sizeof found;
        check(hanare_grid_statistics_of(grid_.get(), &found));
        return found;
    }
    /* For calls of the C API; stays the Grid's. */
    hanare_grid* handle() const noexcept { return grid_.get(); }

private:
    struct Close {
        void operator()(hanare_grid* grid) const noexcept { (void)hanare_grid_close(grid); }
    };

    template <typename Function>
    struct Filling {
        const Grid& grid;
        Function& function;
        std::exception_ptr thrown;

        static int plane(std::uint64_t z, void* cells, void* user) {
            auto& self = *static_cast<Filling*>(user);
            try {
                self.put(z, static_cast<T*>(cells));
                return 0;
            } catch (...) {
                self.thrown = std::current_exception();
                return 1;
            }
        }
        void put(std::uint64_t plane, T* to) {
            const Index& shape = grid.shape_;
            if constexpr (D == 2) {
                for (std::uint64_t x = 0; x < shape[1]; ++x) *to++ = T(function(plane, x));
            } else {
                for (std::uint64_t y = 0; y < shape[1]; ++y) {
                    for (std::uint64_t x = 0; x < shape[2]; ++x) *to++ = T(function(plane, y, x));
                }
            }
        }
    };

    explicit Grid(hanare_grid* grid) : grid_(grid) {
        const hanare_grid_info found = info();
        const auto element =
            std::is_same_v<T, float> ? HANARE_ELEMENT_FLOAT : HANARE_ELEMENT_DOUBLE;
        if (found.dimensions != D || found.element != element) {
            throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                        "the file holds a grid of another type or with other dimensions");
        }
        learn();
    }

    void learn() {
        const hanare_grid_info found = info();
        std::copy_n(found.shape, D, shape_.begin());
    }

    static std::uint64_t product(const Index& sizes) noexcept {
        return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, std::multiplies<>());
    }
    static void require_size(const Index& extent, std::size_t given) {
        if (product(extent) == given) return;
        throw Error(HANARE_STATUS_INVALID_ARGUMENT, "cells: " + std::to_string(given) +
                                                        " are given for a box of " +
                                                        std::to_string(product(extent)));
    }
    static hanare_grid_run_options sizes_of(const RunOptions<T>& options) {
        hanare_grid_run_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.threads = options.threads;
        c_options.flags = (options.pin_threads ? HANARE_RUN_PIN_THREADS : 0) |
                          (options.measure ? 0 : HANARE_RUN_NO_MEASUREMENT);
        c_options.steps_per_pass = options.steps_per_pass;
        c_options.window_planes = options.window_planes;
        c_options.tile_height = options.tile_height;
        return c_options;
    }

    std::unique_ptr<hanare_grid, Close> grid_;
    Index shape_ = {};
};

}  // namespace cpp
}  // namespace hanare

#endif
