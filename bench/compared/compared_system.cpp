// SPDX-License-Identifier: Apache-2.0
#include "bench/compared/compared_system.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <string>

#include "bench/table.hpp"
#include "sys/clock.hpp"
#include "sys/process_usage.hpp"

namespace hanare::bench {
namespace {

// What the source tells the target.
constexpr char kProgress = 'p';  // until kStop
constexpr char kCompute = 'c';   // for a while, then kProgress
constexpr char kStop = 's';
// The target's answer to kCompute: it has begun.
constexpr char kBegun = 'b';

constexpr uint64_t kCompute_ns = 200'000'000;
constexpr double kNsPerUs = 1000;
// How often the target lets the library work before it looks at its control socket.
constexpr int kTurns = 200;

// When the target has computed; its answer to kStop.
struct Interval {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
};

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

Interval compute() {
    const uint64_t begin_ns = sys::now_ns();
    uint64_t now = begin_ns;
    while (now < begin_ns + kCompute_ns) now = sys::now_ns();
    return {begin_ns, now};
}

// Until the source says that it is enough, or has ended.
void progress_until_stop(ComparedSystem& system, Control& control) {
    while (!control.look()) {
        for (int turn = 0; turn < kTurns; ++turn) system.progress();
    }
}

Result<void> stop(Control& control, Interval& computed) {
    HANARE_TRY(control.send_value(kStop));
    HANARE_TRY_ASSIGN(computed, control.receive_value<Interval>());
    return {};
}

Result<void> run_case(ComparedSystem& system, Control& control, const std::string& name,
                      uint32_t operations, uint64_t seed) {
    const FabricCase* const known = find_fabric_case(name);
    if (known == nullptr || operations == 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "no case %.50s", name.c_str());
    }
    FabricCase which = *known;
    which.operations = operations;
    HANARE_TRY(control.send_value(kProgress));
    HANARE_TRY_ASSIGN(const double us, system.run(which, seed));
    Interval none;
    HANARE_TRY(stop(control, none));
    say(format("time %.6f", us));
    return {};
}

// While the target computes without calling the library.
Result<double> time_passive_get(ComparedSystem& system, Control& control) {
    std::array<std::byte, 64> data;
    HANARE_TRY(control.send_value(kCompute));
    HANARE_TRY_ASSIGN(const char answer, control.receive_value<char>());
    if (answer != kBegun) return fail(HANARE_STATUS_INTERNAL, "the target does not compute");
    const uint64_t begin_ns = sys::now_ns();
    HANARE_TRY(system.get_alone(0, data));
    const uint64_t end_ns = sys::now_ns();
    HANARE_TRY(check_got(data, 0));
    Interval computed;
    HANARE_TRY(stop(control, computed));
    if (begin_ns < computed.begin_ns || begin_ns >= computed.end_ns) {
        return fail(HANARE_STATUS_INTERNAL, "the target has not computed when the get began");
    }
    return static_cast<double>(end_ns - begin_ns) / kNsPerUs;
}

Result<void> run_passive(ComparedSystem& system, Control& control, uint32_t times) {
    // The first access connects.
    HANARE_TRY(control.send_value(kProgress));
    std::array<std::byte, 64> data;
    HANARE_TRY(system.get_alone(0, data));
    Interval none;
    HANARE_TRY(stop(control, none));
    std::string line = "times";
    for (uint32_t i = 0; i < times; ++i) {
        HANARE_TRY_ASSIGN(const double us, time_passive_get(system, control));
        line += format(" %.6f", us);
    }
    say(line);
    return {};
}

}  // namespace

Result<void> be_source(ComparedSystem& system, Control& control) {
    sys::stay_on_first_cpu();
    say("ready");
    for (std::string line; std::getline(std::cin, line);) {
        char name[50];
        uint64_t seed = 0;
        uint32_t operations = 0;
        uint32_t times = 0;
        if (std::sscanf(line.c_str(), "run %49s %" SCNu32 " %" SCNu64, name, &operations, &seed) ==
            3) {
            HANARE_TRY(run_case(system, control, name, operations, seed));
        } else if (std::sscanf(line.c_str(), "passive %" SCNu32, &times) == 1) {
            HANARE_TRY(run_passive(system, control, times));
        } else {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "unknown line %.50s", line.c_str());
        }
    }
    return {};
}

Result<void> be_target(ComparedSystem& system, Control& control) {
    sys::stay_on_last_cpu();
    for (;;) {
        const Result<char> told = control.receive_value<char>();
        if (!told) return {};  // the source has ended
        Interval computed;
        if (*told == kCompute) {
            HANARE_TRY(control.send_value(kBegun));
            computed = compute();
        }
        progress_until_stop(system, control);
        if (!control.send_value(computed)) return {};
    }
}

int exit_status_of(const Result<void>& result) {
    if (result) return 0;
    std::fprintf(stderr, "%s\n", result.error().text);
    return 1;
}

}  // namespace hanare::bench
