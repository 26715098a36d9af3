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

uint8_t direct_addresses(const SystemCallArguments& row) noexcept {
    uint8_t arguments = 0;
    for (const Argument& argument : row.pointers()) {
        switch (argument.kind) {
            case ArgumentKind::kText:
            case ArgumentKind::kIn:
            case ArgumentKind::kOut:
            case ArgumentKind::kInOut:
            case ArgumentKind::kWord: break;
            default: return 0;
        }
        if (argument.holds_addresses) return 0;
        arguments = static_cast<uint8_t>(arguments | 1U << argument.index);
    }
    return arguments;
}

}  // namespace hanare::intercept
