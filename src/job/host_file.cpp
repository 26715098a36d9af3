// SPDX-License-Identifier: Apache-2.0
#include "job/host_file.hpp"

#include <algorithm>

#include "config/rules.hpp"
#include "job/environment.hpp"
#include "job/job.hpp"

namespace hanare::job {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr size_t kNameBytesMax = 255;

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
    return name.size() <= kNameBytesMax && !name.starts_with('-') &&
           std::ranges::all_of(name, is_allowed);
}

Result<Host> parse_line(const std::string& where, std::string_view line) {
    Host host;
    host.name = take_word(line);
    if (!is_host_name(host.name)) {
        return config::bad_value(where, host.name, "is no name of a host",
                                 "HOST [SLOTS], one a line");
    }
    if (const std::string_view slots = take_word(line); !slots.empty()) {
        HANARE_TRY_ASSIGN(host.slots, parse_number(where + ", slots", slots, 1, Job::kTasksMax));
    }
    if (const std::string_view more = take_word(line); !more.empty()) {
        return config::bad_value(where, more, "is too much", "HOST [SLOTS], one a line");
    }
    return host;
}

}  // namespace

Result<std::vector<Host>> parse_host_file(std::string_view path, std::string_view text) {
    std::vector<Host> hosts;
    for (size_t number = 1; !text.empty(); ++number) {
        const std::string_view whole = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(whole.size() + 1, text.size()));
        const std::string_view line = whole.substr(0, whole.find('#'));
        if (line.find_first_not_of(kBlanks) == line.npos) continue;
        const std::string where = std::string(path) + ":" + std::to_string(number);
        HANARE_TRY_ASSIGN(Host host, parse_line(where, line));
        hosts.push_back(std::move(host));
    }
    if (!hosts.empty()) return hosts;
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "%.150s names no host; allowed is HOST [SLOTS], "
                "one a line",
                std::string(path).c_str());
}

Result<std::vector<Placement>> place_tasks(const std::vector<Host>& hosts,
                                           std::optional<uint32_t> tasks) {
    uint64_t slots = 0;
    for (const Host& host : hosts) slots += host.slots;
    const uint64_t wanted = tasks.value_or(
        static_cast<uint32_t>(std::min<uint64_t>(slots, uint64_t{Job::kTasksMax} + 1)));
    if (wanted > slots || wanted > Job::kTasksMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%llu tasks: the hosts have %llu slots, and a job at most %u tasks",
                    static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(slots),
                    Job::kTasksMax);
    }
    std::vector<Placement> placements;
    uint32_t next = 0;
    for (const Host& host : hosts) {
        const uint32_t count = std::min(host.slots, static_cast<uint32_t>(wanted) - next);
        if (count == 0) break;
        placements.push_back({host.name, next, count});
        next += count;
    }
    return placements;
}

}  // namespace hanare::job
