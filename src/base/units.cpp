// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace hanare {

namespace {

// Power of 1024 that a unit suffix stands for, or -1.
int unit_exponent(std::string_view suffix) {
    if (suffix.empty() || suffix == "B" || suffix == "b") return 0;
    constexpr std::string_view letters = "kmgtp";
    const char lower = static_cast<char>(suffix[0] | 0x20);
    const size_t position = letters.find(lower);
    if (position == std::string_view::npos) return -1;
    const std::string_view rest = suffix.substr(1);
    if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB" && rest != "ib") return -1;
    return static_cast<int>(position) + 1;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view what, std::string_view text,
                            std::string_view allowed) {
    const auto bad = [&](const char* why) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.*s: '%.*s' %s; allowed is %.*s",
                    static_cast<int>(what.size()), what.data(),
                    static_cast<int>(std::min<size_t>(text.size(), 60)), text.data(), why,
                    static_cast<int>(allowed.size()), allowed.data());
    };
    if (text.empty()) return bad("is empty");
    double value = 0;
    const auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc{}) return bad("is not a size");
    if (!(value > 0)) return bad("is not positive");
    const int exponent =
        unit_exponent({rest, static_cast<size_t>(text.data() + text.size() - rest)});
    if (exponent < 0) return bad("has an unknown unit");
    const double bytes = std::ldexp(value, 10 * exponent);
    if (bytes >= std::ldexp(1.0, 63)) return bad("is too large");
    if (bytes < 1) return bad("is less than one byte");
    return static_cast<uint64_t>(bytes);
}

std::string format_size(uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    const int decimals = value == std::floor(value) ? 0 : value < 10 ? 2 : 1;
    std::snprintf(text, sizeof text, "%.*f %s", decimals, value, units[unit]);
    return text;
}

}  // namespace hanare
