// SPDX-License-Identifier: Apache-2.0
//
// Every test looks at the bytes that reach a descriptor: standard error is put on a pipe meanwhile.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <unistd.h>

#include "telemetry/counters.hpp"
#include "telemetry/log.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::telemetry {
namespace {

// Runs `action` with standard error on a pipe and returns what was written (at most a pipe full).
template <typename Action>
std::string captured_stderr(Action action) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    action();
    dup2(saved, STDERR_FILENO);
    close(saved);
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(n));
    }
    close(ends[0]);
    return text;
}

TEST(RawLine, FormatsNumbers) {
    RawLine line;
    line.text("a ").decimal(0).text(" ").decimal(UINT64_MAX).text(" ").signed_decimal(INT64_MIN);
    line.text(" ").signed_decimal(-7).text(" ").hex(uint64_t{0xdeadbeef}).text(" ");
    line.hex(static_cast<const void*>(nullptr));
    EXPECT_EQ(line.view(), "a 0 18446744073709551615 -9223372036854775808 -7 0xdeadbeef 0x0");
}

TEST(RawLine, WritesOneLineAndKeepsErrno) {
    const std::string text = captured_stderr([] {
        errno = 4711;
        RawLine line;
        line.text("two\nlines \x1b[2J").text(static_cast<const char*>(nullptr));
        line.write_stderr();
        EXPECT_EQ(errno, 4711);
    });
    EXPECT_EQ(text, "two lines  [2J(null)\n");
}

TEST(RawLine, CutsWhatDoesNotFit) {
    const std::string exact(RawLine::kTextBytes, 'x');
    RawLine full;
    full.text(exact);
    EXPECT_EQ(captured_stderr([&] { full.write_stderr(); }), exact + "\n");
    RawLine over;
    over.text(exact).decimal(1);
    EXPECT_EQ(captured_stderr([&] { over.write_stderr(); }),
              exact.substr(0, exact.size() - 3) + "...\n");
}

TEST(RawLine, ClosedDescriptorIsNotAnError) {
    errno = 0;
    RawLine line;
    line.text("lost").write_to(-1);
    EXPECT_EQ(errno, 0);
}

TEST(Log, WritesEnabledLevelsOnly) {
    const std::string text = captured_stderr([] {
        set_log_level(LogLevel::kInfo);
        errno = 4711;
        log(LogLevel::kError, "e %d", 1);
        log(LogLevel::kInfo, "i %s", "x");
        log(LogLevel::kDebug, "d");
        EXPECT_EQ(errno, 4711);
        set_log_level(LogLevel::kError);
        log(LogLevel::kWarn, "w");
        set_log_level(LogLevel::kWarn);
    });
    EXPECT_EQ(text, "hanare: error: e 1\nhanare: info: i x\n");
}

TEST(Log, OnceFormSaysItOnce) {
    const std::string text = captured_stderr([] {
        for (int i = 0; i < 3; ++i) HANARE_LOG_ONCE(LogLevel::kWarn, "number %d", i);
    });
    EXPECT_EQ(text, "hanare: warn: number 0\n");
}

TEST(Log, DisabledOnceFormIsNotUsedUp) {
    std::atomic<bool> done{false};
    const std::string text = captured_stderr([&] {
        log_once(done, LogLevel::kDebug, "too early");
        set_log_level(LogLevel::kDebug);
        log_once(done, LogLevel::kDebug, "now");
        set_log_level(LogLevel::kWarn);
    });
    EXPECT_EQ(text, "hanare: debug: now\n");
}

TEST(Log, OptionsSetLevelAndWarnOnce) {
    config::Options options;
    options.log_level = LogLevel::kWarn;
    options.warnings = {"unknown variable 100%s"};
    const std::string text = captured_stderr([&] {
        apply_log_options(options);
        apply_log_options(options);
    });
    EXPECT_EQ(text, "hanare: warn: unknown variable 100%s\n");
}

TEST(Counters, TextHasEveryFieldInOrder) {
    hanare_counters counters = {};
    counters.struct_size = sizeof counters;
    counters.read_faults = 12;
    counters.budget_bytes = 3 * (1u << 20) / 2;
    const std::string text = counters_text(counters);
    const std::string json = counters_json(counters);
    size_t in_text = 0;
    size_t in_json = 0;
#define HANARE_FIND(name, doc)                                         \
    in_text = text.find(#name " ", in_text);                           \
    in_json = json.find("\"" #name "\": ", in_json);                   \
    ASSERT_NE(in_text, std::string::npos) << #name << " in\n" << text; \
    ASSERT_NE(in_json, std::string::npos) << #name << " in " << json;
    HANARE_COUNTER_MAP(HANARE_FIND)
    HANARE_GAUGE_MAP(HANARE_FIND)
#undef HANARE_FIND
    EXPECT_NE(text.find("1572864 (1.50 MiB)"), std::string::npos) << text;
    EXPECT_TRUE(json.starts_with("{\"read_faults\": 12, ")) << json;
    EXPECT_NE(json.find("\"budget_bytes\": 1572864, "), std::string::npos) << json;
    EXPECT_TRUE(json.ends_with("\"block_bytes\": 0}")) << json;
}

TEST(Counters, FieldsOfANewerLibraryAreLeftOut) {
    hanare_counters counters = {};
    counters.struct_size = offsetof(hanare_counters, upgrade_faults);
    counters.write_faults = 3;
    EXPECT_EQ(counters_json(counters), "{\"read_faults\": 0, \"write_faults\": 3}");
    counters.struct_size = 0;
    EXPECT_EQ(counters_json(counters), "{}");
    EXPECT_EQ(counters_text(counters), "");
}

}  // namespace
}  // namespace hanare::telemetry
