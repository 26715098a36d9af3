// SPDX-License-Identifier: Apache-2.0
#include "config/rules.hpp"

#include <algorithm>
#include <charconv>

#include "base/units.hpp"
#include "config/nearest.hpp"
#include "config/store_spec.hpp"

namespace hanare::config {

std::unexpected<Error> bad_value(std::string_view what, std::string_view text, std::string_view why,
                                 std::string_view allowed) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.*s: %s %.*s; allowed is %.*s",
                static_cast<int>(what.size()), what.data(), in_quotes(text).c_str(),
                static_cast<int>(why.size()), why.data(), static_cast<int>(allowed.size()),
                allowed.data());
}

std::string exact_size(uint64_t bytes) {
    constexpr std::string_view kUnits = "TGMK";
    uint64_t unit = kGiB * 1024;
    for (const char letter : kUnits) {
        if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + letter;
        unit /= 1024;
    }
    return std::to_string(bytes);
}

Result<uint64_t> SizeOrAuto::parse(std::string_view what, std::string_view text) const {
    if (text == "auto") return 0;
    return parse_size(what, text, allowed());
}

Result<uint64_t> PowerOfTwo::parse(std::string_view what, std::string_view text,
                                   std::string_view and_also) const {
    const auto bad = [&](const char* why) {
        return bad_value(what, text, why, std::string(and_also) + allowed());
    };
    const Result<uint64_t> size = parse_size(what, text);
    if (!size) return bad("is not a size");
    if (!is_power_of_two(*size)) return bad("is not a power of two");
    if (*size < min_) return bad("is too small");
    if (*size > max_) return bad("is too large");
    return *size;
}

Result<uint64_t> PowerOfTwoOrAuto::parse(std::string_view what, std::string_view text) const {
    if (text == "auto") return 0;
    return size_.parse(what, text, kAutoOr);
}

std::string PowerOfTwo::allowed() const {
    return "a power of two from " + exact_size(min_) + " to " + exact_size(max_);
}

Result<uint32_t> Range::parse(std::string_view what, std::string_view text) const {
    uint32_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::invalid_argument || rest != end) {
        return bad_value(what, text, "is not a whole number", allowed());
    }
    if (error != std::errc{} || value < min_ || value > max_) {
        return bad_value(what, text, "is out of range", allowed());
    }
    return value;
}

std::string Range::allowed() const {
    return "a number from " + std::to_string(min_) + " to " + std::to_string(max_);
}

Result<bool> Boolean::parse(std::string_view what, std::string_view text) const {
    if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
    if (text == "false" || text == "no" || text == "off" || text == "0") return false;
    return bad_value(what, text, "is neither true nor false", allowed());
}

std::string StoreOrAuto::allowed() const { return std::string(kStoreSpecsAllowed); }

Result<std::string> StoreOrAuto::parse(std::string_view what, std::string_view text) const {
    if (text == "auto") return std::string();
    const Result<StoreSpec> spec = parse_store_spec(text);
    if (!spec) {
        return fail(spec.error().status, "%.*s: %s", static_cast<int>(what.size()), what.data(),
                    spec.error().text);
    }
    return std::string(text);
}

Result<std::string> FileOrNone::parse(std::string_view what, std::string_view text) const {
    if (text == "none") return std::string();
    if (text.empty() || text.find('\0') != std::string_view::npos) {
        return bad_value(what, text, "names no file", allowed());
    }
    return std::string(text);
}

Result<size_t> parse_name(std::string_view what, std::string_view text, std::string_view names) {
    const auto count = static_cast<size_t>(std::count(names.begin(), names.end(), '|')) + 1;
    for (size_t i = 0; i < count; ++i) {
        if (name_at(names, i) == text) return i;
    }
    return bad_value(what, text, "is unknown", enumerate(names));
}

std::string_view name_at(std::string_view names, size_t position) {
    for (; position > 0; --position) names.remove_prefix(names.find('|') + 1);
    return names.substr(0, names.find('|'));
}

std::string enumerate(std::string_view names) {
    std::string text;
    for (size_t bar = 0; (bar = names.find('|')) != std::string_view::npos;) {
        text.append(names.substr(0, bar));
        names.remove_prefix(bar + 1);
        text += names.find('|') == std::string_view::npos ? " or " : ", ";
    }
    return text.append(names);
}

}  // namespace hanare::config
