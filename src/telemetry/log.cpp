// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "telemetry/raw_line.hpp"

namespace hanare::telemetry {

namespace {

std::atomic<LogLevel> least_severe{LogLevel::kWarn};

[[gnu::format(printf, 2, 0)]] void write_line(LogLevel level, const char* format,
                                              va_list arguments) noexcept {
    static constexpr const char* kNames[] = {"error", "warn", "info", "debug"};
    const int saved_errno = errno;
    char text[RawLine::kTextBytes + 1];
    std::vsnprintf(text, sizeof text, format, arguments);
    RawLine line;
    line.text("hanare: ").text(kNames[static_cast<size_t>(level)]).text(": ").text(text);
    line.write_stderr();
    errno = saved_errno;
}

}  // namespace

void set_log_level(LogLevel level) noexcept {
    least_severe.store(level, std::memory_order_relaxed);
}

bool is_logged(LogLevel level) noexcept {
    return level <= least_severe.load(std::memory_order_relaxed);
}

void apply_log_options(const config::Options& options) {
    static std::mutex mutex;
    static std::set<std::string> logged;  // guarded by mutex
    set_log_level(options.log_level);
    const std::lock_guard lock(mutex);
    for (const std::string& warning : options.warnings) {
        if (logged.insert(warning).second) log(LogLevel::kWarn, "%s", warning.c_str());
    }
}

void log(LogLevel level, const char* format, ...) noexcept {
    if (!is_logged(level)) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, format, arguments);
    va_end(arguments);
}

void log_once(std::atomic<bool>& done, LogLevel level, const char* format, ...) noexcept {
    if (!is_logged(level) || done.exchange(true, std::memory_order_relaxed)) return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, format, arguments);
    va_end(arguments);
}

}  // namespace hanare::telemetry
