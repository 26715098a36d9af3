// SPDX-License-Identifier: Apache-2.0
#include "stencil/scratch_grid.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>

namespace hanare::stencil_test {

std::string last_error() {
    char text[512] = {};
    hanare_last_error(text, sizeof text);
    return text;
}

uint64_t seed_of_run() {
    const char* const text = std::getenv("HANARE_TEST_SEED");
    const uint64_t seed =
        text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
    std::printf("HANARE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    return seed;
}

Stencil::Stencil(const Model& model) {
    for (const StageModel& stage : model.stages) {
        std::vector<uint32_t> fields;
        for (const Written& written : stage.written) fields.push_back(written.field);
        writes_.push_back(std::move(fields));
    }
    for (size_t i = 0; i < model.stages.size(); ++i) {
        const StageModel& stage = model.stages[i];
        hanare_stencil_stage raw = {};
        raw.kernel = model_kernel;
        raw.user = const_cast<StageModel*>(&stage);
        raw.reads = stage.reads.data();
        raw.read_count = static_cast<uint32_t>(stage.reads.size());
        raw.writes = writes_[i].data();
        raw.write_count = static_cast<uint32_t>(writes_[i].size());
        raw.reductions = stage.reductions.data();
        raw.reduction_count = static_cast<uint32_t>(stage.reductions.size());
        stages_.push_back(raw);
    }
    for (const SourceModel& source : model.sources) {
        hanare_stencil_source raw = {};
        raw.stage = source.stage;
        raw.field = source.field;
        for (size_t axis = 0; axis < 3; ++axis) raw.position[axis] = source.position[axis];
        raw.first_step = source.first_step;
        raw.series = source.series.data();
        raw.series_count = source.series.size();
        sources_.push_back(raw);
    }
    stencil_.struct_size = sizeof stencil_;
    stencil_.stages = stages_.data();
    stencil_.stage_count = static_cast<uint32_t>(stages_.size());
    stencil_.sources = sources_.data();
    stencil_.source_count = static_cast<uint32_t>(sources_.size());
}

hanare_grid_options options_for(const Model& model, std::vector<hanare_field>& fields) {
    static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    fields.clear();
    for (const hanare_field_kind kind : model.kinds) {
        fields.push_back({names[fields.size()], kind});
    }
    hanare_grid_options options = {};
    options.struct_size = sizeof options;
    options.dimensions = model.dimensions;
    options.element = model.is_float ? HANARE_ELEMENT_FLOAT : HANARE_ELEMENT_DOUBLE;
    for (size_t axis = 0; axis < 3; ++axis) {
        options.shape[axis] = model.shape[axis];
        options.boundary[axis] = model.boundary[axis];
    }
    options.radius = model.radius;
    options.field_count = static_cast<uint32_t>(fields.size());
    options.fields = fields.data();
    options.memory_bytes = 64u << 20;
    return options;
}

namespace {

template <typename T>
std::vector<T> as(const std::vector<double>& values) {
    return std::vector<T>(values.begin(), values.end());
}

template <typename T>
std::string compare(hanare_grid* grid, uint32_t field, uint32_t level,
                    const std::vector<double>& expected) {
    std::vector<T> found(expected.size());
    if (hanare_grid_read(grid, field, level, nullptr, nullptr, found.data()) != HANARE_STATUS_OK) {
        return last_error();
    }
    size_t count = 0;
    size_t first = 0;
    for (size_t i = found.size(); i-- > 0;) {
        if (static_cast<double>(found[i]) == expected[i]) continue;
        ++count;
        first = i;
    }
    if (count == 0) return {};
    std::ostringstream text;
    text << "field " << field << " level " << level << ": " << count << " of " << found.size()
         << " cells differ, the first is " << first << ": " << found[first] << " for "
         << expected[first];
    return text.str();
}

}  // namespace

void fill_both(const Model& model, hanare_grid* grid, Reference& reference, Prng& random) {
    for (uint32_t field = 0; field < model.kinds.size(); ++field) {
        const uint32_t levels = model.kinds[field] == HANARE_FIELD_TWO_LEVELS ? 2 : 1;
        for (uint32_t level = 0; level < levels; ++level) {
            std::vector<double>& values = reference.values(field, level);
            for (double& value : values) {
                value = static_cast<double>(static_cast<float>(random.unit()));
            }
            const auto floats = as<float>(values);
            const void* const cells = model.is_float ? static_cast<const void*>(floats.data())
                                                     : static_cast<const void*>(values.data());
            if (hanare_grid_write(grid, field, level, nullptr, nullptr, cells) !=
                HANARE_STATUS_OK) {
                std::fprintf(stderr, "%s\n", last_error().c_str());
                std::abort();
            }
        }
    }
}

std::string difference(const Model& model, hanare_grid* grid, Reference& reference) {
    for (uint32_t field = 0; field < model.kinds.size(); ++field) {
        const uint32_t levels = model.kinds[field] == HANARE_FIELD_TWO_LEVELS ? 2 : 1;
        for (uint32_t level = 0; level < levels; ++level) {
            const std::string found =
                model.is_float
                    ? compare<float>(grid, field, level, reference.values(field, level))
                    : compare<double>(grid, field, level, reference.values(field, level));
            if (!found.empty()) return found;
        }
    }
    return {};
}

}  // namespace hanare::stencil_test
