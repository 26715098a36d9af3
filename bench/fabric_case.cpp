// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_case.hpp"

#include <cstring>

#include "base/prng.hpp"

namespace hanare::bench {

const std::vector<FabricCase>& fabric_cases() {
    constexpr size_t kKiB = 1024;
    static const std::vector<FabricCase> cases = {
        {"get_64", FabricAction::kGet, 64, 1, 5000},
        {"put_64", FabricAction::kPut, 64, 1, 5000},
        {"fetch_add", FabricAction::kFetchAdd, 8, 1, 5000},
        {"get_64k", FabricAction::kGet, 64 * kKiB, 1, 1000},
        {"put_64k", FabricAction::kPut, 64 * kKiB, 1, 1000},
        {"get_1m", FabricAction::kGet, 1024 * kKiB, 1, 100},
        {"get_64k_q8", FabricAction::kGet, 64 * kKiB, 8, 4000},
    };
    return cases;
}

const FabricCase* find_fabric_case(std::string_view name) {
    for (const FabricCase& each : fabric_cases()) {
        if (each.name == name) return &each;
    }
    return nullptr;
}

const char* name_of(FabricEngine engine) {
    switch (engine) {
        case FabricEngine::kTcp: return "tcp";
        case FabricEngine::kSecure: return "secure";
        case FabricEngine::kRing: return "ring";
        case FabricEngine::kShm: return "shm";
    }
    return "";
}

uint64_t fabric_word(uint64_t offset) {
    uint64_t state = offset;
    return splitmix64(state);
}

void fill_fabric_region(std::span<std::byte> region) {
    std::memset(region.data(), 0, region.size());
    auto* const words = reinterpret_cast<uint64_t*>(region.data());
    for (size_t i = 0; i < kFabricDataBytes / sizeof(uint64_t); ++i) {
        words[i] = fabric_word(i * sizeof(uint64_t));
    }
}

}  // namespace hanare::bench
