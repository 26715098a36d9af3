// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counters.hpp"

#include <cstddef>
#include <cstdio>
#include <string_view>

#include "base/units.hpp"

namespace hanare::telemetry {

namespace {

// Calls visit(name, doc, value) for every field that struct_size covers.
template <typename Visitor>
void for_each(const hanare_counters& counters, Visitor visit) {
#define HANARE_VISIT(name, text)                                                        \
    if (offsetof(hanare_counters, name) + sizeof counters.name <= counters.struct_size) \
        visit(std::string_view(#name), std::string_view(text), counters.name);
    HANARE_COUNTER_MAP(HANARE_VISIT)
    HANARE_GAUGE_MAP(HANARE_VISIT)
#undef HANARE_VISIT
}

}  // namespace

std::string counters_text(const hanare_counters& counters) {
    std::string result;
    for_each(counters, [&](std::string_view name, std::string_view doc, uint64_t value) {
        char number[64];
        if (name.ends_with("_bytes") && value >= kKiB) {
            std::snprintf(number, sizeof number, "%llu (%s)",
                          static_cast<unsigned long long>(value), format_size(value).c_str());
        } else {
            std::snprintf(number, sizeof number, "%llu", static_cast<unsigned long long>(value));
        }
        char line[192];
        std::snprintf(line, sizeof line, "%-18.*s %28s  %.*s\n", static_cast<int>(name.size()),
                      name.data(), number, static_cast<int>(doc.size()), doc.data());
        result += line;
    });
    return result;
}

std::string counters_json(const hanare_counters& counters) {
    std::string result = "{";
    for_each(counters, [&](std::string_view name, std::string_view, uint64_t value) {
        if (result.size() > 1) result += ", ";
        result.append("\"").append(name).append("\": ").append(std::to_string(value));
    });
    return result + "}";
}

}  // namespace hanare::telemetry
