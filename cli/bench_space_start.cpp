// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_space_start.hpp"

#include <array>
#include <functional>
#include <vector>

#include "bench/statistics.hpp"
#include "hanare/space.h"
#include "sys/child.hpp"
#include "sys/clock.hpp"
#include "sys/timed_program.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kProgram = "/bin/true";
constexpr int kWarmUps = 10;
constexpr int kStarts = 100;
constexpr int kLimitMs = 60'000;
constexpr double kNsPerUs = 1000;

// Of what says how long it took.
Result<double> median_us(const std::function<Result<double>()>& start) {
    std::vector<double> all;
    for (int i = 0; i < kWarmUps + kStarts; ++i) {
        HANARE_TRY_ASSIGN(const double us, start());
        if (i >= kWarmUps) all.push_back(us);
    }
    return bench::summarize(std::move(all)).median;
}

Result<void> check(hanare_status status) {
    if (status == HANARE_STATUS_OK) return {};
    std::array<char, sizeof(Error::text)> text{};
    hanare_last_error(text.data(), text.size());
    return fail(status, "%s", text.data());
}

Result<double> time_task_us(hanare_space* space) {
    const hanare_space_program program = {.struct_size = sizeof program,
                                          .path = kProgram,
                                          .arguments = nullptr,
                                          .environment = nullptr};
    pid_t process = 0;
    int status = -1;
    const uint64_t begin_ns = sys::now_ns();
    HANARE_TRY(check(hanare_space_spawn(space, &program, &process)));
    HANARE_TRY(check(hanare_space_wait(space, process, kLimitMs, nullptr, &status)));
    const uint64_t end_ns = sys::now_ns();
    if (status == 0) return static_cast<double>(end_ns - begin_ns) / kNsPerUs;
    return fail(HANARE_STATUS_INTERNAL, "%s: %s", kProgram,
                sys::describe_wait_status(status).c_str());
}

}  // namespace

Result<double> time_of_starts_us(bool is_task) {
    if (!is_task) return median_us([] { return sys::time_program_us({kProgram}); });
    hanare_space* space = nullptr;
    HANARE_TRY(check(hanare_space_create(nullptr, &space)));
    const Result<double> us = median_us([space] { return time_task_us(space); });
    HANARE_TRY(check(hanare_space_destroy(space)));
    return us;
}

}  // namespace hanare::cli
