// SPDX-License-Identifier: Apache-2.0
//
// Scenarios: what must happen in a process of its own, because the process dies of it, gives up
// rights, or changes signals for good.  This same program is executed again (far memory does not
// survive a fork), runs the scenario and ends; the test looks at how it ended and what it said.
//
//   API_TEST_SCENARIO(name) { SCENARIO_CHECK(condition); return 0; }
//   const Outcome outcome = run_scenario("name", {"argument"});
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace hanare::api_test {

using Arguments = std::vector<std::string>;
using ScenarioBody = int (*)(const Arguments&);

// A scenario returns it after one line that says why it cannot run here.
inline constexpr int kScenarioSkipped = 77;

struct Outcome {
    int wait_status = 0;
    std::string errors;  // standard error

    bool exited_with(int code) const;
    bool died_of(int signal_number) const;
    std::vector<std::string> lines() const;
    std::string describe() const;
};

Outcome run_scenario(const std::string& name, const Arguments& arguments = {});

bool register_scenario(const char* name, ScenarioBody body);
// The scenario's exit status; 2 when there is none of that name.
int run_registered_scenario(const std::string& name, const Arguments& arguments);

// For the test that runs a scenario which may have to be left out.
#define SKIP_IF_SCENARIO_WAS(outcome) \
    if ((outcome).exited_with(hanare::api_test::kScenarioSkipped)) GTEST_SKIP() << (outcome).errors

#define API_TEST_SCENARIO(name)                                      \
    static int scenario_##name(const hanare::api_test::Arguments&);  \
    [[maybe_unused]] static const bool scenario_##name##_is_known =  \
        hanare::api_test::register_scenario(#name, scenario_##name); \
    static int scenario_##name([[maybe_unused]] const hanare::api_test::Arguments& arguments)

#define SCENARIO_CHECK(expression)                                                        \
    do {                                                                                  \
        if (!(expression)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #expression); \
            return 1;                                                                     \
        }                                                                                 \
    } while (false)

}  // namespace hanare::api_test
