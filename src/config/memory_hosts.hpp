// SPDX-License-Identifier: Apache-2.0
//
// Host files as DLM has them (DLM 2009, section 2): one `HOST MB` a line, `#` begins a comment.
// The first line is the computing host with the local memory of the program, the others lend
// theirs, and are used in this order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::config {

struct MemoryHost {
    std::string name;  // as ssh knows it: USER@HOST, HOST, an address
    uint64_t bytes = 0;
    std::string where;  // "FILE:LINE", for messages
};

// Never empty.  `path` is named in errors, with the line.
Result<std::vector<MemoryHost>> parse_memory_hosts(std::string_view path, std::string_view text);

// The first `count` of them, all without a number; more than there are is an error.
Result<std::vector<MemoryHost>> first_hosts(std::string_view path, std::vector<MemoryHost> hosts,
                                            std::optional<uint32_t> count);

// What a network knows a host by: without USER@, and without the brackets of an IPv6 address.
std::string network_name(const MemoryHost& host);

}  // namespace hanare::config
