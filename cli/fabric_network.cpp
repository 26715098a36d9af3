// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_network.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "sys/network_namespace.hpp"
#include "sys/program_file.hpp"
#include "sys/text_file.hpp"
#include "sys/timed_program.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kSourceAddress = "192.0.2.1/24";
constexpr const char* kTargetAddress = "192.0.2.2/24";
constexpr const char* kSourcePlainAddress = "127.77.0.1/24";
constexpr const char* kTargetPlainAddress = "127.77.0.2/24";
// Of a limited link: what may go at once, and how long bytes wait at most.
constexpr const char* kBurst = "1mb";
constexpr const char* kLatency = "50ms";
constexpr int kRunningMs = 10'000;
// Between the two while they join their networks.
constexpr const char* kInNetwork = "in its network";
constexpr const char* kJoined = "joined";
constexpr std::chrono::seconds kPatience{60};

// Users need not have it in their PATH.
Result<std::string> find(const std::string& name) {
    if (const Result<std::string> found = sys::find_program(name)) return *found;
    for (const std::string directory : {"/usr/sbin/", "/sbin/"}) {
        if (access((directory + name).c_str(), X_OK) == 0) return directory + name;
    }
    return fail(HANARE_STATUS_NOT_FOUND, "--network veth: there is no %s; install iproute2",
                name.c_str());
}

Result<std::string> find_ip() { return find("ip"); }

Result<void> run(const std::string& name, std::vector<std::string> arguments) {
    HANARE_TRY_ASSIGN(const std::string program, find(name));
    arguments.insert(arguments.begin(), program);
    HANARE_TRY(sys::time_program_us(arguments));
    return {};
}

Result<void> run_ip(std::vector<std::string> arguments) { return run("ip", std::move(arguments)); }

const char* name_of(NetworkEnd end) {
    return end == NetworkEnd::kSource ? kVethSourceDevice : kVethTargetDevice;
}

Result<void> set_up(const char* end, const char* address) {
    HANARE_TRY(run_ip({"address", "add", address, "dev", end}));
    return run_ip({"link", "set", end, "up"});
}

// Lays the pair between us and the target, which is in its network by now.
Result<void> join_target(pid_t target) {
    const auto laid = run_ip({"link", "add", kVethSourceDevice, "type", "veth", "peer", "name",
                              kVethTargetDevice, "netns", std::to_string(target)});
    if (!laid) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "no link of two networks here: %.150s",
                    laid.error().text);
    }
    return set_up(kVethSourceDevice, kSourceAddress);
}

Result<void> join_source() { return set_up(kVethTargetDevice, kTargetAddress); }

}  // namespace

Result<void> enter_bench_network() {
    HANARE_TRY(find_ip());
    HANARE_TRY(sys::enter_own_network());
    return run_ip({"link", "set", "lo", "up"});
}

Result<void> meet_source() {
    HANARE_TRY(enter_bench_network());
    std::printf("%s\n", kInNetwork);
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line) || line != kJoined) {
        return fail(HANARE_STATUS_PEER_LOST, "the other end has not joined the networks");
    }
    return join_source();
}

Result<void> meet_target(sys::Child& target, WorkerLines& said) {
    std::string line;
    switch (said.next(WorkerLines::Clock::now() + kPatience, line)) {
        case WorkerLines::Next::kLine: break;
        case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
        case WorkerLines::Next::kTooSlow:
            return fail(HANARE_STATUS_INTERNAL, "the other end does not answer");
        case WorkerLines::Next::kClosed:
            return fail(HANARE_STATUS_INTERNAL, "the other end has ended");
    }
    if (line != kInNetwork) {
        return fail(HANARE_STATUS_INTERNAL, "the other end: unknown line %.50s", line.c_str());
    }
    HANARE_TRY(join_target(target.pid()));
    return target.send(std::string(kJoined) + "\n");
}

Result<void> await_link(NetworkEnd end) {
    return sys::await_running_link(name_of(end), kRunningMs);
}

Result<void> open_to_everybody(NetworkEnd end) {
    // Else all of 127/8 is the loopback interface's.
    HANARE_TRY(run_ip({"address", "delete", "127.0.0.1/8", "dev", "lo"}));
    HANARE_TRY(sys::write_text_file(
        std::string("/proc/sys/net/ipv4/conf/") + name_of(end) + "/route_localnet", "1"));
    return run_ip({"address", "add",
                   end == NetworkEnd::kSource ? kSourcePlainAddress : kTargetPlainAddress, "dev",
                   name_of(end)});
}

Result<void> limit_rate(NetworkEnd end, uint32_t mbit_per_s) {
    const auto limited =
        run("tc", {"qdisc", "add", "dev", name_of(end), "root", "tbf", "rate",
                   std::to_string(mbit_per_s) + "mbit", "burst", kBurst, "latency", kLatency});
    if (limited) return {};
    return fail(HANARE_STATUS_NOT_SUPPORTED, "no link of %u Mbit/s here: tc tbf: %.150s",
                mbit_per_s, limited.error().text);
}

}  // namespace hanare::cli
