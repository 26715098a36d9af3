// SPDX-License-Identifier: Apache-2.0
#include "config/store_spec.hpp"

#include <cstdlib>

#include "base/units.hpp"
#include "config/nearest.hpp"

namespace hanare::config {

namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kServerPrefix = "tcp://";
constexpr std::string_view kAllowed = "auto, file:DIR[?size=SIZE] or tcp://HOST[:PORT][?size=SIZE]";
constexpr std::string_view kPlannedPrefixes[] = {"mirror(", "parity(", "tier("};

std::unexpected<Error> bad_spec(std::string_view text, const std::string& why) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s %s; allowed is %s", in_quotes(text).c_str(),
                why.c_str(), kAllowed.data());
}

// Any other '%' stands for itself.
std::string without_escapes(std::string_view text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        const std::string_view three = text.substr(i, 3);
        const bool is_question = three == "%3F" || three == "%3f";
        const bool is_escape = is_question || three == "%25";
        plain += is_question ? '?' : text[i];
        if (is_escape) i += 2;
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

}  // namespace

Result<StoreSpec> parse_store_spec(std::string_view text) {
    for (const std::string_view prefix : kPlannedPrefixes) {
        if (text.starts_with(prefix)) {
            return fail(HANARE_STATUS_NOT_SUPPORTED, "not supported yet: %s; supported is %s",
                        in_quotes(text).c_str(), kAllowed.data());
        }
    }
    if (text.find('\0') != std::string_view::npos) return bad_spec(text, "contains a zero byte");
    if (text.starts_with('/')) return bad_spec(text, "lacks the kind; write file:DIR");
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

std::string file_store_spec(std::string_view directory) {
    std::string spec(kFilePrefix);
    for (const char c : directory) {
        if (c == '?' || c == '%') {
            spec += c == '?' ? "%3F" : "%25";
        } else {
            spec += c;
        }
    }
    return spec;
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
