// SPDX-License-Identifier: Apache-2.0
#include "bench/stencil_report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace hanare::bench {
namespace {

constexpr SevenShape kShape = {20, 17, 24};

std::vector<double> filled() {
    std::vector<double> cells(static_cast<size_t>(kShape.cells()));
    for (int64_t plane = 0; plane < kShape.z; ++plane) {
        seven_fill_plane(kShape, plane, cells.data() + plane * kShape.plane_cells());
    }
    return cells;
}

SevenResult result_of(const std::vector<double>& cells) {
    return seven_result(kShape, 2, [&](int64_t plane, double*) {
        return cells.data() + plane * kShape.plane_cells();
    });
}

// Written again, in another way.
double expected(const std::vector<double>& from, int64_t z, int64_t y, int64_t x) {
    const auto at = [&](int64_t dz, int64_t dy, int64_t dx) {
        return from[static_cast<size_t>(((z + dz) * kShape.y + y + dy) * kShape.x + x + dx)];
    };
    return 0.4 * at(0, 0, 0) + 0.1 * (at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) +
                                      at(0, 0, -1) + at(0, 0, 1));
}

TEST(StencilSeven, AllFormsGiveTheSameBits) {
    const std::vector<double> from = filled();
    std::vector<double> plain = from;
    seven_plain(kShape, from.data(), plain.data(), 0, kShape.z);
    for (int64_t z = 0; z < kShape.z; ++z) {
        for (int64_t y = 0; y < kShape.y; ++y) {
            for (int64_t x = 0; x < kShape.x; ++x) {
                const auto i = static_cast<size_t>((z * kShape.y + y) * kShape.x + x);
                const bool is_fixed = z == 0 || z == kShape.z - 1 || y == 0 || y == kShape.y - 1 ||
                                      x == 0 || x == kShape.x - 1;
                if (is_fixed) {
                    ASSERT_EQ(plain[i], from[i]);
                } else {
                    ASSERT_NEAR(plain[i], expected(from, z, y, x), 1e-15);
                }
            }
        }
    }
    for (const SevenBlocks& blocks : seven_candidates(kShape)) {
        std::vector<double> blocked = from;
        for (int64_t row = 1; row < kShape.y - 1; row += blocks.rows) {
            seven_block(kShape, from.data(), blocked.data(), blocks.is_streamed, 0, kShape.z, row,
                        row + blocks.rows);
        }
        EXPECT_EQ(blocked, plain) << blocks.name();
    }
    std::vector<double> boxed = from;
    for (int64_t z = 1; z < kShape.z - 1; ++z) {
        const double* const plane = from.data() + z * kShape.plane_cells() + kShape.x + 1;
        const void* const in[] = {plane - kShape.plane_cells(), plane,
                                  plane + kShape.plane_cells()};
        void* const out[] = {boxed.data() + (plane - from.data())};
        hanare_stencil_box box = {};
        box.in = in;
        box.out = out;
        box.row_stride = kShape.x;
        box.rows = kShape.y - 2;
        box.columns = kShape.x - 2;
        seven_kernel(&box);
    }
    EXPECT_EQ(boxed, plain);
}

TEST(StencilSeven, ResultsTellWhatDiffers) {
    std::vector<double> cells = filled();
    const SevenResult right = result_of(cells);
    EXPECT_EQ(result_of(cells).digest, right.digest);
    EXPECT_EQ(seven_difference(right, right), 0);
    const double kept = cells[1234];
    cells[1234] = std::nextafter(kept, 2);  // the last bit
    EXPECT_NE(result_of(cells).digest, right.digest);
    EXPECT_LT(seven_difference(result_of(cells), right), 1e-12);
    cells[1234] = kept * (1 + 1e-6);
    EXPECT_GT(seven_difference(result_of(cells), right), 1e-12);
    cells[1234] = std::nan("");
    EXPECT_FALSE(seven_difference(result_of(cells), right) <= 1e-12);
    cells[1234] = kept;
    std::swap(cells[100], cells[200]);
    EXPECT_NE(result_of(cells).digest, right.digest);
    EXPECT_FALSE(seven_difference({}, right) <= 1e-12);
}

TEST(StencilSeven, ShapesHaveTheSizeThatIsAskedFor) {
    for (const uint64_t bytes : {uint64_t{64} << 20, uint64_t{1} << 30, uint64_t{8} << 30}) {
        const SevenShape shape = seven_shape(bytes);
        const double ratio = static_cast<double>(shape.domain_bytes()) / static_cast<double>(bytes);
        EXPECT_GT(ratio, 0.97) << bytes;
        EXPECT_LE(ratio, 1.0) << bytes;
        EXPECT_EQ(shape.x / 8 % 2, 1);
        EXPECT_EQ(shape.x % 8, 0);
    }
}

StencilSample sample(int round, const char* system, double seconds) {
    StencilSample made;
    made.round = round;
    made.system = system;
    made.shape = kShape;
    made.steps = 10;
    made.outcome.seconds = seconds;
    made.outcome.series = {{}, {seconds, seconds, 0, 0, 0}};
    return made;
}

std::vector<StencilSample> samples() {
    std::vector<StencilSample> all;
    for (int round = 0; round < 3; ++round) {
        const double slow = 1 + round;  // the machine's, alike for all of a round
        all.push_back(sample(round, "naive", 4 * slow));
        all.push_back(sample(round, "hanare_memory", slow));
        all.push_back(sample(round, "hanare_8x", slow / 0.9));
        all.back().outcome.minimal_bytes = 1000;
        all.back().outcome.read_bytes = 510;
        all.back().outcome.written_bytes = 500;
        all.push_back(sample(round, "hanare_8x_ping_pong", slow / 0.9 * 1.02));
        all.push_back(sample(round, "hanare_8x_snapshots", slow / 0.9 * 1.01 + 2));
        all.back().outcome.snapshot_bytes = 2000;
        all.back().outcome.write_bytes_per_s = 1000;
    }
    return all;
}

TEST(StencilReport, RatiosAreThoseOfTheSameRound) {
    const std::vector<uint64_t> times = {4, 8};
    const auto systems = stencil_systems({"mmap"}, times);
    std::map<std::pair<std::string, std::string>, Record> found;
    for (const Record& record : stencil_records(samples(), systems, times, {})) {
        found[{record.system, record.metric}] = record;
    }
    const Record& speed = found.at({"hanare_8x", "speed_of_memory"});
    EXPECT_NEAR(speed.summary.min, 0.9, 1e-9);
    EXPECT_NEAR(speed.summary.max, 0.9, 1e-9);
    EXPECT_EQ(speed.params["verdict"], "floor met");
    EXPECT_NEAR(found.at({"hanare_8x", "speed_of_naive"}).summary.median, 3.6, 1e-9);
    EXPECT_EQ(found.at({"hanare_8x", "speed_of_naive"}).params["verdict"], "goal met");
    EXPECT_NEAR(found.at({"hanare_8x", "bytes_of_minimum"}).summary.median, 1.01, 1e-9);
    EXPECT_NEAR(found.at({"hanare_8x_ping_pong", "overhead"}).summary.median, 0.02, 1e-9);
    EXPECT_NEAR(found.at({"hanare_8x_snapshots", "overhead"}).summary.median, 0.01, 1e-9);
    EXPECT_FALSE(found.contains({"mmap", "rate"}));
    EXPECT_EQ(found.at({"naive", "effective"}).summary.median,
              8 * found.at({"naive", "rate"}).summary.median);
    EXPECT_NE(stencil_verdicts(samples(), times).find("floor met"), std::string::npos);
    EXPECT_NE(stencil_series_table(samples(), systems).find("naive, processors"),
              std::string::npos);
}

TEST(StencilReport, SystemsThatAreLeftOutSayWhy) {
    std::vector<StencilSample> all = samples();
    all.push_back({0, "devito", "skipped: no module", kShape, 10, {}});
    const auto systems = stencil_systems({"devito"}, {8});
    EXPECT_NE(stencil_table(all, systems).find("skipped: no module"), std::string::npos);
    EXPECT_EQ(stencil_limit_times({8}), 8u);
    EXPECT_EQ(stencil_limit_times({4, 8, 16}), 8u);
}

TEST(StencilReport, WrongCellsAreFound) {
    StencilSample one = sample(0, "mmap", 1);
    StencilOutcome right;
    right.result.digest = 1;
    right.early.digest = 2;
    one.outcome.result.digest = 1;
    EXPECT_EQ(stencil_mismatch(one, right, false, true), "");
    EXPECT_NE(stencil_mismatch(one, right, true, true), "");
    right.result.sums = {1, 2};
    one.outcome.result.sums = {1, 2 + 1e-13};
    EXPECT_EQ(stencil_mismatch(one, right, false, false), "");
    one.outcome.result.sums = {1, 2 + 1e-11};
    EXPECT_NE(stencil_mismatch(one, right, false, false), "");
}

TEST(StencilReport, SweepsByBlockAndSteps) {
    const std::vector<SweepPoint> points = {{"file", "trapezoid", 8, 1, 1e9, 0.5, 1.5},
                                            {"file", "trapezoid", 8, 2, 0, 0, 0},
                                            {"file", "two_level", 8, 1, 2e9, 0.5, 1.5},
                                            {"file", "two_level", 8, 2, 1e9, 0.5, 1.5}};
    const std::string text = sweep_tables(points);
    EXPECT_NE(text.find("8.00"), std::string::npos);
    EXPECT_NE(text.find("takes 0.50 times"), std::string::npos);
    EXPECT_EQ(sweep_records(points, {}).size(), 3u);
}

}  // namespace
}  // namespace hanare::bench
