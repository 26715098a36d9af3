// SPDX-License-Identifier: Apache-2.0
//
// What the stress tests share: numbers from the environment and the engines that work here.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/far_pool.hpp"

namespace hanare::stress {

inline uint64_t from_environment(const char* name, uint64_t fallback) {
    const char* const text = std::getenv(name);
    return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

// Of all engines those that can be used; the others are told of once.
inline const std::vector<std::string>& usable_engines() {
    static const std::vector<std::string> engines = [] {
        std::vector<std::string> usable;
        for (const char* engine : api_test::all_engines()) {
            const std::string refusal = api_test::engine_refusal(engine);
            if (refusal.empty()) {
                usable.emplace_back(engine);
            } else {
                std::printf("engine %s is left out: %s\n", engine, refusal.c_str());
            }
        }
        return usable;
    }();
    return engines;
}

}  // namespace hanare::stress
