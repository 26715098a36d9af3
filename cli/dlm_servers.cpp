// SPDX-License-Identifier: Apache-2.0
#include "cli/dlm_servers.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.hpp"
#include "bench/room.hpp"
#include "cli/fabric_network.hpp"
#include "cli/remote_far.hpp"
#include "cli/worker_lines.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{150};  // some steps of which each has its own
// What the keeper of a link says.
constexpr const char* kUrl = "url";
constexpr const char* kStatus = "status";
constexpr const char* kText = "text";

uint32_t rate_mbit(const std::string& store) { return store == kDlmServer10g ? 10'000 : 1'000; }

// What a server offers is taken as it is lent: three may be there, of which none has all of it when
// the next one asks what is left.
Result<uint64_t> offered_bytes() {
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room("/"));
    return round_down(room.usable_memory_bytes() / 4, kMiB);
}

Result<RemoteFarProcess> start_far(const std::string& store, const sys::Interrupt& interrupt) {
    HANARE_TRY(enter_bench_network());
    HANARE_TRY_ASSIGN(const uint64_t bytes, offered_bytes());
    return RemoteFarProcess::start({.network = kVeth,
                                    .rate_mbit = rate_mbit(store),
                                    .servers = {bytes},
                                    .sealed_bytes = 0,
                                    .raw_bytes = 0},
                                   interrupt);
}

}  // namespace

Result<DlmServers::Place> DlmServers::place_of(const std::string& store) {
    if (store == kDlmServer) return over_loopback();
    auto found = links_.find(store);
    if (found == links_.end()) found = links_.emplace(store, lay_link(store)).first;
    const Result<Link>& link = found->second;
    if (!link) return std::unexpected(link.error());
    if (!link->near.has_ended()) return Place{link->url, link->near.pid()};
    return fail(HANARE_STATUS_PEER_LOST, "%s: who kept the link has ended", store.c_str());
}

Result<DlmServers::Place> DlmServers::over_loopback() {
    if (!server_) {
        HANARE_TRY_ASSIGN(const uint64_t bytes, offered_bytes());
        HANARE_TRY_ASSIGN(server_,
                          ServerProcess::start("127.0.0.1", bytes, std::nullopt, interrupt_));
    }
    return Place{server_->url()};
}

Result<DlmServers::Link> DlmServers::lay_link(const std::string& store) const {
    HANARE_TRY_ASSIGN(
        sys::Child near,
        sys::Child::start({"hanare", "bench", "dlm", "--link", store}, sys::Child::Input::kFromUs));
    WorkerLines lines(near.output_fd(), interrupt_.fd());
    std::string line;
    if (lines.next(WorkerLines::Clock::now() + kPatience, line) != WorkerLines::Next::kLine) {
        return fail(HANARE_STATUS_INTERNAL, "%s: nobody answers at the other end of the link",
                    store.c_str());
    }
    const auto said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) return fail(HANARE_STATUS_INTERNAL, "link: %.100s", line.c_str());
    if (said.contains(kUrl)) return Link{std::move(near), said[kUrl].get<std::string>()};
    return fail(static_cast<hanare_status>(said.value(kStatus, 0)), "%s",
                said.value(kText, "").c_str());
}

Result<void> keep_dlm_link(const std::string& store, const sys::Interrupt& interrupt) {
    if (store != kDlmServer10g && store != kDlmServer1g) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--link: only the bench itself may use it");
    }
    const Result<RemoteFarProcess> far = start_far(store, interrupt);
    nlohmann::json said;
    if (far) {
        said = {{kUrl, far->far().servers.front().url}};
    } else {
        said = {{kStatus, static_cast<int>(far.error().status)}, {kText, far.error().text}};
    }
    std::printf("%s\n", said.dump().c_str());
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
    }
    return {};
}

}  // namespace hanare::cli
