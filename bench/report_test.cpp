// SPDX-License-Identifier: Apache-2.0
//
// Tests of what is said about measurements: statistics, tables, records, the demo's plan and
// report.
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "bench/demo_plan.hpp"
#include "bench/demo_report.hpp"
#include "bench/memory.hpp"
#include "bench/record.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

TEST(Statistics, Median) {
    EXPECT_EQ(summarize({}).runs, 0u);
    const Summary odd = summarize({3, 1, 2});
    EXPECT_EQ(odd.median, 2);
    EXPECT_EQ(odd.min, 1);
    EXPECT_EQ(odd.max, 3);
    EXPECT_EQ(odd.runs, 3u);
    EXPECT_EQ(summarize({4, 1, 2, 3}).median, 2.5);
}

TEST(Table, AlignsColumns) {
    Table table({"name", "n"});
    table.add_row({"a", "1,000"});
    EXPECT_EQ(table.text(), "name      n\n-----------\na     1,000\n");
}

TEST(Format, Numbers) {
    EXPECT_EQ(format_count(7), "7");
    EXPECT_EQ(format_count(1000), "1,000");
    EXPECT_EQ(format_count(1234567), "1,234,567");
    EXPECT_EQ(format_seconds(12.34), "12.3 s");
    EXPECT_EQ(format_seconds(1.234), "1.23 s");
    EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
    EXPECT_EQ(format_rate(1.5e9), "1.50 GB/s");
    EXPECT_EQ(format_rate(2.5e8), "250 MB/s");
    EXPECT_EQ(format_ratio(1.016), "1.02x");
    EXPECT_EQ(format_ratio(17.2), "17x");
}

TEST(Record, HasTheFieldsOfADesignedRecord) {
    const Record record = {"resident",           "triad",         "hanare", "rate", "B/s",
                           summarize({1, 2, 3}), {{"threads", 1}}};
    const auto list = nlohmann::json::parse(to_json({record}).dump());
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0]["bench"], "resident");
    EXPECT_EQ(list[0]["case"], "triad");
    EXPECT_EQ(list[0]["median"], 2.0);
    EXPECT_EQ(list[0]["runs"], 3);
    EXPECT_EQ(list[0]["params"]["threads"], 1);
}

const DemoRequest kRequest = {2 * kGiB, 512 * kMiB, 256 * kKiB, true, "local (default)", "/disk"};

TEST(DemoPlan, TakesWhatWasAskedWhereThereIsRoom) {
    const auto plan = plan_demo(kRequest, {100 * kGiB, 20 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->n, 16384u);
    EXPECT_EQ(plan->matrix_bytes, 2 * kGiB);
    EXPECT_EQ(plan->limit_bytes, 512 * kMiB);
    EXPECT_LE(plan->hanare_local_bytes + plan->limit_bytes / 20 + 16 * kMiB, plan->limit_bytes);
    EXPECT_GT(plan->hanare_local_bytes, 470 * kMiB);
    EXPECT_GE(plan->swap_bytes, plan->matrix_bytes);
    EXPECT_TRUE(plan->notes.empty());
    EXPECT_FALSE(plan->no_plain);
}

TEST(DemoPlan, ShrinksToTheDiskAndKeepsTheShare) {
    const auto plan = plan_demo(kRequest, {1 * kGiB, 20 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_LT(plan->matrix_bytes, 1 * kGiB);
    EXPECT_GT(plan->matrix_bytes, 600 * kMiB);
    EXPECT_NEAR(static_cast<double>(plan->limit_bytes) / static_cast<double>(plan->matrix_bytes),
                0.25, 0.01);
    EXPECT_EQ(plan->notes.size(), 1u);
}

TEST(DemoPlan, KeepsALocalSizeThatWasGiven) {
    DemoRequest request = kRequest;
    request.local_is_default = false;
    const auto plan = plan_demo(request, {1 * kGiB, 20 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->limit_bytes, 512 * kMiB);
}

TEST(DemoPlan, LeavesOutPlainMemoryWhereItDoesNotFit) {
    const auto plan = plan_demo(kRequest, {100 * kGiB, 2 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->matrix_bytes, 2 * kGiB);
    EXPECT_TRUE(plan->no_plain);
}

TEST(DemoPlan, ShrinksToTheMemory) {
    const auto plan = plan_demo(kRequest, {100 * kGiB, 512 * kMiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_LE(plan->limit_bytes, 256 * kMiB);
    EXPECT_LE(plan->matrix_bytes, 1 * kGiB);
    EXPECT_FALSE(plan->notes.empty());
}

TEST(DemoPlan, ShrinksToTheLimitOfFiles) {
    const auto plan = plan_demo(kRequest, {100 * kGiB, 20 * kGiB, 600 * kMiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_LE(plan->swap_bytes, 600 * kMiB);
    EXPECT_GT(plan->matrix_bytes, 500 * kMiB);
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_NE(plan->notes[0].find("files may have 600 MiB (ulimit -f)"), std::string::npos);
}

TEST(DemoPlan, AShrunkLocalSizeStillHoldsItsBlocks) {
    const auto plan = plan_demo(kRequest, {400 * kMiB, 20 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_GE(plan->hanare_local_bytes, 32 * kRequest.block_bytes);
    DemoRequest small_blocks = kRequest;
    small_blocks.matrix_bytes = 64 * kGiB;
    small_blocks.block_bytes = 4 * kKiB;
    small_blocks.local_bytes = 64 * kMiB;
    const auto tables = plan_demo(small_blocks, {100 * kGiB, 20 * kGiB});
    ASSERT_TRUE(tables) << tables.error().text;
    EXPECT_GE(tables->hanare_local_bytes, 256 * kMiB);
}

TEST(DemoPlan, SaysWhenNothingIsToBeSeen) {
    DemoRequest request = kRequest;
    request.matrix_bytes = 64 * kMiB;
    const auto plan = plan_demo(request, {100 * kGiB, 20 * kGiB});
    ASSERT_TRUE(plan) << plan.error().text;
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_NE(plan->notes[0].find("fits into local memory"), std::string::npos);
}

// Each text names what the user gave and what is allowed, or what the machine lacks.
TEST(DemoPlan, RefusesWhatCannotWork) {
    const auto refusal = [](uint64_t matrix, uint64_t local, uint64_t block,
                            const MachineRoom& room) -> std::string {
        DemoRequest request = {matrix, local, block, local == 0, "local (flag --local)", "/disk"};
        if (local == 0) request.local_bytes = 512 * kMiB;
        const auto plan = plan_demo(request, room);
        return plan ? "no refusal" : plan.error().text;
    };
    const MachineRoom large = {100 * kGiB, 20 * kGiB};
    const uint64_t block = 256 * kKiB;
    EXPECT_EQ(refusal(kMiB, 0, block, large), "--size: '1M' is too small; allowed is 8M or more");
    EXPECT_EQ(
        refusal(2 * kGiB, kMiB, block, large),
        "local (flag --local): '1M' is too small for blocks of 256K; allowed is 26M to 20224M");
    EXPECT_EQ(
        refusal(2 * kGiB, 64 * kMiB, 4 * kMiB, large),
        "local (flag --local): '64M' is too small for blocks of 4M; allowed is 152M to 20224M");
    EXPECT_EQ(refusal(2 * kGiB, kGiB << 20, block, large),
              "local (flag --local): '1024T' is more than is available; allowed is 26M to 20224M");
    EXPECT_EQ(refusal(2 * kGiB, 0, block, {300 * kMiB, 20 * kGiB}),
              "/disk has 300 MiB free, the demo needs 328 MiB at least: free some room there or "
              "name another directory (--store file:DIR)");
    EXPECT_EQ(refusal(2 * kGiB, 0, block, {100 * kGiB, 20 * kGiB, 1000}),
              "files may have 1000 B, the demo needs 72 MiB at least: raise the limit (ulimit -f "
              "unlimited)");
    EXPECT_EQ(refusal(2 * kGiB, 0, block, {100 * kGiB, 200 * kMiB}),
              "200 MiB of memory are available, the demo needs 282 MiB at least with blocks of "
              "256K: end other programs or take smaller blocks (--block)");
}

DemoRuns runs_of(const std::string& system, double seconds, bool limited) {
    DemoRun run;
    run.system = system;
    run.limited = limited;
    run.times = {{seconds / 2, 0, seconds / 2}};
    run.moved_known = true;
    run.read_bytes = 1000;
    run.written_bytes = 3000;
    return {run};
}

TEST(DemoReport, MedianRunIsAWholeRun) {
    DemoRuns runs = runs_of("hanare", 3, true);
    runs.push_back(runs_of("hanare", 1, true)[0]);
    runs.push_back(runs_of("hanare", 2, true)[0]);
    EXPECT_EQ(median_run(runs).times.total(), 2);
}

TEST(DemoReport, SentenceIsTrueWhicheverWayItCameOut) {
    const DemoRuns plain = runs_of("plain", 1, false);
    const DemoRuns mmap = runs_of("mmap", 6, true);
    const DemoRuns swap = runs_of("swap", 12, true);
    EXPECT_EQ(demo_sentence({plain, mmap, swap, runs_of("hanare", 2, true)}, 4),
              "Hanare finished a matrix of 4.0 times its memory in 2.00 s, 2.0x the time of plain "
              "memory that holds all of it; under the same limit it was 3.0x faster than mmap and "
              "6.0x faster than swap.");
    EXPECT_EQ(demo_sentence({mmap, runs_of("hanare", 9, true)}, 4),
              "Hanare finished a matrix of 4.0 times its memory in 9.00 s; under the same limit it "
              "was 1.50x slower than mmap.");
    EXPECT_EQ(demo_sentence({mmap, runs_of("hanare", 6.1, true)}, 4),
              "Hanare finished a matrix of 4.0 times its memory in 6.10 s; under the same limit it "
              "was as fast as mmap.");
    EXPECT_EQ(
        demo_sentence({runs_of("hanare", 2, false)}, 4),
        "Hanare finished a matrix of 4.0 times its memory in 2.00 s; no system under the same "
        "limit ran beside it.");
    EXPECT_EQ(demo_sentence({plain}, 4), "Hanare was not among the systems that ran.");
}

TEST(DemoReport, FractionIsTheTimeTheDeviceWouldNeed) {
    const DeviceBandwidth device = {.read_bytes_per_s = 1000, .write_bytes_per_s = 3000};
    EXPECT_EQ(device.seconds_for(1000, 3000), 2.0);
    const auto table = demo_table({runs_of("hanare", 4, true)}, device);
    EXPECT_NE(table.find("50 %"), std::string::npos) << table;
    EXPECT_EQ(demo_table({runs_of("hanare", 4, true)}, std::nullopt).find('%'), std::string::npos);
    const auto list = to_json(demo_records({runs_of("hanare", 4, true)}, device, {{"threads", 1}}));
    bool found = false;
    for (const auto& record : list) {
        if (record["metric"] != "device_fraction") continue;
        found = true;
        EXPECT_EQ(record["median"], 0.5);
    }
    EXPECT_TRUE(found);
}

TEST(Memory, KeepsWhatIsWritten) {
    const auto file = file_memory("/var/tmp", sys::AccessOrder::kSequential);
    ASSERT_TRUE(file) << file.error().text;
    const auto plain = plain_memory(HugePages::kSystem);
    for (Memory* memory : {file->get(), plain.get()}) {
        const auto first = memory->allocate(3 * kMiB);
        const auto second = memory->allocate(100);
        ASSERT_TRUE(first && second);
        EXPECT_EQ((*first)[1000], 0.0);
        (*first)[1000] = 1.5;
        (*second)[1] = 2.5;
        EXPECT_EQ((*first)[1000], 1.5);
        EXPECT_EQ((*second)[1], 2.5);
        EXPECT_EQ((*second)[0], 0.0);
        EXPECT_TRUE(memory->use_advice(false));
        ASSERT_TRUE(memory->flush());
        ASSERT_TRUE(memory->drop());
        EXPECT_TRUE(memory->use_advice(true));
        EXPECT_EQ((*first)[1000], 1.5);
        EXPECT_EQ((*second)[1], 2.5);
    }
}

TEST(DeviceProbe, MeasuresOrSaysWhyNot) {
    DeviceProbeOptions options;
    options.directory = "/var/tmp";
    options.file_bytes = 8 * kMiB;
    options.passes = 1;
    const auto found = probe_device(options, [] { return false; });
    if (!found && found.error().status == HANARE_STATUS_NOT_SUPPORTED) {
        GTEST_SKIP() << found.error().text;
    }
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_GT(found->read_bytes_per_s, 0);
    EXPECT_GT(found->write_bytes_per_s, 0);
    const auto stopped = probe_device(options, [] { return true; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().status, HANARE_STATUS_BUSY);
    options.directory = "/nonexistent-directory";
    EXPECT_FALSE(probe_device(options, [] { return false; }));
}

}  // namespace
}  // namespace hanare::bench
