// SPDX-License-Identifier: Apache-2.0
//
// A grid: fields at one time step, in memory or in a file, and the runs that take it further.  By
// one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "hanare/stencil.h"
#include "stencil/geometry.hpp"
#include "stencil/plan.hpp"
#include "stencil/program.hpp"
#include "stencil/ring.hpp"
#include "stencil/run_options.hpp"
#include "stencil/storage.hpp"
#include "stencil/stream.hpp"
#include "sys/memory.hpp"

namespace hanare::stencil {

struct GridOptions {
    GridShape shape;
    std::vector<FieldSpec> fields;
    uint64_t memory_bytes = 0;
    hanare_place place = HANARE_PLACE_AUTO;
    hanare_durability durability = HANARE_DURABILITY_IN_PLACE;
    hanare_method method = HANARE_METHOD_STREAM;
    Storage::Options storage;
};

// A box of cells in the user's order of axes; 2-D: planes and columns, one row.
struct CellBox {
    int64_t plane = 0, planes = 0;
    int64_t row = 0, rows = 1;
    int64_t column = 0, columns = 0;
};

class Grid {
public:
    static Result<std::unique_ptr<Grid>> create(const GridOptions& options);
    static Result<std::unique_ptr<Grid>> open(const GridOptions& options);
    // Everything is in the file when it returns.
    Result<void> close();

    const Geometry& geometry() const { return geometry_; }
    const std::vector<FieldSpec>& fields() const { return fields_; }
    bool is_in_file() const { return storage_ != nullptr; }
    uint64_t step() const { return step_; }
    uint64_t memory_bytes() const { return options_.memory_bytes; }
    uint64_t file_bytes() const { return is_in_file() ? storage_->file_bytes() : 0; }
    hanare_durability durability() const { return options_.durability; }
    const hanare_grid_statistics& statistics() const { return statistics_; }

    // Between the grid and packed cells.
    Result<void> copy_cells(uint32_t field, uint32_t level, const CellBox& box, std::byte* cells,
                            bool writes);
    Result<void> fill(uint32_t field, uint32_t level, hanare_grid_fill_function function,
                      void* user);

    Result<hanare_grid_statistics> plan(const Program& program, uint64_t steps,
                                        const RunOptions& options);
    Result<void> run(const Program& program, uint64_t steps, const RunOptions& options);

private:
    Grid(const GridOptions& options, const Geometry& geometry);

    Result<void> check_usable(bool writes) const;
    Result<void> check_level(uint32_t field, uint32_t level) const;
    Result<void> place_in_memory();
    Result<void> add_buffer(uint32_t field, size_t number);
    size_t memory_needed() const;

    // The position's bytes of a field: in memory as they are, else by way of `bounce_`.
    Result<std::byte*> bring(uint32_t field, uint32_t level, int64_t slab, bool is_read);
    Result<void> put_back(uint32_t field, uint32_t level, int64_t slab);
    void complete_halos(std::byte* sheet) const;
    void copy_sheet(std::byte* sheet, const CellBox& box, std::byte* cells, bool writes) const;
    uint64_t region(uint32_t field, uint32_t level) const;

    // In grid_run.cpp.
    Result<void> check_steps(uint64_t steps) const;
    Result<Plan> make_plan(const Program& program, uint64_t steps, const RunOptions& options);
    Result<Speeds> speeds(const RunOptions& options);
    Result<void> begin_in_place(uint32_t copy);
    Result<void> run_stream(const Program& program, uint64_t steps, const RunOptions& options,
                            const Plan& plan);
    Result<void> run_trapezoid(const Program& program, uint64_t steps, const RunOptions& options);
    Result<std::vector<FieldRings>> make_rings(const Program& program, const Plan& plan);
    Result<void> reserve_window(size_t bytes);
    Result<void> prepare_memory(const Program& program);
    TapOptions tap_options(const Program& program, uint64_t steps, const RunOptions& options,
                           const Plan& plan) const;
    void note(const Plan& plan, const Program& program, uint64_t steps);
    void tell(const Program& program, uint64_t steps, const RunResult& result, double elapsed_s);

    GridOptions options_;
    const Geometry geometry_;
    std::vector<FieldSpec> fields_;
    std::unique_ptr<Storage> storage_;
    std::vector<FieldRings> buffers_;          // in memory
    std::vector<sys::Mapping> buffer_memory_;  // of these
    sys::Mapping bounce_;
    sys::Mapping window_;  // of runs on a file
    uint64_t step_ = 0;
    bool is_broken_ = false;    // a run in place has failed when it had changed cells
    double updates_per_s_ = 0;  // of the last run
    Speeds measured_;
    hanare_grid_statistics statistics_ = {};
};

}  // namespace hanare::stencil
