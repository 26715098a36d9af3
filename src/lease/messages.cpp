// SPDX-License-Identifier: Apache-2.0
#include "lease/messages.hpp"

#include <algorithm>

namespace hanare::lease {

bool is_sound(const Question& question) noexcept {
    if (question.what < Ask::kOpen || question.what > Ask::kFence) return false;
    if (question.what == Ask::kJoin && question.first > kMembersMax) return false;
    // Names are shown to people, whose terminals obey control characters.
    const auto end = std::ranges::find(question.client, '\0');
    return std::all_of(std::begin(question.client), end,
                       [](char c) { return c >= ' ' && c <= '~'; }) &&
           std::all_of(end, std::end(question.client), [](char c) { return c == '\0'; });
}

}  // namespace hanare::lease
