// SPDX-License-Identifier: Apache-2.0
//
// Files that name the machines of a job: one `HOST [SLOTS]` a line, `#` begins a comment; and which
// tasks go where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::job {

struct Host {
    std::string name;
    uint32_t slots = 1;  // how many tasks it is for
};
// `path` is named in errors, with the line.
Result<std::vector<Host>> parse_host_file(std::string_view path, std::string_view text);

// Tasks with neighbouring ranks on one host.
struct Placement {
    std::string host;
    uint32_t first_rank = 0;
    uint32_t count = 0;
};
// In the order of the hosts; without a number, as many tasks as there are slots.
Result<std::vector<Placement>> place_tasks(const std::vector<Host>& hosts,
                                           std::optional<uint32_t> tasks);

}  // namespace hanare::job
