// SPDX-License-Identifier: Apache-2.0
//
// hanare-bench-intercept: what `hanare bench intercept` runs, plainly and below `hanare run`. Reads
// lines "CASE FOR_NS", answers each with nanoseconds or a text.  A program of its own, as any other
// is that knows nothing of Hanare: whose code calls the kernel by itself, as the tools do, may have
// threads that nobody has seen begin, which system calls then have to reckon with.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "base/units.hpp"
#include "bench/intercept_case.hpp"

int main() {
    using namespace hanare;
    constexpr size_t kFarBytes = 32 * kMiB;
    auto work = bench::InterceptWork::prepare(kFarBytes);
    if (!work) {
        std::fprintf(stderr, "hanare: error: %s\n", work.error().text);
        return 1;
    }
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t for_ns = 0;
        words >> name >> for_ns;
        const bench::InterceptCase* const which = bench::find_intercept_case(name);
        const Result<double> value =
            which != nullptr ? work->run(*which, for_ns)
                             : fail(HANARE_STATUS_INVALID_ARGUMENT, "no case %s", name.c_str());
        if (value) {
            std::printf("%.3f\n", *value);
        } else {
            std::printf("%s\n", value.error().text);
        }
        std::fflush(stdout);
    }
}
