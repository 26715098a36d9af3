// SPDX-License-Identifier: Apache-2.0
//
// hanare_grid_*: checks arguments, merges the options with environment and file, and calls
// stencil::Grid.
#include "hanare/stencil.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "capi/arguments.hpp"
#include "capi/guard.hpp"
#include "config/options.hpp"
#include "config/store_spec.hpp"
#include "stencil/grid.hpp"
#include "sys/process_usage.hpp"

struct hanare_grid {
    std::unique_ptr<hanare::stencil::Grid> grid;
    pid_t owner = 0;
};

namespace hanare::capi {
namespace {

using stencil::Grid;

constexpr uint32_t kFieldsMax = 64;
constexpr size_t kNameBytesMax = 31;
constexpr uint32_t kThreadsMax = 4096;

std::unexpected<Error> refused(const char* field, uint64_t value, const char* allowed) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s: %llu; allowed are %s", field,
                static_cast<unsigned long long>(value), allowed);
}

// Memory, and the directory of files without a name, unless they were given.
Result<void> merge_options(stencil::GridOptions& result, const char* directory) {
    HANARE_TRY_ASSIGN(const config::Options options, config::load_options({}));
    if (result.memory_bytes == 0) result.memory_bytes = options.local_bytes;
    if (directory != nullptr) {
        result.storage.directory = directory;
        return {};
    }
    result.storage.directory = config::default_store_directory();
    const auto spec = config::parse_store_spec(options.store);
    if (spec && spec->kind == config::StoreKind::kFile) {
        result.storage.directory = spec->directory;
    }
    return {};
}

Result<std::vector<stencil::FieldSpec>> fields_of(const hanare_grid_options& given) {
    if (given.field_count == 0) {
        return std::vector<stencil::FieldSpec>{{"u", HANARE_FIELD_STATE}};
    }
    if (given.field_count > kFieldsMax || given.fields == nullptr) {
        return refused("field_count", given.field_count, "0 to 64, with fields");
    }
    std::vector<stencil::FieldSpec> fields;
    for (uint32_t i = 0; i < given.field_count; ++i) {
        const hanare_field& field = given.fields[i];
        if (field.name == nullptr || *field.name == '\0' ||
            std::strlen(field.name) > kNameBytesMax) {
            return refused("fields: the name of number", i, "names of 1 to 31 bytes");
        }
        if (field.kind < HANARE_FIELD_STATE || field.kind > HANARE_FIELD_CONSTANT) {
            return refused("fields: kind", static_cast<uint64_t>(field.kind), "HANARE_FIELD_*");
        }
        for (const stencil::FieldSpec& other : fields) {
            if (other.name == field.name) {
                return fail(HANARE_STATUS_INVALID_ARGUMENT, "fields: two are named %.31s",
                            field.name);
            }
        }
        fields.push_back({field.name, field.kind});
    }
    return fields;
}

Result<void> check_choices(const hanare_grid_options& given) {
    if (given.element != HANARE_ELEMENT_DOUBLE && given.element != HANARE_ELEMENT_FLOAT) {
        return refused("element", static_cast<uint64_t>(given.element), "HANARE_ELEMENT_*");
    }
    if (given.place < HANARE_PLACE_AUTO || given.place > HANARE_PLACE_FILE) {
        return refused("place", static_cast<uint64_t>(given.place), "HANARE_PLACE_*");
    }
    if (given.durability != HANARE_DURABILITY_IN_PLACE &&
        given.durability != HANARE_DURABILITY_PING_PONG) {
        return refused("durability", static_cast<uint64_t>(given.durability),
                       "HANARE_DURABILITY_*");
    }
    if (given.method < HANARE_METHOD_STREAM || given.method > HANARE_METHOD_TRAPEZOID_TWO_LEVEL) {
        return refused("method", static_cast<uint64_t>(given.method), "HANARE_METHOD_*");
    }
    if (given.io < HANARE_GRID_IO_AUTO || given.io > HANARE_GRID_IO_SWAP) {
        return refused("io", static_cast<uint64_t>(given.io), "HANARE_GRID_IO_*");
    }
    if ((given.flags & ~HANARE_GRID_ALLOW_TMPFS) != 0) {
        return refused("flags", given.flags, "HANARE_GRID_ALLOW_TMPFS");
    }
    if (given.place == HANARE_PLACE_MEMORY &&
        (given.path != nullptr || given.method != HANARE_METHOD_STREAM ||
         given.durability != HANARE_DURABILITY_IN_PLACE)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "place: HANARE_PLACE_MEMORY, which goes with no path, method or durability");
    }
    if (given.method != HANARE_METHOD_STREAM && given.durability == HANARE_DURABILITY_PING_PONG) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "durability: HANARE_DURABILITY_PING_PONG, which only HANARE_METHOD_STREAM has");
    }
    if (given.io == HANARE_GRID_IO_SWAP && given.path != nullptr) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "io: HANARE_GRID_IO_SWAP, which has no path");
    }
    return {};
}

Result<hanare_grid*> create(const hanare_grid_options* options) {
    if (options == nullptr) {
        return std::unexpected(null_argument("hanare_grid_create", "options"));
    }
    HANARE_TRY_ASSIGN(const auto given, copy_options("hanare_grid_create", options));
    HANARE_TRY(check_choices(given));
    stencil::GridOptions result;
    result.shape.dimensions = given.dimensions;
    result.shape.element_bytes =
        given.element == HANARE_ELEMENT_DOUBLE ? sizeof(double) : sizeof(float);
    result.shape.radius = given.radius == 0 ? 1 : given.radius;
    for (size_t axis = 0; axis < 3; ++axis) {
        const bool is_there = axis < given.dimensions;
        result.shape.cells[axis] = is_there ? given.shape[axis] : 0;
        result.shape.boundary[axis] = is_there ? given.boundary[axis] : HANARE_BOUNDARY_FIXED;
    }
    HANARE_TRY_ASSIGN(result.fields, fields_of(given));
    result.memory_bytes = given.memory_bytes;
    result.place = given.place;
    result.durability = given.durability;
    result.method = given.method;
    // The paper's method has two buffers for the domain in any case.
    if (given.method != HANARE_METHOD_STREAM) result.durability = HANARE_DURABILITY_PING_PONG;
    result.storage.io = given.io;
    result.storage.allow_tmpfs = (given.flags & HANARE_GRID_ALLOW_TMPFS) != 0;
    if (given.path != nullptr) result.storage.path = given.path;
    HANARE_TRY(merge_options(result, given.directory));
    auto handle = std::make_unique<hanare_grid>();
    handle->owner = getpid();
    HANARE_TRY_ASSIGN(handle->grid, Grid::create(result));
    return handle.release();
}

Result<hanare_grid*> open(const char* path, const hanare_grid_open_options* options) {
    HANARE_TRY_ASSIGN(const auto given, copy_options("hanare_grid_open", options));
    if ((given.flags & ~HANARE_GRID_READ_ONLY) != 0) {
        return refused("flags", given.flags, "HANARE_GRID_READ_ONLY");
    }
    if (given.io < HANARE_GRID_IO_AUTO || given.io > HANARE_GRID_IO_MMAP) {
        return refused("io", static_cast<uint64_t>(given.io), "AUTO, URING, AIO and MMAP");
    }
    if (given.method < HANARE_METHOD_STREAM || given.method > HANARE_METHOD_TRAPEZOID_TWO_LEVEL) {
        return refused("method", static_cast<uint64_t>(given.method), "HANARE_METHOD_*");
    }
    stencil::GridOptions result;
    result.memory_bytes = given.memory_bytes;
    result.method = given.method;
    result.storage.io = given.io;
    result.storage.path = path;
    result.storage.read_only = (given.flags & HANARE_GRID_READ_ONLY) != 0;
    HANARE_TRY(merge_options(result, nullptr));
    auto handle = std::make_unique<hanare_grid>();
    handle->owner = getpid();
    HANARE_TRY_ASSIGN(handle->grid, Grid::open(result));
    return handle.release();
}

template <typename Body>
hanare_status on_grid(const char* function, const hanare_grid* handle, Body body) noexcept {
    if (handle == nullptr) return report(null_argument(function, "grid"));
    return guarded(function, [&]() -> Result<void> {
        if (handle->owner != getpid()) {
            return fail(HANARE_STATUS_FORKED, "%s: the grid is the parent process's", function);
        }
        return body(*handle->grid);
    });
}

// What the caller's struct has room for; struct_size stays.
template <typename T>
Result<void> give(const char* function, T* to, T from) {
    const size_t known = std::min(to->struct_size, sizeof(T));
    if (known < sizeof(size_t) || to->struct_size > 4096) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%s: struct_size is %zu; set it to sizeof the struct", function,
                    to->struct_size);
    }
    from.struct_size = to->struct_size;
    std::memcpy(to, &from, known);
    return {};
}

Result<void> describe(const Grid& grid, hanare_grid_info* info) {
    const stencil::GridShape& shape = grid.geometry().shape();
    hanare_grid_info found = {};
    found.dimensions = shape.dimensions;
    found.element =
        shape.element_bytes == sizeof(double) ? HANARE_ELEMENT_DOUBLE : HANARE_ELEMENT_FLOAT;
    for (size_t axis = 0; axis < 3; ++axis) {
        found.shape[axis] = shape.cells[axis];
        found.boundary[axis] = shape.boundary[axis];
    }
    found.radius = shape.radius;
    found.field_count = static_cast<uint32_t>(grid.fields().size());
    found.durability = grid.durability();
    found.place = grid.is_in_file() ? HANARE_PLACE_FILE : HANARE_PLACE_MEMORY;
    found.step = grid.step();
    found.memory_bytes = grid.memory_bytes();
    found.file_bytes = grid.file_bytes();
    found.domain_bytes = grid.geometry().cell_count() * shape.element_bytes * grid.fields().size();
    return give("hanare_grid_describe", info, found);
}

Result<stencil::CellBox> box_of(const Grid& grid, const uint64_t* offset, const uint64_t* extent) {
    const stencil::GridShape& shape = grid.geometry().shape();
    if ((offset == nullptr) != (extent == nullptr)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "offset and extent: one of them is NULL");
    }
    uint64_t first[3] = {};
    uint64_t count[3] = {};
    for (uint32_t axis = 0; axis < shape.dimensions; ++axis) {
        first[axis] = offset != nullptr ? offset[axis] : 0;
        count[axis] = extent != nullptr ? extent[axis] : shape.cells[axis];
        if (first[axis] > shape.cells[axis] || count[axis] > shape.cells[axis] - first[axis]) {
            return fail(HANARE_STATUS_OUT_OF_RANGE,
                        "axis %u: cells from %llu, %llu of them; "
                        "there are %llu",
                        axis, static_cast<unsigned long long>(first[axis]),
                        static_cast<unsigned long long>(count[axis]),
                        static_cast<unsigned long long>(shape.cells[axis]));
        }
    }
    const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
    stencil::CellBox box;
    const uint32_t last = shape.dimensions - 1;
    box.plane = number(first[0]);
    box.planes = number(count[0]);
    if (shape.dimensions == 3) {
        box.row = number(first[1]);
        box.rows = number(count[1]);
    }
    box.column = number(first[last]);
    box.columns = number(count[last]);
    return box;
}

Result<void> copy_cells(const char* function, Grid& grid, uint32_t field, uint32_t level,
                        const uint64_t* offset, const uint64_t* extent, void* cells, bool writes) {
    if (cells == nullptr) return std::unexpected(null_argument(function, "cells"));
    HANARE_TRY_ASSIGN(const auto box, box_of(grid, offset, extent));
    return grid.copy_cells(field, level, box, static_cast<std::byte*>(cells), writes);
}

Result<stencil::RunOptions> run_options(const hanare_grid_run_options* options) {
    HANARE_TRY_ASSIGN(const auto given, copy_options("hanare_grid_run", options));
    if ((given.flags & ~(HANARE_RUN_PIN_THREADS | HANARE_RUN_NO_MEASUREMENT)) != 0) {
        return refused("flags", given.flags, "HANARE_RUN_*");
    }
    if (given.threads > kThreadsMax) return refused("threads", given.threads, "0 to 4096");
    if (given.snapshot_every > 0 && given.snapshot_path == nullptr && given.snapshot == nullptr) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "snapshot_every is %llu, and there is neither a path nor a function",
                    static_cast<unsigned long long>(given.snapshot_every));
    }
    stencil::RunOptions result;
    result.threads = given.threads != 0 ? given.threads : sys::allowed_cpus();
    result.is_pinned = (given.flags & HANARE_RUN_PIN_THREADS) != 0;
    result.measures = (given.flags & HANARE_RUN_NO_MEASUREMENT) == 0;
    result.wishes.steps_per_pass = given.steps_per_pass;
    result.wishes.chunk = given.window_planes;
    result.wishes.tile_height = given.tile_height;
    result.snapshots.every = given.snapshot_every;
    result.snapshots.field = given.snapshot_field;
    if (given.snapshot_path != nullptr) result.snapshots.path = given.snapshot_path;
    result.snapshots.function = given.snapshot;
    result.snapshots.user = given.snapshot_user;
    result.progress = given.progress;
    result.progress_user = given.progress_user;
    result.reductions = given.reductions;
    return result;
}

Result<stencil::Program> program_of(const char* function, const Grid& grid,
                                    const hanare_stencil* stencil) {
    if (stencil == nullptr) return std::unexpected(null_argument(function, "stencil"));
    HANARE_TRY_ASSIGN(const auto given, copy_options(function, stencil));
    return stencil::Program::make(given, grid.geometry(), grid.fields());
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::guarded;
using hanare::capi::null_argument;
using hanare::capi::on_grid;
using hanare::capi::report;
using hanare::stencil::Grid;

extern "C" {

hanare_status hanare_grid_create(const hanare_grid_options* options, hanare_grid** grid) {
    if (grid == nullptr) return report(null_argument(__func__, "grid"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*grid, hanare::capi::create(options));
        return {};
    });
}

hanare_status hanare_grid_open(const char* path, const hanare_grid_open_options* options,
                               hanare_grid** grid) {
    if (path == nullptr) return report(null_argument(__func__, "path"));
    if (grid == nullptr) return report(null_argument(__func__, "grid"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*grid, hanare::capi::open(path, options));
        return {};
    });
}

hanare_status hanare_grid_close(hanare_grid* grid) {
    return on_grid(__func__, grid, [&](Grid& opened) -> Result<void> {
        const std::unique_ptr<hanare_grid> owned(grid);
        return opened.close();
    });
}

hanare_status hanare_grid_describe(const hanare_grid* grid, hanare_grid_info* info) {
    if (info == nullptr) return report(null_argument(__func__, "info"));
    return on_grid(__func__, grid,
                   [&](const Grid& opened) { return hanare::capi::describe(opened, info); });
}

hanare_status hanare_grid_field_at(const hanare_grid* grid, uint32_t field, const char** name,
                                   hanare_field_kind* kind) {
    return on_grid(__func__, grid, [&](const Grid& opened) -> Result<void> {
        if (field >= opened.fields().size()) {
            return hanare::fail(HANARE_STATUS_NOT_FOUND, "field %u; the grid has %zu", field,
                                opened.fields().size());
        }
        if (name != nullptr) *name = opened.fields()[field].name.c_str();
        if (kind != nullptr) *kind = opened.fields()[field].kind;
        return {};
    });
}

hanare_status hanare_grid_find_field(const hanare_grid* grid, const char* name, uint32_t* field) {
    if (name == nullptr) return report(null_argument(__func__, "name"));
    if (field == nullptr) return report(null_argument(__func__, "field"));
    return on_grid(__func__, grid, [&](const Grid& opened) -> Result<void> {
        for (size_t i = 0; i < opened.fields().size(); ++i) {
            if (opened.fields()[i].name != name) continue;
            *field = static_cast<uint32_t>(i);
            return {};
        }
        return hanare::fail(HANARE_STATUS_NOT_FOUND, "the grid has no field %.100s", name);
    });
}

hanare_status hanare_grid_write(hanare_grid* grid, uint32_t field, uint32_t level,
                                const uint64_t* offset, const uint64_t* extent, const void* cells) {
    return on_grid(__func__, grid, [&](Grid& opened) {
        return hanare::capi::copy_cells("hanare_grid_write", opened, field, level, offset, extent,
                                        const_cast<void*>(cells), true);
    });
}

hanare_status hanare_grid_read(hanare_grid* grid, uint32_t field, uint32_t level,
                               const uint64_t* offset, const uint64_t* extent, void* cells) {
    return on_grid(__func__, grid, [&](Grid& opened) {
        return hanare::capi::copy_cells("hanare_grid_read", opened, field, level, offset, extent,
                                        cells, false);
    });
}

hanare_status hanare_grid_fill(hanare_grid* grid, uint32_t field, uint32_t level,
                               hanare_grid_fill_function function, void* user) {
    if (function == nullptr) return report(null_argument(__func__, "function"));
    return on_grid(__func__, grid,
                   [&](Grid& opened) { return opened.fill(field, level, function, user); });
}

hanare_status hanare_grid_run(hanare_grid* grid, uint64_t steps, const hanare_stencil* stencil,
                              const hanare_grid_run_options* options) {
    return on_grid(__func__, grid, [&](Grid& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(const auto program,
                          hanare::capi::program_of("hanare_grid_run", opened, stencil));
        HANARE_TRY_ASSIGN(const auto known, hanare::capi::run_options(options));
        return opened.run(program, steps, known);
    });
}

hanare_status hanare_grid_plan(hanare_grid* grid, uint64_t steps, const hanare_stencil* stencil,
                               const hanare_grid_run_options* options,
                               hanare_grid_statistics* statistics) {
    if (statistics == nullptr) return report(null_argument(__func__, "statistics"));
    return on_grid(__func__, grid, [&](Grid& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(const auto program,
                          hanare::capi::program_of("hanare_grid_plan", opened, stencil));
        HANARE_TRY_ASSIGN(const auto known, hanare::capi::run_options(options));
        if (steps == 0) {
            return hanare::fail(HANARE_STATUS_INVALID_ARGUMENT, "steps: 0; a run has some");
        }
        HANARE_TRY_ASSIGN(const auto planned, opened.plan(program, steps, known));
        return hanare::capi::give("hanare_grid_plan", statistics, planned);
    });
}

hanare_status hanare_grid_statistics_of(const hanare_grid* grid,
                                        hanare_grid_statistics* statistics) {
    if (statistics == nullptr) return report(null_argument(__func__, "statistics"));
    return on_grid(__func__, grid, [&](const Grid& opened) {
        return hanare::capi::give("hanare_grid_statistics_of", statistics, opened.statistics());
    });
}

}  // extern "C"
