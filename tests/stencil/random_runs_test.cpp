// SPDX-License-Identifier: Apache-2.0
//
// Stencils, grids and runs drawn at random, compared with the plain computation to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "stencil/scratch_grid.hpp"

namespace hanare::stencil_test {
namespace {

class Draw {
public:
    explicit Draw(uint64_t seed) : random_(seed) {}

    uint64_t between(uint64_t low, uint64_t high) { return low + random_.below(high - low + 1); }
    bool one_in(uint64_t n) { return random_.below(n) == 0; }
    Prng& prng() { return random_; }

    Model model();

private:
    void add_stage(Model& model);
    std::vector<Tap> taps(const Model& model, const StageModel& stage);

    Prng random_;
};

std::vector<Tap> Draw::taps(const Model& model, const StageModel& stage) {
    std::vector<Tap> taps;
    const auto within = [&](uint32_t radius) {
        return static_cast<int>(between(0, 2 * radius)) - static_cast<int>(radius);
    };
    for (uint64_t i = between(1, 7); i > 0; --i) {
        const auto& read = stage.reads[random_.below(stage.reads.size())];
        Tap tap;
        tap.field = read.field;
        tap.dz = model.dimensions == 3 ? within(read.radius) : 0;
        tap.dy = within(read.radius);
        tap.dx = within(read.radius);
        tap.coefficient = random_.unit() * 0.25;
        taps.push_back(tap);
    }
    return taps;
}

void Draw::add_stage(Model& model) {
    StageModel stage;
    stage.is_float = model.is_float;
    stage.is_flat = model.dimensions == 2;
    stage.own_pointer.resize(model.kinds.size());
    int pointers = 0;
    for (uint32_t field = 0; field < model.kinds.size(); ++field) {
        if (!stage.reads.empty() && one_in(3)) continue;
        const auto radius = static_cast<uint32_t>(between(0, model.radius));
        stage.reads.push_back({field, radius});
        stage.own_pointer[field] = pointers + static_cast<int>(radius);
        pointers += 2 * static_cast<int>(radius) + 1;
    }
    for (uint32_t field = 0; field < model.kinds.size(); ++field) {
        if (model.kinds[field] == HANARE_FIELD_CONSTANT) continue;
        if (!stage.written.empty() && one_in(2)) continue;
        Written written;
        written.field = field;
        written.taps = taps(model, stage);
        if (model.kinds[field] == HANARE_FIELD_TWO_LEVELS) written.memory = -0.5;
        stage.written.push_back(std::move(written));
    }
    if (one_in(3)) {
        for (uint64_t i = between(1, 2); i > 0; --i) {
            stage.reductions.push_back(static_cast<hanare_reduction>(between(0, 2)));
        }
    }
    model.stages.push_back(std::move(stage));
}

Model Draw::model() {
    Model model;
    model.dimensions = static_cast<uint32_t>(between(2, 3));
    model.is_float = one_in(3);
    model.radius = static_cast<uint32_t>(one_in(2) ? 1 : between(1, 4));
    for (uint32_t axis = 0; axis < model.dimensions; ++axis) {
        model.boundary[axis] = static_cast<hanare_boundary>(between(0, 2));
        const uint64_t least =
            model.boundary[axis] == HANARE_BOUNDARY_FIXED ? 2 * model.radius + 1 : model.radius;
        const uint64_t most = axis == 0 ? 40 : model.dimensions == 2 ? 60 : 20;
        model.shape[axis] = one_in(8) ? least : between(least, std::max(least, most));
    }
    for (uint64_t i = between(1, 4); i > 0; --i) {
        model.kinds.push_back(static_cast<hanare_field_kind>(between(0, 2)));
    }
    if (std::ranges::count(model.kinds, HANARE_FIELD_CONSTANT) ==
        static_cast<int64_t>(model.kinds.size())) {
        model.kinds[0] = HANARE_FIELD_STATE;
    }
    for (uint64_t i = one_in(2) ? 1 : between(1, 3); i > 0; --i) add_stage(model);
    if (one_in(3)) {
        for (uint64_t i = between(1, 4); i > 0; --i) {
            SourceModel source;
            source.stage = static_cast<uint32_t>(random_.below(model.stages.size()));
            const auto& written = model.stages[source.stage].written;
            source.field = written[random_.below(written.size())].field;
            for (uint32_t axis = 0; axis < model.dimensions; ++axis) {
                const uint64_t edge =
                    model.boundary[axis] == HANARE_BOUNDARY_FIXED ? model.radius : 0;
                source.position[axis] = between(edge, model.shape[axis] - 1 - edge);
            }
            source.first_step = between(0, 5);
            for (uint64_t n = between(0, 9); n > 0; --n) source.series.push_back(random_.unit());
            model.sources.push_back(std::move(source));
        }
    }
    return model;
}

// What a run has told, next to what it should have.
struct Told {
    const Model* model = nullptr;
    uint64_t planes = 0;
    std::vector<std::vector<double>> snapshots;  // by number
    uint64_t every = 0;
    uint64_t first = 0;  // number of the first
    uint64_t count = 0;

    static int take(uint64_t step, uint64_t plane, const void* cells, void* user) {
        auto& told = *static_cast<Told*>(user);
        const uint64_t number = step / told.every - told.first;
        if (number >= told.snapshots.size()) return 1;
        std::vector<double>& all = told.snapshots[number];
        const uint64_t size = told.model->cells() / told.planes;
        for (uint64_t i = 0; i < size; ++i) {
            all[plane * size + i] = told.model->is_float
                                        ? static_cast<double>(static_cast<const float*>(cells)[i])
                                        : static_cast<const double*>(cells)[i];
        }
        ++told.count;
        return 0;
    }
};

std::string check_reductions(const Model& model, const std::vector<double>& found,
                             const std::vector<double>& expected) {
    std::vector<hanare_reduction> kinds;
    for (const StageModel& stage : model.stages) {
        kinds.insert(kinds.end(), stage.reductions.begin(), stage.reductions.end());
    }
    // Where the order of a sum is another one.
    const bool is_other_order =
        model.dimensions == 2 || model.boundary[0] == HANARE_BOUNDARY_PERIODIC;
    for (size_t i = 0; i < expected.size(); ++i) {
        const bool is_exact = kinds[i % kinds.size()] != HANARE_REDUCTION_SUM || !is_other_order;
        const double allowed = is_exact ? 0 : 1e-12 * (1 + std::abs(expected[i]));
        if (found[i] == expected[i]) continue;
        if (std::abs(found[i] - expected[i]) <= allowed) continue;
        std::ostringstream text;
        text.precision(17);
        text << "reduction " << i << ": " << found[i] << " for " << expected[i];
        return text.str();
    }
    return {};
}

class Case {
public:
    explicit Case(uint64_t seed) : draw_(seed), model_(draw_.model()), reference_(model_) {}

    std::string run();

private:
    hanare_status create();
    std::string run_once();

    Draw draw_;
    const Model model_;
    Reference reference_;
    GridPointer grid_;
    hanare_method method_ = HANARE_METHOD_STREAM;
    std::ostringstream text_;
};

hanare_status Case::create() {
    std::vector<hanare_field> fields;
    hanare_grid_options options = options_for(model_, fields);
    options.directory = "/var/tmp";
    if (draw_.one_in(3)) {
        options.place = HANARE_PLACE_MEMORY;
    } else {
        options.place = HANARE_PLACE_FILE;
        options.durability = static_cast<hanare_durability>(draw_.between(0, 1));
        options.io = static_cast<hanare_grid_io>(draw_.between(0, 4));
        if (model_.is_simple() && draw_.one_in(2)) {
            options.method = static_cast<hanare_method>(draw_.between(1, 2));
            options.durability = HANARE_DURABILITY_IN_PLACE;
        }
    }
    method_ = options.method;
    text_ << model_.describe() << "; place " << options.place << " durability "
          << options.durability << " io " << options.io << " method " << options.method;
    hanare_grid* grid = nullptr;
    const hanare_status status = hanare_grid_create(&options, &grid);
    grid_.reset(grid);
    return status;
}

std::string Case::run_once() {
    const Stencil stencil(model_);
    hanare_grid_run_options options = {};
    options.struct_size = sizeof options;
    options.threads = static_cast<uint32_t>(draw_.between(1, 4));
    options.flags = HANARE_RUN_NO_MEASUREMENT;
    if (draw_.one_in(2)) options.steps_per_pass = static_cast<uint32_t>(draw_.between(1, 12));
    if (draw_.one_in(2)) options.window_planes = static_cast<uint32_t>(draw_.between(1, 30));
    if (draw_.one_in(2)) options.tile_height = static_cast<uint32_t>(draw_.between(1, 12));
    const uint64_t steps = draw_.between(1, 25);
    text_ << "; run of " << steps << " steps: threads " << options.threads << " bt "
          << options.steps_per_pass << " window " << options.window_planes << " tile "
          << options.tile_height;

    Told told;
    told.model = &model_;
    told.planes = model_.shape[0];
    if (method_ == HANARE_METHOD_STREAM && draw_.one_in(3)) {
        told.every = draw_.between(1, 7);
        told.first = reference_.steps() / told.every + 1;
        const uint64_t last = (reference_.steps() + steps) / told.every;
        told.snapshots.resize(last + 1 - told.first, std::vector<double>(model_.cells()));
        options.snapshot_every = told.every;
        options.snapshot_field = model_.stages.back().written.back().field;
        options.snapshot = Told::take;
        options.snapshot_user = &told;
        text_ << " snapshots every " << told.every;
    }
    std::vector<double> expected_reductions;
    std::vector<std::vector<double>> expected_snapshots;
    for (uint64_t i = 0; i < steps; ++i) {
        reference_.step();
        const auto& values = reference_.reductions();
        expected_reductions.insert(expected_reductions.end(), values.begin(), values.end());
        if (told.every != 0 && reference_.steps() % told.every == 0) {
            expected_snapshots.push_back(reference_.values(options.snapshot_field, 0));
        }
    }
    std::vector<double> reductions(expected_reductions.size() + 1);
    options.reductions = reductions.data();
    if (hanare_grid_run(grid_.get(), steps, stencil.get(), &options) != HANARE_STATUS_OK) {
        return last_error();
    }
    if (std::string text = check_reductions(model_, reductions, expected_reductions);
        !text.empty()) {
        return text;
    }
    if (told.snapshots != expected_snapshots) return "snapshots differ";
    if (told.count != told.planes * told.snapshots.size()) return "planes of snapshots are missing";
    return difference(model_, grid_.get(), reference_);
}

std::string Case::run() {
    if (create() != HANARE_STATUS_OK) return text_.str() + ": " + last_error();
    fill_both(model_, grid_.get(), reference_, draw_.prng());
    for (int i = 0; i < 2; ++i) {
        if (const std::string found = run_once(); !found.empty()) {
            return text_.str() + ": " + found;
        }
    }
    return {};
}

TEST(StencilTest, RandomRunsEqualThePlainComputation) {
    const uint64_t first = seed_of_run();
    const char* const count_text = std::getenv("HANARE_TEST_COUNT");
    const uint64_t count = count_text != nullptr ? std::strtoull(count_text, nullptr, 0) : 400;
    for (uint64_t i = 0; i < count; ++i) {
        const std::string found = Case(first + i).run();
        ASSERT_TRUE(found.empty()) << "seed " << first + i << ": " << found;
    }
}

}  // namespace
}  // namespace hanare::stencil_test
