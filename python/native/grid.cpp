// SPDX-License-Identifier: Apache-2.0
//
// Grids of the C API: making and opening them, their cells in and out.  Numbers of enumerations and
// addresses of cells come from the package's own modules, which have checked them.
#include "grid.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace {

using Numbers = std::vector<uint64_t>;

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

std::pair<const uint64_t*, const uint64_t*> box_of(const Numbers& offset, const Numbers& extent) {
    if (offset.empty()) return {nullptr, nullptr};
    return {offset.data(), extent.data()};
}

void create_grid(Grid* self, const Numbers& shape, std::vector<std::pair<std::string, int>> fields,
                 int element, const std::vector<int>& boundary, uint32_t radius,
                 uint64_t memory_bytes, int place, const std::string& path,
                 const std::string& directory, int durability, int method, int io, uint32_t flags) {
    std::vector<hanare_field> c_fields;
    c_fields.reserve(fields.size());
    for (const auto& [name, kind] : fields) {
        c_fields.push_back({name.c_str(), static_cast<hanare_field_kind>(kind)});
    }
    hanare_grid_options options = {};
    options.struct_size = sizeof options;
    options.dimensions = static_cast<uint32_t>(shape.size());
    options.element = static_cast<hanare_element>(element);
    for (size_t axis = 0; axis < std::min<size_t>(shape.size(), 3); ++axis) {
        options.shape[axis] = shape[axis];
        options.boundary[axis] = static_cast<hanare_boundary>(boundary.at(axis));
    }
    options.radius = radius;
    options.field_count = static_cast<uint32_t>(c_fields.size());
    options.fields = c_fields.data();
    options.memory_bytes = memory_bytes;
    options.place = static_cast<hanare_place>(place);
    options.path = text_or_null(path);
    options.directory = text_or_null(directory);
    options.durability = static_cast<hanare_durability>(durability);
    options.method = static_cast<hanare_method>(method);
    options.io = static_cast<hanare_grid_io>(io);
    options.flags = flags;
    hanare_grid* grid = nullptr;
    {
        const nb::gil_scoped_release release;
        hanare::check(hanare_grid_create(&options, &grid));
    }
    new (self) Grid(grid);
}

Grid* open_grid(const std::string& path, uint64_t memory_bytes, int method, int io,
                uint32_t flags) {
    hanare_grid_open_options options = {};
    options.struct_size = sizeof options;
    options.memory_bytes = memory_bytes;
    options.method = static_cast<hanare_method>(method);
    options.io = static_cast<hanare_grid_io>(io);
    options.flags = flags;
    hanare_grid* grid = nullptr;
    {
        const nb::gil_scoped_release release;
        hanare::check(hanare_grid_open(path.c_str(), &options, &grid));
    }
    return new Grid(grid);
}

nb::dict describe(Grid& grid) {
    const Grid::Use use(grid);
    hanare_grid_info info = {};
    info.struct_size = sizeof info;
    hanare::check(hanare_grid_describe(*use, &info));
    nb::list shape, boundary, fields;
    for (uint32_t axis = 0; axis < info.dimensions; ++axis) {
        shape.append(info.shape[axis]);
        boundary.append(static_cast<int>(info.boundary[axis]));
    }
    for (uint32_t field = 0; field < info.field_count; ++field) {
        const char* name = nullptr;
        hanare_field_kind kind = HANARE_FIELD_STATE;
        hanare::check(hanare_grid_field_at(*use, field, &name, &kind));
        fields.append(nb::make_tuple(name, static_cast<int>(kind)));
    }
    nb::dict values;
    values["element"] = static_cast<int>(info.element);
    values["shape"] = nb::tuple(shape);
    values["boundary"] = nb::tuple(boundary);
    values["radius"] = info.radius;
    values["fields"] = fields;
    values["durability"] = static_cast<int>(info.durability);
    values["place"] = static_cast<int>(info.place);
    values["step"] = info.step;
    values["memory_bytes"] = info.memory_bytes;
    values["file_bytes"] = info.file_bytes;
    values["domain_bytes"] = info.domain_bytes;
    return values;
}

void write_cells(Grid& grid, uint32_t field, uint32_t level, const Numbers& offset,
                 const Numbers& extent, uintptr_t cells) {
    const Grid::Use use(grid);
    const nb::gil_scoped_release release;
    const auto [from, size] = box_of(offset, extent);
    hanare::check(
        hanare_grid_write(*use, field, level, from, size, reinterpret_cast<const void*>(cells)));
}

void read_cells(Grid& grid, uint32_t field, uint32_t level, const Numbers& offset,
                const Numbers& extent, uintptr_t cells) {
    const Grid::Use use(grid);
    const nb::gil_scoped_release release;
    const auto [from, size] = box_of(offset, extent);
    hanare::check(hanare_grid_read(*use, field, level, from, size, reinterpret_cast<void*>(cells)));
}

struct Filling {
    nb::callable function;
    std::optional<nb::python_error> failure;
};

int fill_plane(uint64_t plane, void* cells, void* user) {
    const nb::gil_scoped_acquire acquire;
    auto* const filling = static_cast<Filling*>(user);
    try {
        filling->function(plane, reinterpret_cast<uintptr_t>(cells));
        return 0;
    } catch (nb::python_error& failure) {
        filling->failure.emplace(std::move(failure));
        return 1;
    }
}

// `function(plane, address)` puts the cells of a plane to an address.
void fill_cells(Grid& grid, uint32_t field, uint32_t level, nb::callable function) {
    const Grid::Use use(grid);
    Filling filling{std::move(function), std::nullopt};
    hanare_status status = HANARE_STATUS_OK;
    std::optional<hanare::Error> error;
    {
        const nb::gil_scoped_release release;
        status = hanare_grid_fill(*use, field, level, fill_plane, &filling);
        try {
            hanare::check(status);
        } catch (const hanare::Error& caught) {
            error = caught;
        }
    }
    if (filling.failure) throw std::move(*filling.failure);
    if (error) throw *error;
}

nb::dict statistics(Grid& grid) {
    const Grid::Use use(grid);
    hanare_grid_statistics values = {};
    values.struct_size = sizeof values;
    hanare::check(hanare_grid_statistics_of(*use, &values));
    return as_dict(values);
}

}  // namespace

Grid::Use::Use(Grid& grid) : grid_(grid) {
    if (grid.grid_ == nullptr) {
        throw hanare::Error(HANARE_STATUS_INVALID_ARGUMENT, "the grid is closed");
    }
    if (grid.busy_) {
        throw hanare::Error(HANARE_STATUS_BUSY, "another call is at work in the grid");
    }
    grid.busy_ = true;
}

Grid::~Grid() {
    if (grid_ == nullptr) return;
    const nb::gil_scoped_release release;
    (void)hanare_grid_close(grid_);
}

void Grid::close() {
    if (grid_ == nullptr) return;
    const Use use(*this);
    hanare_grid* const grid = grid_;
    grid_ = nullptr;
    const nb::gil_scoped_release release;
    hanare::check(hanare_grid_close(grid));
}

nb::dict as_dict(const hanare_grid_statistics& statistics) {
    nb::dict values;
#define HANARE_ADD(name) values[#name] = statistics.name;
    HANARE_ADD(steps)
    HANARE_ADD(passes)
    HANARE_ADD(steps_per_pass)
    HANARE_ADD(window_planes)
    HANARE_ADD(tile_height)
    HANARE_ADD(threads)
    HANARE_ADD(window_bytes)
    HANARE_ADD(read_bytes)
    HANARE_ADD(written_bytes)
    HANARE_ADD(minimal_bytes)
    HANARE_ADD(snapshot_bytes)
    HANARE_ADD(cell_updates)
    HANARE_ADD(redundant_updates)
    HANARE_ADD(elapsed_s)
    HANARE_ADD(io_wait_s)
    HANARE_ADD(steps_per_s)
    HANARE_ADD(read_bytes_per_s)
    HANARE_ADD(write_bytes_per_s)
    HANARE_ADD(cell_updates_per_s)
#undef HANARE_ADD
    return values;
}

void define_grids(nb::module_& module) {
    auto grid = nb::class_<Grid>(module, "Grid");
    grid.def("__init__", &create_grid, nb::arg("shape"), nb::arg("fields"), nb::arg("element"),
             nb::arg("boundary"), nb::arg("radius"), nb::arg("memory_bytes"), nb::arg("place"),
             nb::arg("path"), nb::arg("directory"), nb::arg("durability"), nb::arg("method"),
             nb::arg("io"), nb::arg("flags"))
        .def_static("open", &open_grid, nb::arg("path"), nb::arg("memory_bytes"), nb::arg("method"),
                    nb::arg("io"), nb::arg("flags"), nb::rv_policy::take_ownership)
        .def("describe", &describe)
        .def("write", &write_cells, nb::arg("field"), nb::arg("level"), nb::arg("offset"),
             nb::arg("extent"), nb::arg("cells"))
        .def("read", &read_cells, nb::arg("field"), nb::arg("level"), nb::arg("offset"),
             nb::arg("extent"), nb::arg("cells"))
        .def("fill", &fill_cells, nb::arg("field"), nb::arg("level"), nb::arg("function"))
        .def("statistics", &statistics)
        .def("close", &Grid::close);
    define_runs(grid);
    module.attr("GRID_ALLOW_TMPFS") = HANARE_GRID_ALLOW_TMPFS;
    module.attr("GRID_READ_ONLY") = HANARE_GRID_READ_ONLY;
    module.attr("RUN_PIN_THREADS") = HANARE_RUN_PIN_THREADS;
    module.attr("RUN_NO_MEASUREMENT") = HANARE_RUN_NO_MEASUREMENT;
}
