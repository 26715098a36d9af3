// SPDX-License-Identifier: Apache-2.0
#include "bench/pager_case.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kNames[kPagerCases] = {"seq_write",    "seq_read_cold", "seq_read_warm",
                                             "seq_rmw",      "strided",       "random_clean",
                                             "random_dirty", "mixed",         "triad"};

}  // namespace

const char* pager_case_name(PagerCase which) { return kNames[static_cast<int>(which)]; }

std::optional<PagerCase> pager_case_of(std::string_view name) {
    for (int i = 0; i < kPagerCases; ++i) {
        if (name == kNames[i]) return static_cast<PagerCase>(i);
    }
    return std::nullopt;
}

std::string pager_case_names() {
    std::string text;
    for (const char* name : kNames) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

bool is_random(PagerCase which) {
    return which == PagerCase::kRandomClean || which == PagerCase::kRandomDirty;
}

}  // namespace hanare::bench
