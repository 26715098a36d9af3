// SPDX-License-Identifier: Apache-2.0
#include "config/memory_hosts.hpp"

#include <algorithm>
#include <charconv>

#include "base/units.hpp"
#include "config/rules.hpp"

namespace hanare::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kAllowed = "HOST MB, one a line";
constexpr size_t kNameBytesMax = 255;
constexpr uint64_t kMegabytesMax = uint64_t{1} << 32;  // 4 PiB

std::string_view take_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
    line.remove_prefix(word.size());
    return word;
}

// It becomes an argument of ssh, where a hyphen would make an option of it.
bool is_host_name(std::string_view name) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view(".-_:@%[]").find(c) != std::string_view::npos;
    };
    return name.size() <= kNameBytesMax && !name.starts_with('-') && !name.ends_with('@') &&
           std::ranges::all_of(name, is_allowed);
}

Result<uint64_t> parse_megabytes(const std::string& where, std::string_view text) {
    if (text.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.150s: lacks the MB; allowed is %s",
                    where.c_str(), kAllowed.data());
    }
    uint64_t megabytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
    const bool is_number = error != std::errc::invalid_argument && end == text.data() + text.size();
    if (!is_number) return bad_value(where, text, "is no number of MB", kAllowed);
    if (error == std::errc() && megabytes > 0 && megabytes <= kMegabytesMax) {
        return megabytes * kMiB;
    }
    return bad_value(where, text, "is out of range", "1 to 4294967296 MB");
}

Result<MemoryHost> parse_line(const std::string& where, std::string_view line) {
    MemoryHost host;
    host.where = where;
    host.name = take_word(line);
    if (!is_host_name(host.name)) {
        return bad_value(where, host.name, "is no name of a host", kAllowed);
    }
    HANARE_TRY_ASSIGN(host.bytes, parse_megabytes(where, take_word(line)));
    if (const std::string_view more = take_word(line); !more.empty()) {
        return bad_value(where, more, "is too much", kAllowed);
    }
    return host;
}

}  // namespace

Result<std::vector<MemoryHost>> parse_memory_hosts(std::string_view path, std::string_view text) {
    std::vector<MemoryHost> hosts;
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view whole = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(whole.size() + 1, text.size()));
        const std::string_view line = whole.substr(0, whole.find('#'));
        if (line.find_first_not_of(kBlanks) == line.npos) continue;
        const std::string where = std::string(path) + ":" + std::to_string(number);
        HANARE_TRY_ASSIGN(MemoryHost host, parse_line(where, line));
        hosts.push_back(std::move(host));
    }
    if (!hosts.empty()) return hosts;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.150s names no host; allowed is %s",
                std::string(path).c_str(), kAllowed.data());
}

Result<std::vector<MemoryHost>> first_hosts(std::string_view path, std::vector<MemoryHost> hosts,
                                            std::optional<uint32_t> count) {
    if (count && *count > hosts.size()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "-n %u: %.150s names %zu host%s, the computing host among them", *count,
                    std::string(path).c_str(), hosts.size(), hosts.size() == 1 ? "" : "s");
    }
    if (count) hosts.resize(*count);
    return hosts;
}

std::string network_name(const MemoryHost& host) {
    std::string name = host.name.substr(host.name.find('@') + 1);
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    return name;
}

}  // namespace hanare::config
