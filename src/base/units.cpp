// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <algorithm>
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

// "12", "1.5", ".5", also below zero, and where it ends in the text.  As exact as from_chars up to
// fifteen digits; that would make programs load libm (src/run).
struct Decimal {
    double value = 0;
    size_t bytes = 0;  // 0: it is no number
    // If it is a whole number that has room here, since a double has 53 bits.
    bool is_whole = false;
    uint64_t whole = 0;
};
Decimal leading_decimal(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    double digits = 0;
    double scale = 1;
    uint64_t whole = 0;
    bool has_room = !is_negative;
    size_t at = is_negative ? 1 : 0;
    bool has_digits = false;
    bool has_point = false;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '.' && !has_point) {
            has_point = true;
        } else if (c >= '0' && c <= '9') {
            has_digits = true;
            const auto digit = static_cast<uint64_t>(c - '0');
            digits = digits * 10 + static_cast<double>(digit);
            has_room = has_room && whole <= (UINT64_MAX - digit) / 10;
            whole = whole * 10 + digit;
            if (has_point) scale *= 10;
        } else {
            break;
        }
    }
    if (!has_digits) return {};
    return {.value = (is_negative ? -digits : digits) / scale,
            .bytes = at,
            .is_whole = has_room && !has_point,
            .whole = whole};
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
    const Decimal number = leading_decimal(text);
    if (number.bytes == 0) return bad("is not a size");
    if (!(number.value > 0)) return bad("is not positive");
    const int exponent = unit_exponent(text.substr(number.bytes));
    if (exponent < 0) return bad("has an unknown unit");
    // Exact, as powers of two are.
    double bytes = number.value;
    for (int power = 0; power < exponent; ++power) bytes *= 1024;
    if (bytes >= 0x1p63) return bad("is too large");
    if (bytes < 1) return bad("is less than one byte");
    if (number.is_whole) return number.whole << (10 * exponent);
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
    const bool is_whole = value == static_cast<double>(static_cast<uint64_t>(value));
    const int decimals = is_whole ? 0 : value < 10 ? 2 : 1;
    std::snprintf(text, sizeof text, "%.*f %s", decimals, value, units[unit]);
    return text;
}

}  // namespace hanare
