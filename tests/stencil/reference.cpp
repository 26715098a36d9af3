// SPDX-License-Identifier: Apache-2.0
#include "stencil/reference.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

namespace hanare::stencil_test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double mark(int64_t step, int64_t z, int64_t y, int64_t x) {
    return static_cast<double>((step * 31 + z * 17 + y * 7 + x * 3) % 101) * 0.001;
}

template <typename T>
void kernel(const hanare_stencil_box& box, const StageModel& stage) {
    for (int64_t row = 0; row < box.rows; ++row) {
        for (int64_t column = 0; column < box.columns; ++column) {
            const int64_t at = row * box.row_stride + column;
            // All are computed before any is written: they may be the same memory.
            T results[8];
            for (size_t i = 0; i < stage.written.size(); ++i) {
                const Written& written = stage.written[i];
                T sum = 0;
                for (const Tap& tap : written.taps) {
                    const int plane = stage.is_flat ? tap.dy : tap.dz;
                    const int64_t beside = stage.is_flat ? 0 : tap.dy * box.row_stride;
                    const auto* const in =
                        static_cast<const T*>(box.in[stage.own_pointer[tap.field] + plane]);
                    sum += static_cast<T>(tap.coefficient) * in[at + beside + tap.dx];
                }
                if (written.memory != 0) {
                    sum += static_cast<T>(written.memory) * static_cast<const T*>(box.out[i])[at];
                }
                sum += static_cast<T>(mark(box.step, box.z, box.y + row, box.x + column));
                results[i] = sum;
            }
            for (size_t i = 0; i < stage.written.size(); ++i) {
                static_cast<T*>(box.out[i])[at] = results[i];
            }
            for (size_t i = 0; i < stage.reductions.size(); ++i) {
                const auto value = static_cast<double>(results[0]);
                double& all = box.reduction[i];
                switch (stage.reductions[i]) {
                    case HANARE_REDUCTION_MAX: all = std::max(all, value); break;
                    case HANARE_REDUCTION_MIN: all = std::min(all, value); break;
                    default: all += value;
                }
            }
        }
    }
}

}  // namespace

void model_kernel(const hanare_stencil_box* box) {
    const auto& stage = *static_cast<const StageModel*>(box->user);
    if (stage.is_float) {
        kernel<float>(*box, stage);
    } else {
        kernel<double>(*box, stage);
    }
}

uint64_t Model::cells() const { return shape[0] * shape[1] * (dimensions == 3 ? shape[2] : 1); }

bool Model::is_simple() const {
    return std::ranges::count(kinds, HANARE_FIELD_TWO_LEVELS) == 0 &&
           std::ranges::all_of(stages,
                               [](const StageModel& stage) { return stage.reductions.empty(); });
}

std::string Model::describe() const {
    std::ostringstream text;
    text << dimensions << "-D " << (is_float ? "float" : "double") << " radius " << radius
         << " shape";
    for (uint32_t axis = 0; axis < dimensions; ++axis) {
        text << ' ' << shape[axis] << "FRP"[boundary[axis]];
    }
    text << "; fields";
    for (const hanare_field_kind kind : kinds) text << ' ' << kind;
    for (const StageModel& stage : stages) {
        text << "; reads";
        for (const hanare_stencil_read& read : stage.reads) {
            text << ' ' << read.field << "r" << read.radius;
        }
        text << " writes";
        for (const Written& written : stage.written) {
            text << ' ' << written.field << (written.memory != 0 ? "m" : "");
        }
        text << " reductions " << stage.reductions.size();
    }
    text << "; sources " << sources.size();
    return text.str();
}

Reference::Reference(const Model& model) : model_(model) {
    const bool is_flat = model.dimensions == 2;
    for (size_t axis = 0; axis < 3; ++axis) {
        if (is_flat && axis == 0) {
            extent_[0] = 1;
        } else {
            const size_t own = is_flat ? axis - 1 : axis;
            extent_[axis] = static_cast<int64_t>(model.shape[own]);
            boundary_[axis] = model.boundary[own];
        }
    }
    values_.resize(model.kinds.size());
    for (auto& levels : values_) {
        for (auto& level : levels) level.resize(model.cells());
    }
}

size_t Reference::index(Cell cell) const {
    return static_cast<size_t>((cell.z * extent_[1] + cell.y) * extent_[2] + cell.x);
}

int64_t Reference::seen(int axis, int64_t at) const {
    const int64_t cells = cells_along(axis);
    if (at >= 0 && at < cells) return at;
    if (boundary_[static_cast<size_t>(axis)] == HANARE_BOUNDARY_PERIODIC) {
        return (at + cells) % cells;
    }
    return at < 0 ? -1 - at : 2 * cells - 1 - at;
}

bool Reference::is_fixed(Cell cell) const {
    const int64_t at[3] = {cell.z, cell.y, cell.x};
    const auto radius = static_cast<int64_t>(model_.radius);
    for (int axis = model_.dimensions == 2 ? 1 : 0; axis < 3; ++axis) {
        if (boundary_[static_cast<size_t>(axis)] != HANARE_BOUNDARY_FIXED) continue;
        if (at[axis] < radius || at[axis] >= cells_along(axis) - radius) return true;
    }
    return false;
}

double Reference::round(double value) const {
    return model_.is_float ? static_cast<double>(static_cast<float>(value)) : value;
}

// Sums of float are rounded after each operation, as the kernel's are.
double Reference::value_of(const Written& written, Cell cell) const {
    double sum = 0;
    for (const Tap& tap : written.taps) {
        const Cell other = {seen(0, cell.z + tap.dz), seen(1, cell.y + tap.dy),
                            seen(2, cell.x + tap.dx)};
        sum = round(sum + round(round(tap.coefficient) * values_[tap.field][0][index(other)]));
    }
    if (written.memory != 0) {
        const uint32_t level = model_.kinds[written.field] == HANARE_FIELD_TWO_LEVELS ? 1 : 0;
        sum =
            round(sum + round(round(written.memory) * values_[written.field][level][index(cell)]));
    }
    const auto step = static_cast<int64_t>(step_);
    return round(sum + round(mark(step, cell.z, cell.y, cell.x)));
}

void Reference::stage(const StageModel& stage, size_t number) {
    std::vector<std::vector<double>> next;
    for (const Written& written : stage.written) next.push_back(values_[written.field][0]);
    std::vector<double> all;
    for (const hanare_reduction each : stage.reductions) {
        all.push_back(each == HANARE_REDUCTION_SUM   ? 0
                      : each == HANARE_REDUCTION_MAX ? -kInfinity
                                                     : kInfinity);
    }
    const auto combine = [&](std::vector<double>& into, size_t i, double value) {
        switch (stage.reductions[i]) {
            case HANARE_REDUCTION_MAX: into[i] = std::max(into[i], value); break;
            case HANARE_REDUCTION_MIN: into[i] = std::min(into[i], value); break;
            default: into[i] += value;
        }
    };
    const std::vector<double> neutral = all;
    for (int64_t z = 0; z < extent_[0]; ++z) {
        std::vector<double> plane = neutral;
        for (int64_t y = 0; y < extent_[1]; ++y) {
            std::vector<double> row = neutral;
            bool has_cells = false;
            for (int64_t x = 0; x < extent_[2]; ++x) {
                const Cell cell = {z, y, x};
                if (is_fixed(cell)) continue;
                has_cells = true;
                for (size_t i = 0; i < stage.written.size(); ++i) {
                    next[i][index(cell)] = value_of(stage.written[i], cell);
                }
                for (size_t i = 0; i < all.size(); ++i) combine(row, i, next[0][index(cell)]);
            }
            if (!has_cells) continue;
            for (size_t i = 0; i < all.size(); ++i) combine(plane, i, row[i]);
        }
        for (size_t i = 0; i < all.size(); ++i) combine(all, i, plane[i]);
    }
    for (const SourceModel& source : model_.sources) {
        if (source.stage != number || step_ < source.first_step) continue;
        const uint64_t at = step_ - source.first_step;
        if (at >= source.series.size()) continue;
        const auto position = [&](size_t axis) {
            return static_cast<int64_t>(source.position[axis]);
        };
        const Cell cell = model_.dimensions == 2 ? Cell{0, position(0), position(1)}
                                                 : Cell{position(0), position(1), position(2)};
        for (size_t i = 0; i < stage.written.size(); ++i) {
            if (stage.written[i].field != source.field) continue;
            double& value = next[i][index(cell)];
            value = round(value + round(source.series[at]));
        }
    }
    for (size_t i = 0; i < stage.written.size(); ++i) {
        auto& levels = values_[stage.written[i].field];
        levels[1] = std::move(levels[0]);
        levels[0] = std::move(next[i]);
    }
    reductions_.insert(reductions_.end(), all.begin(), all.end());
}

void Reference::step() {
    reductions_.clear();
    for (size_t i = 0; i < model_.stages.size(); ++i) stage(model_.stages[i], i);
    ++step_;
}

}  // namespace hanare::stencil_test
