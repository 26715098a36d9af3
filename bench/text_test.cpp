// SPDX-License-Identifier: Apache-2.0
//
// Tests of the text that `hanare demo sort` sorts, and of what is said about it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/sort_report.hpp"
#include "bench/text_corpus.hpp"
#include "bench/text_lines.hpp"
#include "sys/file.hpp"

namespace hanare::bench {
namespace {

namespace fs = std::filesystem;

bool never() { return false; }

sys::FileDescriptor file_with(const std::string& text) {
    sys::FileDescriptor file;
    EXPECT_EQ(sys::open_unnamed("/tmp", file), 0);
    EXPECT_EQ(pwrite(file.number(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    return file;
}

TextCheck check_of(const std::string& text) {
    const sys::FileDescriptor file = file_with(text);
    const auto check = check_text(file.number(), never);
    EXPECT_TRUE(check && check->is_complete);
    return check.value_or(TextCheck{});
}

TEST(TextCheck, KnowsWhatIsSorted) {
    EXPECT_TRUE(check_of("").is_sorted);
    EXPECT_TRUE(check_of("a\nab\nab\nb\n\xc3\xa4\n").is_sorted);
    EXPECT_FALSE(check_of("ab\na\n").is_sorted);
    EXPECT_FALSE(check_of("\xc3\xa4\nz\n").is_sorted) << "bytes are not signed";
    EXPECT_FALSE(check_of("a\nb").is_sorted) << "sort ends every line";
    EXPECT_TRUE(check_of("\n\na\n").is_sorted);
}

TEST(TextCheck, KnowsTheSameLinesInAnotherOrder) {
    const TextCheck one = check_of("b\na\na\n");
    const TextCheck sorted = check_of("a\na\nb\n");
    EXPECT_TRUE(one.bag == sorted.bag);
    EXPECT_NE(one.digest[0], sorted.digest[0]);
    EXPECT_FALSE(check_of("a\nb\nb\n").bag == sorted.bag);
    EXPECT_FALSE(check_of("a\naa\nb\n").bag == sorted.bag);
    EXPECT_EQ(sorted.bag.lines(), 3u);
    EXPECT_EQ(sorted.bag.bytes(), 6u);
}

// Lines that cross what is read at a time, and one that is longer.
TEST(TextCheck, JoinsPartsOfLines) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < 300; ++i) lines.emplace_back(i * 7919 % 20000, 'a');
    lines.emplace_back(3 * kMiB, 'b');
    LineBag bag;
    std::string text;
    for (const std::string& line : lines) {
        bag.add(line);
        text += line + "\n";
    }
    EXPECT_TRUE(check_of(text).bag == bag);
    EXPECT_FALSE(check_of(text).is_sorted);
    std::sort(lines.begin(), lines.end());
    text.clear();
    for (const std::string& line : lines) text += line + "\n";
    EXPECT_TRUE(check_of(text).bag == bag);
    EXPECT_TRUE(check_of(text).is_sorted);
    // Two lines that change places where one part ends and the next begins.
    std::string late(kMiB - 2, 'a');
    EXPECT_FALSE(check_of(late + "\nc\nb\n").is_sorted);
    EXPECT_FALSE(check_of("b\n" + late + "\n").is_sorted);
}

class CorpusTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/tmp/hanare-text-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { fs::remove_all(folder_); }

    void put(const std::string& name, const std::string& text) const {
        fs::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name, std::ios::binary) << text;
    }
    CorpusRequest request(uint64_t bytes, CorpusOrder order = CorpusOrder::kRandom) const {
        return {.folders = {folder_.string(), "/nonexistent"},
                .text_bytes = bytes,
                .source_bytes_max = 4 * kMiB,
                .seed = 1,
                .order = order};
    }
    static std::string lines(int from, int to) {
        std::string text;
        for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
        return text;
    }

    // How often a window's least line is less than that of the window before.
    static uint64_t falls(const sys::FileDescriptor& file, uint64_t bytes) {
        std::string text(bytes, '\0');
        EXPECT_EQ(pread(file.number(), text.data(), bytes, 0), static_cast<ssize_t>(bytes));
        std::vector<std::string> windows;
        size_t count = 0;
        for (size_t begin = 0, end; (end = text.find('\n', begin)) < text.size(); begin = end + 1) {
            const std::string line = text.substr(begin, end - begin);
            if (count++ % kCorpusWindow == 0) windows.push_back(line);
            windows.back() = std::min(windows.back(), line);
        }
        uint64_t found = 0;
        for (size_t i = 1; i < windows.size(); ++i) found += windows[i] < windows[i - 1] ? 1 : 0;
        return found;
    }

    fs::path folder_;
};

TEST_F(CorpusTest, RepeatsTheLinesOfTextsInAnotherOrder) {
    put("b/second", lines(10000, 20000));
    put("a/first", lines(0, 10000) + "no end");
    put("data", std::string("binary\0data\n", 12));
    put("empty", "");
    put("long", std::string(100000, 'x') + "\n");
    fs::create_symlink("first", folder_ / "a/again");
    const sys::FileDescriptor file = file_with("");
    const auto corpus = write_corpus(request(kMiB), file.number(), [](double) { return true; });
    ASSERT_TRUE(corpus) << corpus.error().text;
    EXPECT_TRUE(corpus->is_complete);
    EXPECT_EQ(corpus->source_files, 3u);
    const auto check = check_text(file.number(), never);
    ASSERT_TRUE(check);
    EXPECT_TRUE(check->bag == corpus->bag);
    EXPECT_FALSE(check->is_sorted);
    EXPECT_GE(check->bag.bytes(), kMiB);
    EXPECT_LT(check->bag.bytes(), kMiB + 100);
    // The same files give the same text.
    const sys::FileDescriptor second = file_with("");
    ASSERT_TRUE(write_corpus(request(kMiB), second.number(), [](double) { return true; }));
    const auto again = check_text(second.number(), never);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->digest[0], check->digest[0]);
}

TEST_F(CorpusTest, MakesRunsThatAreNearlySorted) {
    put("text", lines(0, 50000));
    for (const uint64_t bytes : {kMiB, 16 * kMiB}) {  // each line sometimes, and several times
        const sys::FileDescriptor file = file_with("");
        const auto corpus = write_corpus(request(bytes, CorpusOrder::kRuns), file.number(),
                                         [](double) { return true; });
        ASSERT_TRUE(corpus) << corpus.error().text;
        const auto check = check_text(file.number(), never);
        ASSERT_TRUE(check);
        EXPECT_TRUE(check->bag == corpus->bag);
        EXPECT_FALSE(check->is_sorted);
        EXPECT_GE(check->bag.bytes(), bytes);
        // Where a run begins it falls, and perhaps once more, as windows begin elsewhere here.
        EXPECT_GE(falls(file, check->bag.bytes()), kCorpusRuns - 1);
        EXPECT_LE(falls(file, check->bag.bytes()), 2 * kCorpusRuns);
    }
}

TEST_F(CorpusTest, SaysSoWhenThereIsNoText) {
    put("data", std::string("\0", 1));
    const sys::FileDescriptor file = file_with("");
    const auto corpus = write_corpus(request(kMiB), file.number(), [](double) { return true; });
    ASSERT_FALSE(corpus);
    EXPECT_EQ(corpus.error().status, HANARE_STATUS_NOT_FOUND);
}

TEST_F(CorpusTest, StopsWhenAsked) {
    put("text", lines(0, 100000));
    const sys::FileDescriptor file = file_with("");
    const auto corpus = write_corpus(request(kGiB), file.number(), [](double) { return false; });
    ASSERT_TRUE(corpus) << corpus.error().text;
    EXPECT_FALSE(corpus->is_complete);
}

TEST(SortReport, ChecksRoom) {
    const MachineRoom enough = {.free_disk_bytes = 8 * kGiB, .available_memory_bytes = 4 * kGiB};
    EXPECT_TRUE(check_sort_room(kGiB, "/disk", enough));
    MachineRoom machine = enough;
    machine.free_disk_bytes = 3 * kGiB;
    auto refused = check_sort_room(kGiB, "/disk", machine);
    ASSERT_FALSE(refused);
    EXPECT_STREQ(refused.error().text,
                 "/disk has 3 GiB free, sorting 1 GiB takes 5.27 GiB there: free some room, name "
                 "another directory (--store file:DIR) or sort less (--size 512M)");
    machine = enough;
    machine.available_memory_bytes = 2 * kGiB;
    refused = check_sort_room(kGiB, "/disk", machine);
    ASSERT_FALSE(refused);
    EXPECT_NE(std::string(refused.error().text).find("2 GiB of memory are available"),
              std::string::npos);
    machine = enough;
    machine.file_bytes_max = kGiB;
    refused = check_sort_room(kGiB, "/disk", machine);
    ASSERT_FALSE(refused);
    EXPECT_NE(std::string(refused.error().text).find("ulimit -f"), std::string::npos);
}

const std::vector<SortRun> kRuns = {
    {"plain", false, true, 10, 2 * kGiB, "verified"},
    {"limited", true, false, 2, 512 * kMiB, "killed: out of memory"},
    {"hanare", true, true, 15, 500 * kMiB, "identical"},
    {"swap", true, true, 45, 512 * kMiB, "identical"}};

TEST(SortReport, TellsWhatHappened) {
    EXPECT_EQ(sort_table(kRuns),
              "sort       time  slowdown  peak RSS                 result\n"
              "----------------------------------------------------------\n"
              "plain    10.0 s     1.00x     2 GiB               verified\n"
              "limited  2.00 s         -   512 MiB  killed: out of memory\n"
              "hanare   15.0 s     1.50x   500 MiB              identical\n"
              "swap     45.0 s      4.5x   512 MiB              identical\n");
    EXPECT_EQ(sort_sentence(kRuns, kGiB, 512 * kMiB),
              "Under hanare run, sort finished 1 GiB in 512 MiB of memory, a quarter of what it "
              "takes, in 15.0 s, 1.50x the time of plain memory; with swap it was 3.0x slower.");
    std::vector<SortRun> runs = kRuns;
    runs[3].is_done = false;
    runs[3].result = "stopped after 45 s";
    EXPECT_NE(sort_sentence(runs, kGiB, 512 * kMiB)
                  .find("; with swap, after 45.0 s: stopped after 45 s."),
              std::string::npos);
    runs.pop_back();
    EXPECT_EQ(sort_sentence(runs, kGiB, 512 * kMiB).find("swap"), std::string::npos);
    runs.pop_back();
    EXPECT_EQ(sort_sentence(runs, kGiB, 512 * kMiB), "Hanare did not finish.");
}

TEST(SortReport, RecordsWhatIsDone) {
    const auto records = sort_records(kRuns, {{"threads", 2}});
    ASSERT_EQ(records.size(), 6u);
    EXPECT_EQ(records[2].system, "hanare");
    EXPECT_EQ(records[2].metric, "time");
    EXPECT_EQ(records[2].params["limited"], true);
}

}  // namespace
}  // namespace hanare::bench
