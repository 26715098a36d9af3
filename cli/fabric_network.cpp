// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_network.hpp"

#include <string>
#include <vector>

#include <unistd.h>

#include "sys/network_namespace.hpp"
#include "sys/program_file.hpp"
#include "sys/timed_program.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kSourceEnd = "hanare0";
constexpr const char* kTargetEnd = "hanare1";
constexpr const char* kSourceAddress = "192.0.2.1/24";
constexpr const char* kTargetAddress = "192.0.2.2/24";

// Users need not have it in their PATH.
Result<std::string> find_ip() {
    if (const Result<std::string> found = sys::find_program("ip")) return *found;
    for (const char* const path : {"/usr/sbin/ip", "/sbin/ip"}) {
        if (access(path, X_OK) == 0) return path;
    }
    return fail(HANARE_STATUS_NOT_FOUND, "--network veth: there is no ip; install iproute2");
}

Result<void> run_ip(std::vector<std::string> arguments) {
    HANARE_TRY_ASSIGN(const std::string ip, find_ip());
    arguments.insert(arguments.begin(), ip);
    HANARE_TRY(sys::time_program_us(arguments));
    return {};
}

Result<void> set_up(const char* end, const char* address) {
    HANARE_TRY(run_ip({"address", "add", address, "dev", end}));
    return run_ip({"link", "set", end, "up"});
}

}  // namespace

Result<void> enter_bench_network() {
    HANARE_TRY(find_ip());
    HANARE_TRY(sys::enter_own_network());
    return run_ip({"link", "set", "lo", "up"});
}

Result<void> join_target(pid_t target) {
    HANARE_TRY(run_ip({"link", "add", kSourceEnd, "type", "veth", "peer", "name", kTargetEnd,
                       "netns", std::to_string(target)}));
    return set_up(kSourceEnd, kSourceAddress);
}

Result<void> join_source() { return set_up(kTargetEnd, kTargetAddress); }

}  // namespace hanare::cli
