// SPDX-License-Identifier: Apache-2.0
//
// The cases of `hanare bench intercept`: what a program pays for `hanare run` while all of it fits
// in the budget.  The same code runs plainly and with `hanare run`.  Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::bench {

enum class InterceptUnit {
    kPerCall,    // nanoseconds more, of one call
    kOfTheTime,  // per cent more, of a piece of a program's work
};

// Floors and goals are about the difference to the plain program.
struct InterceptCase {
    const char* name;
    const char* text;
    InterceptUnit unit;
    double floor;
    double goal;
};
const std::vector<InterceptCase>& intercept_cases();
const InterceptCase* find_intercept_case(std::string_view name);

// What the cases need: memory that `hanare run` makes far memory, and files.
class InterceptWork {
public:
    // `far_bytes` at least 64 KiB; above what `hanare run` lets pass before it begins.
    static Result<InterceptWork> prepare(size_t far_bytes);
    InterceptWork(InterceptWork&&) noexcept;
    ~InterceptWork();

    // Nanoseconds of one call, or of one piece of work, by doing it for about `for_ns`.  INTERNAL
    // when something else came of it than what must.
    Result<double> run(const InterceptCase& which, uint64_t for_ns);

private:
    struct State;
    explicit InterceptWork(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace hanare::bench
