// SPDX-License-Identifier: Apache-2.0
//
// Runs in memory and in files, next to plain loops that do the same operations in the same order:
// results are equal to the last bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hanare/stencil.hpp"
#include "plain.hpp"

namespace {

using hanare::Boundary;
using hanare::FieldKind;
using hanare::GridPlace;

class Runs : public testing::TestWithParam<GridPlace> {};

INSTANTIATE_TEST_SUITE_P(Places, Runs, testing::Values(GridPlace::kMemory, GridPlace::kFile),
                         [](const auto& place) {
                             return std::string(place.param == GridPlace::kMemory ? "memory"
                                                                                  : "file");
                         });

/* A star of radius 2 with weights that make a wrong cell show. */
constexpr auto kStar3 = [](const auto& u) {
    return 0.3 * u(0, 0, 0) + 0.1 * (u(-1, 0, 0) + u(1, 0, 0)) + 0.07 * (u(0, -1, 0) + u(0, 1, 0)) +
           0.05 * (u(0, 0, -1) + u(0, 0, 1)) + 0.04 * (u(-2, 0, 0) - u(0, 2, 0)) +
           0.03 * (u(2, 0, 0) + u(0, -2, 0)) + 0.02 * (u(0, 0, -2) + u(0, 0, 2));
};

TEST_P(Runs, any_boundary) {
    constexpr std::uint64_t seed = 20140601;
    std::printf("seed %lu\n", static_cast<unsigned long>(seed));
    std::mt19937_64 random(seed);
    for (int round = 0; round < 12; ++round) {
        std::array<Boundary, 3> boundary{};
        std::array<std::uint64_t, 3> shape{};
        for (unsigned axis = 0; axis < 3; ++axis) {
            boundary[axis] = static_cast<Boundary>(random() % 3);
            shape[axis] = 5 + random() % 30 + (axis == 0 ? 24 : 0);
        }
        hanare::Grid<double> grid({.shape = shape,
                                   .boundary = boundary,
                                   .radius = 2,
                                   .memory_bytes = 64u << 20,
                                   .place = GetParam()});
        Plain<double, 3> u(shape, boundary);
        u.randomize(seed + static_cast<std::uint64_t>(round));
        grid.write("u", u.cells());
        const auto steps = 1 + random() % 8;
        EXPECT_EQ(grid.run(steps, kStar3).steps, steps);
        for (std::uint64_t step = 0; step < steps; ++step) {
            Plain<double, 3> next = u;
            u.for_updated(
                2, [&](const auto& index) { next[index] = kStar3(Around<double, 3>{u, index}); });
            u = next;
        }
        ASSERT_EQ(grid.read("u"), u.cells()) << "round " << round;
    }
}

TEST_P(Runs, several_fields_in_two_dimensions) {
    const std::array<std::uint64_t, 2> shape{50, 37};
    const std::array boundary{Boundary::kPeriodic, Boundary::kReflect};
    const float du = 0.16f, dv = 0.08f, feed = 0.06f, kill = 0.062f;
    const auto lap = [](const auto& f) {
        return f(-1, 0) + f(1, 0) + f(0, -1) + f(0, 1) - 4 * f(0, 0);
    };
    const auto reaction = [=](const auto& u, const auto& v) {
        const float uvv = u(0, 0) * v(0, 0) * v(0, 0);
        return std::tuple(u(0, 0) + du * lap(u) - uvv + feed * (1 - u(0, 0)),
                          v(0, 0) + dv * lap(v) + uvv - (feed + kill) * v(0, 0),
                          hanare::max(v(0, 0)));
    };
    hanare::Grid<float, 2> grid({.shape = shape,
                                 .fields = {{"u"}, {"v"}},
                                 .boundary = boundary,
                                 .memory_bytes = 64u << 20,
                                 .place = GetParam()});
    Plain<float, 2> u(shape, boundary), v(shape, boundary);
    u.randomize(1);
    v.randomize(2);
    grid.write("u", u.cells());
    grid.write("v", v.cells());
    const hanare::Stencil<float, 2> stencil{
        .stages = {{reaction, {.reads = {"u", "v"}, .writes = {"u", "v"}}}}};
    const auto result = grid.run(15, stencil);
    ASSERT_EQ(result.reductions.size(), 1u);
    ASSERT_EQ(result.reductions[0].size(), 15u);
    for (int step = 0; step < 15; ++step) {
        Plain<float, 2> next_u = u, next_v = v;
        float high = 0;
        u.for_updated(1, [&](const auto& index) {
            const auto [new_u, new_v, top] =
                reaction(Around<float, 2>{u, index}, Around<float, 2>{v, index});
            next_u[index] = new_u;
            next_v[index] = new_v;
            high = std::max(high, top.value);
        });
        EXPECT_EQ(result.reductions[0][static_cast<std::size_t>(step)], high);
        u = next_u;
        v = next_v;
    }
    EXPECT_EQ(grid.read("u"), u.cells());
    EXPECT_EQ(grid.read("v"), v.cells());
}

TEST_P(Runs, stages_levels_constants_sources_and_snapshots) {
    const std::array<std::uint64_t, 3> shape{30, 20, 23};
    const std::array<Boundary, 3> fixed{};
    const auto wave = [](const auto& u, const auto& c) {
        return 2 * u(0, 0, 0) - u.old() +
               c(0, 0, 0) * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) +
                             u(0, 0, 1) - 6 * u(0, 0, 0));
    };
    const auto trace = [](const auto& w, const auto& u) {
        return 0.9 * w(0, 0, 0) + u(0, 0, 0) * u(0, 0, 0);
    };
    hanare::Grid<double> grid(
        {.shape = shape,
         .fields = {{"u", FieldKind::kTwoLevels}, {"c", FieldKind::kConstant}, {"w"}},
         .memory_bytes = 64u << 20,
         .place = GetParam()});
    Plain<double, 3> u(shape, fixed), c(shape, fixed), w(shape, fixed);
    c.randomize(3);
    grid.fill("c", [&](auto z, auto y, auto x) {
        return 0.1 * c[{static_cast<std::int64_t>(z), static_cast<std::int64_t>(y),
                        static_cast<std::int64_t>(x)}];
    });
    for (double& cell : c.cells()) cell = 0.1 * cell;
    const std::vector<double> series{1, 0.5, -0.25, 2};
    const hanare::Stencil<double> stencil{
        .stages = {{wave, {.reads = {"u", "c"}, .writes = {"u"}}},
                   {trace, {.reads = {"w", "u"}, .writes = {"w"}}}},
        .sources = {{.position = {15, 9, 11}, .series = series}}};
    std::vector<std::pair<std::uint64_t, double>> seen;
    hanare::RunOptions<double> options;
    options.snapshot_every = 5;
    options.snapshot = [&](std::uint64_t step, std::uint64_t plane, std::span<const double> cells) {
        if (plane == 15) seen.emplace_back(step, cells[9 * 23 + 11]);
    };
    grid.run(12, stencil, options);
    Plain<double, 3> old = u;
    std::vector<std::pair<std::uint64_t, double>> wanted;
    for (std::size_t step = 0; step < 12; ++step) {
        Plain<double, 3> next = u;
        u.for_updated(1, [&](const auto& index) {
            next[index] =
                wave(Around<double, 3>{u, index, old[index]}, Around<double, 3>{c, index});
        });
        old = u;
        u = next;
        if (step < series.size()) u[{15, 9, 11}] += series[step];
        w.for_updated(1, [&](const auto& index) {
            w[index] = trace(Around<double, 3>{w, index}, Around<double, 3>{u, index});
        });
        if ((step + 1) % 5 == 0) wanted.emplace_back(step + 1, u[{15, 9, 11}]);
    }
    EXPECT_EQ(grid.read("u"), u.cells());
    EXPECT_EQ(grid.read("u", 1), old.cells());
    EXPECT_EQ(grid.read("w"), w.cells());
    EXPECT_EQ(seen, wanted);
}

TEST(Grid, cells_in_and_out) {
    hanare::Grid<double, 2> grid({.shape = {6, 9}, .memory_bytes = 64u << 20});
    grid.fill("u", [](auto y, auto x) { return static_cast<double>(10 * y + x); });
    std::vector<double> box(6);
    grid.read("u", {2, 3}, {2, 3}, box);
    EXPECT_EQ(box, (std::vector<double>{23, 24, 25, 33, 34, 35}));
    grid.write("u", {0, 0}, {1, 6}, box);
    EXPECT_EQ(grid.read("u")[5], 35);
    EXPECT_THROW(grid.read("u", {0, 0}, {3, 3}, box), hanare::Error);
    EXPECT_THROW(grid.read("v"), hanare::Error);
    const auto thrower = [](auto, auto) -> double { throw std::runtime_error("no"); };
    EXPECT_THROW(grid.fill("u", thrower), std::runtime_error);
}

TEST(Grid, ends_of_runs) {
    hanare::Grid<double> grid({.shape = {30, 30, 30}, .memory_bytes = 64u << 20});
    const auto same = [](const auto& u) { return 0.5 * (u(0, 0, 1) + u(0, 0, -1)); };
    hanare::RunOptions<double> options;
    options.steps_per_pass = 4;
    options.progress = [](const hanare_grid_progress&) { return true; };
    const auto result = grid.run(100'000'000, same, options);
    EXPECT_GT(result.steps, 0u);
    EXPECT_LT(result.steps, 100'000'000u);
    options.progress = [](const hanare_grid_progress&) -> bool { throw std::runtime_error("no"); };
    EXPECT_THROW(grid.run(100'000'000, same, options), std::runtime_error);
    const std::uint64_t step = grid.step();
    grid.run(1, same);
    EXPECT_EQ(grid.step(), step + 1);
    EXPECT_GT(grid.plan(10, {.stages = {same}}).steps, 0u);
    EXPECT_THROW(grid.run(1, [](const auto& u) { return u(0, 0, 2); }), hanare::Error);
    EXPECT_THROW(
        grid.run(1, hanare::Stencil<double>{.stages = {{same, {.reads = {"x"}, .writes = {"x"}}}}}),
        hanare::Error);
}

TEST(Grid, files_that_stay) {
    const char* const folder = std::getenv("TMPDIR");
    std::string path = std::string(folder ? folder : "/var/tmp") + "/stencil-cpp-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    const std::string file = path + "/u.grid";
    const auto same = [](const auto& u) { return u(0, 0, 0); };
    {
        hanare::Grid<float> grid({.shape = {9, 9, 9}, .memory_bytes = 64u << 20, .path = file});
        grid.fill("u", [](auto z, auto, auto) { return static_cast<float>(z); });
        grid.close();
    }
    {
        auto grid = hanare::Grid<float>::open(file, {.read_only = true});
        EXPECT_EQ(grid.read("u")[8 * 81], 8);
        EXPECT_THROW(grid.run(1, same), hanare::Error);
        EXPECT_THROW(hanare::Grid<double>::open(file, {.read_only = true}), hanare::Error);
    }
    EXPECT_THROW(hanare::Grid<float>::open(path + "/nothing"), hanare::Error);
    std::remove(file.c_str());
    std::remove(path.c_str());
}

}  // namespace
