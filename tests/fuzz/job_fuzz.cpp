// SPDX-License-Identifier: Apache-2.0
//
// What a job reads from outside: messages at a rendezvous, lines of PMI-1, values that a launcher
// keeps, lists of nodes, files of hosts.  The first byte says which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "job/environment.hpp"
#include "job/host_file.hpp"
#include "job/message.hpp"
#include "job/node_list.hpp"
#include "job/pieces.hpp"
#include "job/pmi1_connection.hpp"

namespace hanare::job {
namespace {

// What is accepted is written as it came.
void check_messages(std::span<const std::byte> bytes) {
    for (;;) {
        Message message;
        size_t used = 0;
        if (parse(bytes, message, used) != Parsed::kMessage) return;
        HANARE_ASSERT(used <= bytes.size() && message.data.size() <= kMessageDataMax);
        std::vector<std::byte> again;
        append(again, message);
        HANARE_ASSERT(std::ranges::equal(again, bytes.first(used)));
        bytes = bytes.subspan(used);
    }
}

void check_pieces(std::string_view text) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        pieces.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    const auto bytes = join_pieces(pieces);
    if (bytes) HANARE_ASSERT(join_pieces(pieces_of(*bytes, kPieceBytesMin + 1000)) == bytes);
}

void check_lists(std::string_view text) {
    if (const auto nodes = expand_node_list("fuzz", text)) {
        HANARE_ASSERT(!nodes->empty() && nodes->size() <= kNodesMax);
        for (const std::string& node : *nodes) HANARE_ASSERT(!node.empty());
    }
}

void check_hosts(std::string_view text) {
    const auto hosts = parse_host_file("fuzz", text);
    if (!hosts) return;
    for (const Host& host : *hosts) {
        HANARE_ASSERT(!host.name.empty() && host.name[0] != '-' && host.slots > 0);
    }
    const auto placements = place_tasks(*hosts, std::nullopt);
    if (!placements) return;
    uint32_t next = 0;
    for (const Placement& placement : *placements) {
        HANARE_ASSERT(placement.first_rank == next && placement.count > 0);
        next += placement.count;
    }
}

void check_texts(std::string_view text) {
    for (const auto& [name, value] : parse_pmi1_line(text)) HANARE_ASSERT(!name.empty());
    (void)maps_to_one_machine(text);
    if (const auto endpoint = parse_endpoint("fuzz", text)) {
        const auto again = parse_endpoint("fuzz", text_of(*endpoint));
        HANARE_ASSERT(again && again->host == endpoint->host && again->port == endpoint->port);
    }
}

}  // namespace
}  // namespace hanare::job

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    using namespace hanare::job;
    if (bytes == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
    switch (data[0] % 5) {
        case 0: check_messages(std::as_bytes(std::span(text))); break;
        case 1: check_pieces(text); break;
        case 2: check_lists(text); break;
        case 3: check_hosts(text); break;
        default: check_texts(text); break;
    }
    return 0;
}
