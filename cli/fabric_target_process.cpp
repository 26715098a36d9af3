// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_target_process.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>

#include "bench/fabric_case.hpp"
#include "bench/table.hpp"
#include "cli/fabric_network.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kLoopbackHost = "127.0.0.1";

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

Result<void> do_as_told(const bench::FabricTarget& target, const std::string& line) {
    uint32_t state = 0;
    uint32_t caller = 0;
    if (std::sscanf(line.c_str(), "signals %u %u", &state, &caller) != 2) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "target: unknown line %.50s", line.c_str());
    }
    auto& words =
        *reinterpret_cast<bench::SignalWords*>(target.memory() + bench::kFabricSignalWords);
    return bench::be_signalled(target.regions(), words, static_cast<bench::TargetState>(state),
                               static_cast<bench::Caller>(caller), say);
}

// The address at which the target listens.
Result<std::string> enter_network(const std::string& network) {
    if (network != kVeth) return kLoopbackHost;
    HANARE_TRY(meet_source());
    HANARE_TRY(await_link(NetworkEnd::kTarget));
    return kVethTargetHost;
}

}  // namespace

Result<FabricTargetProcess> FabricTargetProcess::start(const std::string& network,
                                                       const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start({"hanare", "bench", "fabric", "--target",
                                                           "--network", network},
                                                          sys::Child::Input::kFromUs));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    FabricTargetProcess target(std::move(child), std::move(lines));
    if (network == kVeth) HANARE_TRY(meet_target(target.child_, target.lines_));
    return target;
}

Result<std::string> FabricTargetProcess::next_line() {
    std::string line;
    switch (lines_.next(WorkerLines::Clock::now() + kPatience, line)) {
        case WorkerLines::Next::kLine: return line;
        case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
        case WorkerLines::Next::kTooSlow:
            return fail(HANARE_STATUS_INTERNAL, "the target does not answer");
        case WorkerLines::Next::kClosed: break;
    }
    return fail(HANARE_STATUS_INTERNAL, "the target has ended");
}

Result<void> FabricTargetProcess::tell(const std::string& what) { return child_.send(what + "\n"); }

Result<void> FabricTargetProcess::begin_signals(bench::TargetState state, bench::Caller caller) {
    return tell(bench::format("signals %u %u", static_cast<uint32_t>(state),
                              static_cast<uint32_t>(caller)));
}

Result<void> serve_as_fabric_target(const std::string& network) {
    HANARE_TRY_ASSIGN(const std::string host, enter_network(network));
    sys::stay_on_last_cpu();
    HANARE_TRY_ASSIGN(const auto target, bench::FabricTarget::open(host));
    say(target->address());
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "raw") {
            HANARE_TRY(target->serve_raw());
        } else {
            HANARE_TRY(do_as_told(*target, line));
        }
        say("done");
    }
    return {};
}

}  // namespace hanare::cli
