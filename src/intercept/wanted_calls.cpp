// SPDX-License-Identifier: Apache-2.0
#include "intercept/arguments.hpp"
#include "intercept/far_arguments.hpp"

namespace hanare::intercept {

std::vector<uint32_t> calls_with_addresses() {
    std::vector<uint32_t> numbers;
    for (uint32_t number = 0; number < kSystemCallsMax; ++number) {
        if (!arguments_of(number).pointers().empty()) numbers.push_back(number);
    }
    return numbers;
}

}  // namespace hanare::intercept
