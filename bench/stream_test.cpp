// SPDX-License-Identifier: Apache-2.0
#include "bench/stream.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hanare::bench {
namespace {

constexpr size_t kCount = 1000;
constexpr int kRounds = 200;

struct Arrays {
    std::vector<double> a = std::vector<double>(kCount);
    std::vector<double> b = std::vector<double>(kCount);
    std::vector<double> c = std::vector<double>(kCount);
    StreamArrays arrays() { return {a.data(), b.data(), c.data(), kCount}; }

    Arrays() {
        stream_fill(arrays());
        for (int round = 0; round < kRounds; ++round) {
            for (int k = 0; k < kStreamKernels; ++k) {
                stream_run(static_cast<StreamKernel>(k), arrays());
            }
        }
    }
};

TEST(Stream, VerifiesWhatTheKernelsGive) {
    Arrays run;
    EXPECT_EQ(stream_verify(run.arrays(), kRounds), std::nullopt);
}

TEST(Stream, FindsADamagedElement) {
    Arrays run;
    run.c[321] *= 1 + 1e-8;
    EXPECT_EQ(stream_verify(run.arrays(), kRounds), 321u);
    run.b[12] = std::nan("");
    EXPECT_EQ(stream_verify(run.arrays(), kRounds), 12u);
}

TEST(Stream, ValuesStayInRangeHoweverOftenItRuns) {
    Arrays run;
    for (const auto* array : {&run.a, &run.b, &run.c}) {
        for (const double value : *array) {
            EXPECT_GT(value, 0.1);
            EXPECT_LT(value, 10.0);
        }
    }
}

TEST(Stream, CountsBytesAsStreamDoes) {
    EXPECT_EQ(stream_bytes(StreamKernel::kCopy, 10), 160u);
    EXPECT_EQ(stream_bytes(StreamKernel::kScale, 10), 160u);
    EXPECT_EQ(stream_bytes(StreamKernel::kAdd, 10), 240u);
    EXPECT_EQ(stream_bytes(StreamKernel::kTriad, 10), 240u);
}

}  // namespace
}  // namespace hanare::bench
