// SPDX-License-Identifier: Apache-2.0
//
// The lines of the control protocol (README.md).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hanare::control {

inline constexpr std::string_view kProtocolName = "hanare/";
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr std::string_view kStatistics = "statistics";
// With a SPEC: one more store for the pools of the process that have several.
inline constexpr std::string_view kAdd = "add";
// What has become of the last one.
inline constexpr std::string_view kAdded = "added";

struct RequestLine {
    uint32_t version = 0;
    std::string_view name;
};

// "hanare/VERSION NAME"; nullopt if it is nothing of that kind.
inline std::optional<RequestLine> parse_request(std::string_view line) {
    if (!line.starts_with(kProtocolName)) return std::nullopt;
    line.remove_prefix(kProtocolName.size());
    RequestLine request;
    const auto [end, error] =
        std::from_chars(line.data(), line.data() + line.size(), request.version);
    if (error != std::errc() || end == line.data() + line.size() || *end != ' ') {
        return std::nullopt;
    }
    request.name = line.substr(static_cast<size_t>(end - line.data()) + 1);
    return request;
}

struct ReplyLine {
    bool is_ok = false;
    uint64_t bytes = 0;  // that follow
};

// "hanare/VERSION ok BYTES" or "hanare/VERSION error BYTES", of any version.
inline std::optional<ReplyLine> parse_reply(std::string_view line) {
    const std::optional<RequestLine> parts = parse_request(line);
    if (!parts) return std::nullopt;
    ReplyLine reply;
    std::string_view rest = parts->name;
    const size_t blank = rest.find(' ');
    if (blank == rest.npos) return std::nullopt;
    reply.is_ok = rest.substr(0, blank) == "ok";
    if (!reply.is_ok && rest.substr(0, blank) != "error") return std::nullopt;
    rest.remove_prefix(blank + 1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), reply.bytes);
    if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
    return reply;
}

}  // namespace hanare::control
