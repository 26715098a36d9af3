// SPDX-License-Identifier: Apache-2.0
#include "compose/addition.hpp"

#include <algorithm>

namespace hanare::compose {

bool Addition::ask(std::string_view spec) noexcept {
    if (spec.empty() || spec.size() >= spec_.size()) return false;
    State none = State::kNone;
    if (!state_.compare_exchange_strong(none, State::kAsking)) return false;
    *std::ranges::copy(spec, spec_.begin()).out = '\0';
    state_.store(State::kWanted, std::memory_order_release);
    return true;
}

const char* Addition::outcome() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kNone ? outcome_.data() : nullptr;
}

std::string_view Addition::wanted() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kWanted ? spec_.data() : "";
}

void Addition::finish(std::string_view outcome) noexcept {
    const std::string_view text = outcome.substr(0, outcome_.size() - 1);
    *std::ranges::copy(text, outcome_.begin()).out = '\0';
    state_.store(State::kNone, std::memory_order_release);
}

}  // namespace hanare::compose
