// SPDX-License-Identifier: Apache-2.0
#include "bench/matv.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace hanare::bench {
namespace {

constexpr uint64_t kOrder = 192;

struct Product {
    std::vector<double> a = std::vector<double>(kOrder * kOrder);
    std::vector<double> x = std::vector<double>(kOrder);
    std::vector<double> y = std::vector<double>(kOrder);
    MatvArrays arrays() { return {a.data(), x.data(), y.data(), kOrder}; }
};

bool never() { return false; }

TEST(Matv, ProductHasTheBitsOfTheReference) {
    Product run;
    run_matv(run.arrays(), [](MatvPhase, uint64_t, uint64_t) {});
    EXPECT_EQ(run.y, matv_reference(kOrder, never));
}

TEST(Matv, ReferenceAgreesWithAnotherSummation) {
    const std::vector<double> y = matv_reference(kOrder, never);
    for (uint64_t row = 0; row < kOrder; ++row) {
        EXPECT_NEAR(y[row], matv_row_exact(kOrder, row), 1e-12 * y[row]);
    }
}

TEST(Matv, DamagedElementChangesTheProduct) {
    Product run;
    bool damaged = false;
    run_matv(run.arrays(), [&](MatvPhase phase, uint64_t, uint64_t) {
        if (phase != MatvPhase::kWriteX) return;
        std::swap(run.a[7 * kOrder + 1], run.a[7 * kOrder + 2]);
        damaged = true;
    });
    ASSERT_TRUE(damaged);
    const std::vector<double> y = matv_reference(kOrder, never);
    for (uint64_t row = 0; row < kOrder; ++row) EXPECT_EQ(run.y[row] != y[row], row == 7);
}

TEST(Matv, MismatchNamesTheRow) {
    const std::vector<double> reference = matv_reference(kOrder, never);
    std::vector<uint64_t> bits;
    for (const double value : reference) bits.push_back(std::bit_cast<uint64_t>(value));
    EXPECT_EQ(matv_mismatch(bits, reference), "");
    bits[17] ^= 1;  // the last bit
    EXPECT_EQ(matv_mismatch(bits, reference).rfind("y[17] is ", 0), 0u);
    bits.pop_back();
    EXPECT_EQ(matv_mismatch(bits, reference), "y has 191 rows instead of 192");
}

TEST(Matv, ElementsAreRandomAndNormal) {
    Product run;
    run_matv(run.arrays(), [](MatvPhase, uint64_t, uint64_t) {});
    double sum = 0;
    for (const double value : run.a) {
        ASSERT_GE(value, 1.0);
        ASSERT_LT(value, 2.0);
        sum += value;
    }
    EXPECT_NEAR(sum / static_cast<double>(run.a.size()), 1.5, 0.01);
    EXPECT_NE(run.a[0], run.x[0]);
}

TEST(Matv, ReportsEveryPhaseToItsEnd) {
    Product run;
    uint64_t done[kMatvPhases] = {};
    run_matv(run.arrays(), [&](MatvPhase phase, uint64_t now, uint64_t total) {
        EXPECT_LE(now, total);
        if (now == total) ++done[static_cast<int>(phase)];
    });
    for (const uint64_t ends : done) EXPECT_EQ(ends, 1u);
}

TEST(Matv, ReferenceStopsWhenAsked) {
    int rows = 0;
    const auto y = matv_reference(kOrder, [&] { return ++rows > 5; });
    EXPECT_EQ(y.size(), 5u);
}

TEST(Matv, OrderIsTheLargestThatFits) {
    EXPECT_EQ(matv_order(uint64_t{2} << 30, 64), 16384u);
    EXPECT_EQ(matv_order((uint64_t{2} << 30) - 1, 64), 16320u);
    EXPECT_EQ(matv_order(8 * 63 * 63, 64), 0u);
    EXPECT_EQ(matv_order(8 * 64 * 64, 64), 64u);
}

}  // namespace
}  // namespace hanare::bench
