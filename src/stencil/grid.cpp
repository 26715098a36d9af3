// SPDX-License-Identifier: Apache-2.0
#include "stencil/grid.hpp"

#include <algorithm>
#include <cstring>

#include "base/units.hpp"
#include "sys/file_mapping.hpp"

namespace hanare::stencil {

namespace {

// Cells go to a file and come from it in pieces of about this size.
constexpr size_t kPieceBytes = 4 * kMiB;

Result<sys::Mapping> map_memory(size_t bytes) {
    HANARE_TRY_ASSIGN(auto memory,
                      sys::Mapping::reserve(round_up(bytes, kHugePageBytes), kHugePageBytes));
    sys::advise_huge_pages(memory, true);
    return memory;
}

}  // namespace

Grid::Grid(const GridOptions& options, const Geometry& geometry)
    : options_(options), geometry_(geometry), fields_(options.fields) {
    statistics_.struct_size = sizeof statistics_;
}

size_t Grid::memory_needed() const {
    size_t buffers = 0;
    for (const FieldSpec& field : fields_) {
        buffers += field.kind == HANARE_FIELD_CONSTANT ? 1 : 2;
    }
    return buffers * geometry_.stored_bytes();
}

Result<std::unique_ptr<Grid>> Grid::create(const GridOptions& options) {
    HANARE_TRY_ASSIGN(const Geometry geometry, Geometry::make(options.shape));
    std::unique_ptr<Grid> grid(new Grid(options, geometry));
    const bool is_stream = options.method == HANARE_METHOD_STREAM;
    const bool fits = grid->memory_needed() <= options.memory_bytes;
    const bool is_auto_memory = options.place == HANARE_PLACE_AUTO && fits && is_stream &&
                                options.storage.path.empty() &&
                                options.storage.io == HANARE_GRID_IO_AUTO &&
                                options.durability == HANARE_DURABILITY_IN_PLACE;
    if (options.place == HANARE_PLACE_MEMORY || is_auto_memory) {
        if (!fits) {
            return fail(HANARE_STATUS_LIMIT, "the grid takes %s of memory, memory_bytes is %s",
                        format_size(grid->memory_needed()).c_str(),
                        format_size(options.memory_bytes).c_str());
        }
        HANARE_TRY(grid->place_in_memory());
        return grid;
    }
    // Known for every stencil only when it runs: at least these.
    const size_t least = static_cast<size_t>(6 + 2 * geometry.radius()) *
                         geometry.position_bytes() * options.fields.size();
    if (least > options.memory_bytes) {
        return fail(HANARE_STATUS_LIMIT,
                    "memory_bytes is %s; the smallest window of this shape takes %s",
                    format_size(options.memory_bytes).c_str(), format_size(least).c_str());
    }
    FileHeader header;
    header.shape = options.shape;
    header.fields = options.fields;
    header.durability = options.durability;
    HANARE_TRY_ASSIGN(grid->storage_, Storage::create(options.storage, header, geometry));
    return grid;
}

Result<std::unique_ptr<Grid>> Grid::open(const GridOptions& options) {
    HANARE_TRY_ASSIGN(auto storage, Storage::open(options.storage));
    const FileHeader& header = storage->header();
    const auto geometry = Geometry::make(header.shape);
    if (!geometry) {
        return fail(HANARE_STATUS_CORRUPT, "%.150s: its header makes no sense",
                    options.storage.path.c_str());
    }
    const uint64_t file_bytes = storage->file_bytes();
    storage->lay_out(*geometry);
    if (storage->file_bytes() != file_bytes) {
        return fail(HANARE_STATUS_CORRUPT, "%.150s: %llu bytes, for its shape %llu",
                    options.storage.path.c_str(), static_cast<unsigned long long>(file_bytes),
                    static_cast<unsigned long long>(storage->file_bytes()));
    }
    GridOptions known = options;
    known.shape = header.shape;
    known.fields = header.fields;
    known.durability = header.durability;
    known.place = HANARE_PLACE_FILE;
    std::unique_ptr<Grid> grid(new Grid(known, *geometry));
    grid->step_ = header.step;
    grid->storage_ = std::move(storage);
    return grid;
}

Result<void> Grid::close() {
    if (!is_in_file() || options_.storage.read_only || options_.storage.path.empty()) return {};
    if (is_broken_) return {};  // its header says so
    return storage_->sync();
}

Result<void> Grid::place_in_memory() {
    buffers_.resize(fields_.size());
    for (uint32_t field = 0; field < fields_.size(); ++field) {
        HANARE_TRY(add_buffer(field, 0));
        if (fields_[field].kind == HANARE_FIELD_TWO_LEVELS) HANARE_TRY(add_buffer(field, 1));
    }
    return {};
}

Result<void> Grid::add_buffer(uint32_t field, size_t number) {
    HANARE_TRY_ASSIGN(auto memory, map_memory(geometry_.stored_bytes()));
    buffers_[field].rings[number] = {memory.address(), geometry_.stored_positions(),
                                     geometry_.position_bytes(), geometry_.sheet_bytes()};
    buffer_memory_.push_back(std::move(memory));
    return {};
}

Result<void> Grid::check_usable(bool writes) const {
    if (is_broken_) {
        return fail(HANARE_STATUS_CORRUPT,
                    "a run in place has failed: the grid's cells are of different steps");
    }
    if (writes && options_.storage.read_only) {
        return fail(HANARE_STATUS_PERMISSION, "the grid was opened for reading");
    }
    return {};
}

Result<void> Grid::check_level(uint32_t field, uint32_t level) const {
    if (field >= fields_.size()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "field %u; the grid has %zu", field,
                    fields_.size());
    }
    const uint32_t levels = fields_[field].kind == HANARE_FIELD_TWO_LEVELS ? 2 : 1;
    if (level < levels) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "level %u; field %u has %u", level, field, levels);
}

uint64_t Grid::region(uint32_t field, uint32_t level) const {
    const bool is_constant = fields_[field].kind == HANARE_FIELD_CONSTANT;
    return storage_->region(field, level, is_constant ? 0 : storage_->header().copy);
}

// A slab here is a group of positions: what can be transferred alone.
Result<std::byte*> Grid::bring(uint32_t field, uint32_t level, int64_t slab, bool is_read) {
    const int64_t first = slab * geometry_.group();
    if (!is_in_file()) return buffers_[field].rings[level].at(first);
    const size_t bytes = static_cast<size_t>(geometry_.group()) * geometry_.position_bytes();
    if (bounce_.bytes() < bytes) {
        HANARE_TRY_ASSIGN(bounce_, map_memory(bytes));
    }
    if (is_read) {
        const uint64_t offset = static_cast<uint64_t>(first) * geometry_.position_bytes();
        HANARE_TRY(storage_->read(region(field, level) + offset, bounce_.address(), bytes));
    } else {
        std::memset(bounce_.address(), 0, bytes);
    }
    return bounce_.address();
}

Result<void> Grid::put_back(uint32_t field, uint32_t level, int64_t slab) {
    if (!is_in_file()) return {};
    const size_t bytes = static_cast<size_t>(geometry_.group()) * geometry_.position_bytes();
    const uint64_t offset = static_cast<uint64_t>(slab) * bytes;
    return storage_->write(region(field, level) + offset, bounce_.address(), bytes);
}

void Grid::copy_sheet(std::byte* sheet, const CellBox& box, std::byte* cells, bool writes) const {
    const auto bytes = static_cast<size_t>(box.columns * geometry_.element_bytes());
    for (int64_t row = 0; row < box.rows; ++row) {
        std::byte* const here = sheet + geometry_.cell_offset(box.row + row, box.column);
        std::byte* const there = cells + static_cast<size_t>(row) * bytes;
        std::memcpy(writes ? here : there, writes ? there : here, bytes);
    }
}

void Grid::complete_halos(std::byte* sheet) const {
    const Axis& rows = geometry_.rows();
    const Axis& columns = geometry_.columns();
    const auto element = static_cast<size_t>(geometry_.element_bytes());
    for (int64_t row = 0; row < rows.cells; ++row) {
        for (int64_t beyond = 1; beyond <= columns.halo; ++beyond) {
            std::memcpy(sheet + geometry_.cell_offset(row, -beyond),
                        sheet + geometry_.cell_offset(row, columns.image_before(beyond)), element);
            std::memcpy(sheet + geometry_.cell_offset(row, columns.cells - 1 + beyond),
                        sheet + geometry_.cell_offset(row, columns.image_after(beyond)), element);
        }
    }
    const size_t bytes = static_cast<size_t>(columns.cells + 2 * columns.halo) * element;
    for (int64_t beyond = 1; beyond <= rows.halo; ++beyond) {
        std::memcpy(sheet + geometry_.cell_offset(-beyond, -columns.halo),
                    sheet + geometry_.cell_offset(rows.image_before(beyond), -columns.halo), bytes);
        std::memcpy(sheet + geometry_.cell_offset(rows.cells - 1 + beyond, -columns.halo),
                    sheet + geometry_.cell_offset(rows.image_after(beyond), -columns.halo), bytes);
    }
}

Result<void> Grid::copy_cells(uint32_t field, uint32_t level, const CellBox& box, std::byte* cells,
                              bool writes) {
    HANARE_TRY(check_usable(writes));
    HANARE_TRY(check_level(field, level));
    const size_t plane_bytes =
        static_cast<size_t>(box.rows * box.columns * geometry_.element_bytes());
    const int64_t group = geometry_.group();
    const int64_t slabs = geometry_.stored_positions() / group;
    const auto is_wanted = [&](int64_t plane) {
        return plane >= box.plane && plane < box.plane + box.planes;
    };
    const bool is_whole_plane =
        box.rows == geometry_.rows().cells && box.columns == geometry_.columns().cells;
    // Where planes are in order, only those of the box are looked at.
    const bool is_in_order = geometry_.sheets() == 1;
    const int64_t first = is_in_order ? box.plane / group : 0;
    const int64_t end =
        is_in_order ? std::min(slabs, (box.plane + box.planes + group - 1) / group) : slabs;
    for (int64_t slab = first; slab < end; ++slab) {
        struct Sheet {
            int64_t index;
            int64_t plane;
        };
        std::vector<Sheet> wanted;
        bool is_all = is_whole_plane;
        for (int64_t i = 0; i < group; ++i) {
            const int64_t position = slab * group + i;
            if (position >= geometry_.positions()) continue;
            for (int64_t sheet = 0; sheet < geometry_.sheets_at(position); ++sheet) {
                const int64_t plane = geometry_.plane_of(position, sheet);
                if (is_wanted(plane)) {
                    wanted.push_back({i * geometry_.sheets() + sheet, plane});
                } else {
                    is_all = false;
                }
            }
        }
        if (wanted.empty()) continue;
        HANARE_TRY_ASSIGN(std::byte* const memory, bring(field, level, slab, !(writes && is_all)));
        for (const Sheet& each : wanted) {
            std::byte* const sheet =
                memory + static_cast<size_t>(each.index) * geometry_.sheet_bytes();
            copy_sheet(sheet, box,
                       cells + static_cast<size_t>(each.plane - box.plane) * plane_bytes, writes);
            if (writes) complete_halos(sheet);
        }
        if (writes) HANARE_TRY(put_back(field, level, slab));
    }
    return {};
}

Result<void> Grid::fill(uint32_t field, uint32_t level, hanare_grid_fill_function function,
                        void* user) {
    HANARE_TRY(check_usable(true));
    HANARE_TRY(check_level(field, level));
    // Whole slabs, so that nothing is read; of a folded grid they are of two groups of planes.
    const size_t plane_bytes = geometry_.packed_plane_bytes();
    const int64_t at_once =
        std::max<int64_t>(geometry_.group(), static_cast<int64_t>(kPieceBytes / plane_bytes) /
                                                 geometry_.group() * geometry_.group());
    HANARE_TRY_ASSIGN(const auto memory, map_memory(static_cast<size_t>(at_once) * plane_bytes));
    for (int64_t plane = 0; plane < geometry_.planes(); plane += at_once) {
        CellBox box;
        box.plane = plane;
        box.planes = std::min(at_once, geometry_.planes() - plane);
        box.rows = geometry_.rows().cells;
        box.columns = geometry_.columns().cells;
        for (int64_t i = 0; i < box.planes; ++i) {
            if (function(static_cast<uint64_t>(plane + i),
                         memory.address() + static_cast<size_t>(i) * plane_bytes, user) != 0) {
                return fail(HANARE_STATUS_INVALID_ARGUMENT,
                            "the function that fills the grid has refused plane %lld",
                            static_cast<long long>(plane + i));
            }
        }
        HANARE_TRY(copy_cells(field, level, box, memory.address(), true));
    }
    return {};
}

}  // namespace hanare::stencil
