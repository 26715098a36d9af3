// SPDX-License-Identifier: Apache-2.0
#include "config/store_spec.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/units.hpp"
#include "config/nearest.hpp"
#include "config/rules.hpp"

namespace hanare::config {

namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kServerPrefix = "tcp://";
constexpr std::string_view kTierPrefix = "tier(";
constexpr std::string_view kMirrorPrefix = "mirror(";
constexpr std::string_view kParityPrefix = "parity(";
constexpr std::string_view kAllowed = kStoreSpecsAllowed;
// What stands for itself only where it begins or ends nothing.
constexpr std::string_view kEscaped = "?%(),";
constexpr size_t kDepthMax = 4;
constexpr size_t kMembersMax = 64;

std::unexpected<Error> bad_spec(std::string_view text, const std::string& why) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s %s; allowed is %s", in_quotes(text).c_str(),
                why.c_str(), kAllowed.data());
}

int value_of(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    const char lower = static_cast<char>(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Any other '%' stands for itself.
std::string without_escapes(std::string_view text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        plain += text[i];
        if (text[i] != '%' || i + 2 >= text.size()) continue;
        const int value = value_of(text[i + 1]) * 16 + value_of(text[i + 2]);
        if (value <= 0 || !kEscaped.contains(static_cast<char>(value))) continue;
        plain.back() = static_cast<char>(value);
        i += 2;
    }
    return plain;
}

// "size=SIZE" is the only parameter, so '&' can only be a mistake.
Result<uint64_t> parse_parameters(std::string_view text, std::string_view parameters) {
    constexpr std::string_view kSize = "size=";
    if (!parameters.starts_with(kSize)) {
        return bad_spec(text, "has the unknown parameter " + in_quotes(parameters));
    }
    const std::string_view value = parameters.substr(kSize.size());
    if (value == "0") return bad_spec(text, "has size 0");
    return parse_size("size in store " + in_quotes(text), value);
}

Result<StoreSpec> parse_spec(std::string_view text, size_t depth);

// What lies between commas, but for those within parentheses, and for blanks before it.
std::vector<std::string_view> split(std::string_view list) {
    std::vector<std::string_view> parts;
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] == '(') ++depth;
        if (list[i] == ')') --depth;
        if (list[i] != ',' || depth != 0) continue;
        parts.push_back(list.substr(begin, i - begin));
        begin = std::min(list.find_first_not_of(' ', i + 1), list.size());
    }
    parts.push_back(list.substr(begin));
    return parts;
}

// What would be lost together is no redundancy.
Result<void> check_distinct(std::string_view text, const std::vector<StoreSpec>& members) {
    for (size_t i = 0; i < members.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            const std::string member = format_store_spec(members[i]);
            if (member == format_store_spec(members[j])) {
                return bad_spec(text, "names " + in_quotes(member) + " twice");
            }
        }
    }
    return {};
}

bool has_parity(const StoreSpec& spec) {
    return spec.kind == StoreKind::kParity || std::ranges::any_of(spec.members, has_parity);
}

// "K+1;" before the stores.
Result<uint32_t> parse_parity(std::string_view text, std::string_view& list) {
    for (const uint32_t data : {2u, 4u, 8u}) {
        const std::string prefix = std::to_string(data) + "+1;";
        if (!list.starts_with(prefix)) continue;
        list.remove_prefix(prefix.size());
        return data;
    }
    return bad_spec(text, "lacks 2+1;, 4+1; or 8+1; before its stores");
}

Result<StoreSpec> parse_several(StoreKind kind, std::string_view text, std::string_view list,
                                size_t depth) {
    if (!list.ends_with(')')) return bad_spec(text, "lacks the closing parenthesis");
    if (depth == kDepthMax) return bad_spec(text, "is nested too deeply");
    list.remove_suffix(1);
    StoreSpec spec;
    spec.kind = kind;
    if (kind == StoreKind::kParity) {
        HANARE_TRY_ASSIGN(spec.data, parse_parity(text, list));
    }
    const auto parts = split(list);
    const size_t least = kind == StoreKind::kParity ? spec.data + 1 : 2;
    if (parts.size() < least) {
        return bad_spec(text, "has too few stores: at least " + std::to_string(least));
    }
    if (parts.size() > kMembersMax) {
        return bad_spec(text, "has too many stores: at most " + std::to_string(kMembersMax));
    }
    for (const std::string_view part : parts) {
        HANARE_TRY_ASSIGN(StoreSpec member, parse_spec(part, depth + 1));
        if (kind == StoreKind::kParity && has_parity(member)) {
            return bad_spec(text, "has parity within parity");
        }
        spec.members.push_back(std::move(member));
    }
    if (kind != StoreKind::kTier) HANARE_TRY(check_distinct(text, spec.members));
    return spec;
}

Result<StoreSpec> parse_spec(std::string_view text, size_t depth) {
    if (text.find('\0') != std::string_view::npos) return bad_spec(text, "contains a zero byte");
    if (text.starts_with('/')) return bad_spec(text, "lacks the kind; write file:DIR");
    for (const auto& [prefix, kind] :
         {std::pair(kTierPrefix, StoreKind::kTier), std::pair(kMirrorPrefix, StoreKind::kMirror),
          std::pair(kParityPrefix, StoreKind::kParity)}) {
        if (!text.starts_with(prefix)) continue;
        return parse_several(kind, text, text.substr(prefix.size()), depth);
    }
    StoreSpec spec;
    const size_t question = text.find('?');
    const std::string_view place = text.substr(0, question);
    if (question != std::string_view::npos) {
        HANARE_TRY_ASSIGN(spec.size_bytes, parse_parameters(text, text.substr(question + 1)));
    }
    if (text.starts_with(kServerPrefix)) {
        spec.kind = StoreKind::kServer;
        HANARE_TRY_ASSIGN(spec.server, parse_server_address(place));
        return spec;
    }
    if (!text.starts_with(kFilePrefix)) return bad_spec(text, "is of no known kind");
    spec.directory = without_escapes(place.substr(kFilePrefix.size()));
    if (spec.directory.empty()) spec.directory = default_store_directory();
    return spec;
}

}  // namespace

Result<StoreSpec> parse_store_spec(std::string_view text) { return parse_spec(text, 0); }

bool uses_servers(const StoreSpec& spec) noexcept {
    return spec.kind == StoreKind::kServer || std::ranges::any_of(spec.members, uses_servers);
}

std::string file_store_spec(std::string_view directory) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string spec(kFilePrefix);
    for (const char c : directory) {
        if (!kEscaped.contains(c)) {
            spec += c;
            continue;
        }
        spec += '%';
        spec += kDigits[static_cast<size_t>(c) / 16];
        spec += kDigits[static_cast<size_t>(c) % 16];
    }
    return spec;
}

std::string tier_spec(const std::vector<std::string>& specs) {
    if (specs.size() == 1) return specs.front();
    std::string text;
    for (const std::string& spec : specs) text += (text.empty() ? "" : ",") + spec;
    return std::string(kTierPrefix) + text + ")";
}

std::string format_store_spec(const StoreSpec& spec) {
    std::string text;
    switch (spec.kind) {
        case StoreKind::kFile: text = file_store_spec(spec.directory); break;
        case StoreKind::kServer: text = server_url(spec.server); break;
        case StoreKind::kTier: text = kTierPrefix; break;
        case StoreKind::kMirror: text = kMirrorPrefix; break;
        case StoreKind::kParity:
            text = std::string(kParityPrefix) + std::to_string(spec.data) + "+1;";
            break;
    }
    for (size_t i = 0; i < spec.members.size(); ++i) {
        text += (i == 0 ? "" : ",") + format_store_spec(spec.members[i]);
    }
    if (!spec.members.empty()) text += ")";
    if (spec.size_bytes != 0) text += "?size=" + exact_size(spec.size_bytes);
    return text;
}

std::string default_store_directory() {
    const char* const directory = secure_getenv("TMPDIR");
    return directory != nullptr && *directory != '\0' ? directory : "/var/tmp";
}

std::string_view default_store_reason() {
    const char* const directory = secure_getenv("TMPDIR");
    if (directory == nullptr) return "$TMPDIR is not set";
    return *directory != '\0' ? "from $TMPDIR" : "$TMPDIR is empty";
}

}  // namespace hanare::config
