// SPDX-License-Identifier: Apache-2.0
//
// The log: lines "hanare: warn: TEXT" on standard error, each in one write(2), so that lines of
// several threads do not mix.  Keeps errno, does not allocate.  Any thread, but not a signal
// handler (printf formatting is not async-signal-safe): there is RawLine for those.
#pragma once

#include <atomic>

#include "config/options.hpp"

namespace hanare::telemetry {

using config::LogLevel;

// Least severe level that is written; kWarn until set.
void set_log_level(LogLevel level) noexcept;
bool is_logged(LogLevel level) noexcept;

// Takes the level from the options and logs their warnings, each text once per process.
void apply_log_options(const config::Options& options);

[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

// The same, the first time only that it is reached with this `done`.
[[gnu::format(printf, 3, 4)]] void log_once(std::atomic<bool>& done, LogLevel level,
                                            const char* format, ...) noexcept;

}  // namespace hanare::telemetry

// Logs at most once per process from this place.
#define HANARE_LOG_ONCE(level, ...)                                         \
    do {                                                                    \
        static std::atomic<bool> hanare_log_done{false};                    \
        ::hanare::telemetry::log_once(hanare_log_done, level, __VA_ARGS__); \
    } while (false)
