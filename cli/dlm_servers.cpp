// SPDX-License-Identifier: Apache-2.0
#include "cli/dlm_servers.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "bench/room.hpp"
#include "cli/fabric_network.hpp"

namespace hanare::cli {
namespace {

struct Link {
    const char* store;
    uint32_t rate_mbit;
};
constexpr Link kLinks[] = {{kDlmStores[2], 10'000}, {kDlmStores[3], 1'000}};

const Link* find_link(const std::string& store) {
    const auto* const found =
        std::ranges::find_if(kLinks, [&](const Link& link) { return store == link.store; });
    return found == std::end(kLinks) ? nullptr : found;
}

// What a server offers is taken as it is lent.
Result<uint64_t> offered_bytes() {
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room("/"));
    return round_down(room.usable_memory_bytes() / 2, kMiB);
}

}  // namespace

Result<DlmServers> DlmServers::open(const std::vector<std::string>& stores,
                                    const sys::Interrupt& interrupt) {
    DlmServers servers(interrupt);
    const auto is_linked = [](const std::string& store) { return find_link(store) != nullptr; };
    if (std::ranges::any_of(stores, is_linked)) {
        const Result<void> entered = enter_bench_network();
        if (!entered) servers.no_network_ = entered.error();
    }
    if (std::ranges::count(stores, kDlmServer) == 0) return servers;
    HANARE_TRY_ASSIGN(const uint64_t bytes, offered_bytes());
    HANARE_TRY_ASSIGN(servers.server_,
                      ServerProcess::start("127.0.0.1", bytes, std::nullopt, interrupt));
    return servers;
}

Result<std::string> DlmServers::url_of(const std::string& store) {
    if (store == kDlmServer) return server_->url();
    if (no_network_) return std::unexpected(*no_network_);
    if (store != linked_) HANARE_TRY(lay_link(store));
    return far_->far().servers.front().url;
}

Result<void> DlmServers::lay_link(const std::string& store) {
    // With its end the pair goes, too, but nobody knows when.
    if (far_) HANARE_TRY(leave_target());
    far_.reset();
    linked_.clear();
    HANARE_TRY_ASSIGN(const uint64_t bytes, offered_bytes());
    const RemoteFarJob job = {.network = kVeth,
                              .rate_mbit = find_link(store)->rate_mbit,
                              .servers = {bytes},
                              .sealed_bytes = 0,
                              .raw_bytes = 0};
    HANARE_TRY_ASSIGN(far_, RemoteFarProcess::start(job, *interrupt_));
    linked_ = store;
    return {};
}

}  // namespace hanare::cli
