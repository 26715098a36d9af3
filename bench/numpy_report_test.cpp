// SPDX-License-Identifier: Apache-2.0
#include "bench/numpy_report.hpp"

#include <gtest/gtest.h>

namespace hanare::bench {
namespace {

NumpySample sample(int round, const char* system, double seconds, uint64_t digest = 7) {
    NumpySample made;
    made.round = round;
    made.case_name = "sort";
    made.system = system;
    made.seconds = seconds;
    made.digest = digest;
    return made;
}

TEST(NumpyReport, ParsesTheLastLine) {
    const std::string line =
        R"({"seconds": 1.5, "flush_seconds": 0.25, "import_seconds": 0.05, "digest": 4294967295})";
    for (const std::string& output : {line, line + "\n", "a warning\n" + line + "\n\n"}) {
        const auto parsed = parse_numpy_sample(output);
        ASSERT_TRUE(parsed) << output;
        EXPECT_EQ(parsed->seconds, 1.5);
        EXPECT_EQ(parsed->flush_seconds, 0.25);
        EXPECT_EQ(parsed->digest, 4294967295u);
    }
    for (const char* const bad : {"", "\n\n", "no result\n", "{}", "[1]", "{\"seconds\": \"x\"}"}) {
        EXPECT_FALSE(parse_numpy_sample(bad)) << bad;
    }
}

TEST(NumpyReport, RatiosAreOfTheSameRound) {
    const auto records =
        numpy_records({sample(0, "plain", 1), sample(0, "memmap", 4), sample(0, "hanare", 2),
                       sample(1, "plain", 2), sample(1, "memmap", 8), sample(1, "hanare", 2)},
                      {});
    const auto median = [&](const std::string& metric) {
        for (const Record& record : records) {
            if (record.metric == metric && record.system == "hanare") return record.summary.median;
        }
        return -1.0;
    };
    EXPECT_EQ(median("time_of_memmap"), (0.5 + 0.25) / 2);
    EXPECT_EQ(median("time_of_plain"), (2.0 + 1.0) / 2);
}

TEST(NumpyReport, JudgesFloorsAndGoals) {
    const auto table = [](double memmap, double hanare) {
        return numpy_table({sample(0, "memmap", memmap), sample(0, "hanare", hanare)});
    };
    EXPECT_NE(table(3, 2).find("met"), std::string::npos);
    EXPECT_NE(table(2.9, 2).find("goal (memmap) missed"), std::string::npos);
    EXPECT_NE(table(2, 2.6).find("floor missed"), std::string::npos);
}

TEST(NumpyReport, TellsWhoFailedAndWhoDiffers) {
    NumpySample slow = sample(0, "memmap", 0);
    slow.failure = "> 60 s";
    EXPECT_NE(numpy_table({slow}).find("> 60 s"), std::string::npos);
    EXPECT_TRUE(numpy_differences({sample(0, "plain", 1), sample(0, "hanare", 1)}).empty());
    EXPECT_EQ(numpy_differences({sample(0, "plain", 1), sample(0, "hanare", 1, 8)}).size(), 1u);
    EXPECT_EQ(numpy_differences({sample(0, "memmap", 1), sample(0, "hanare", 1, 8)}).size(), 1u);
    EXPECT_TRUE(numpy_differences({slow, sample(0, "hanare", 1, 8)}).empty());
}

}  // namespace
}  // namespace hanare::bench
