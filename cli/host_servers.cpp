// SPDX-License-Identifier: Apache-2.0
#include "cli/host_servers.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "cli/remote_shell.hpp"
#include "cli/run_environment.hpp"
#include "cli/server_secret.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "fabric/secret.hpp"
#include "job/deadline.hpp"
#include "job/wipe.hpp"
#include "lease/messages.hpp"
#include "sys/child.hpp"
#include "sys/host_address.hpp"
#include "sys/program_file.hpp"
#include "sys/sealed_memory.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::cli {
namespace {

// A login may ask for a password.
constexpr int kStart_ms = 60'000;
constexpr int kEnd_ms = 5000;
// As many as a store has members (config/store_spec.hpp).
constexpr size_t kServersMax = 64;
// What `hanare server` says once it can be used.
constexpr std::string_view kReady = "hanare server: tcp://";

std::string in_message(const config::MemoryHost& host) { return host.where + ": " + host.name; }

// Where the program reaches it.
Result<std::string> address_of(const config::MemoryHost& host) {
    auto address = sys::look_up_host(config::network_name(host));
    if (address) return address;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.150s: %.100s", in_message(host).c_str(),
                address.error().text);
}

// At all of its addresses: which of them leads to us is not for us to know.
std::string listen_flag(const std::string& address) {
    const bool is_version_6 = address.find(':') != address.npos;
    if (sys::is_loopback(address)) return config::host_and_port({address, 0});
    return is_version_6 ? "[::]:0" : "0.0.0.0:0";
}

std::string spec_of(const std::vector<config::ServerAddress>& servers) {
    std::vector<std::string> specs;
    for (const auto& server : servers) specs.push_back(config::server_url(server));
    return config::tier_spec(specs);
}

// The port in "hanare server: tcp://HOST:PORT offers SIZE"; 0: that is no such line.
uint16_t port_in(const std::string& line) {
    if (!line.starts_with(kReady)) return 0;
    const std::string url = line.substr(line.find("tcp://"));
    const auto address = config::parse_server_address(url.substr(0, url.find(' ')));
    return address ? address->port : 0;
}

Result<sys::HelperProgram> start_one(const HostServersPlan& plan, const config::MemoryHost& host,
                                     const fabric::Secret& secret) {
    HANARE_TRY_ASSIGN(const std::string address, address_of(host));
    const std::string words[] = {plan.program,
                                 "server",
                                 "--attached",
                                 "--memory",
                                 config::exact_size(host.bytes),
                                 "--listen",
                                 listen_flag(address)};
    sys::HelperProgram::Launch launch;
    HANARE_TRY_ASSIGN(launch.path, sys::find_program(plan.rsh.front()));
    launch.arguments = plan.rsh;
    launch.arguments.insert(launch.arguments.end(), {host.name, shell_command(words)});
    launch.environment = plain_environment();
    launch.ignores_file_size_signal = plan.ignores_file_size_signal;
    const sys::ProgramFile file = sys::inspect_program(launch.path);
    launch.is_text = !file.is_script && !file.is_binary;
    std::string line = secret_line(secret);
    const job::WipeAtEnd wiping(line);
    launch.input = std::as_bytes(std::span(line));
    return sys::HelperProgram::start(launch);
}

// Shells may say something before.
Result<uint16_t> port_of(sys::HelperProgram& program, const job::Deadline& deadline) {
    for (;;) {
        HANARE_TRY_ASSIGN(const std::string line, program.read_line(deadline.left_ms()));
        if (const uint16_t port = port_in(line); port != 0) return port;
    }
}

// What it had to say about that is on standard error.
std::unexpected<Error> failed(const HostServersPlan& plan, const config::MemoryHost& host,
                              sys::HelperProgram& program, const Error& error) {
    std::string why = "no server is ready there after " + std::to_string(kStart_ms / 1000) + " s";
    if (error.status == HANARE_STATUS_NOT_FOUND) {
        why = plan.rsh.front() + " ended with " + sys::describe_wait_status(program.end(kEnd_ms)) +
              " before a server was ready there";
    }
    return fail(HANARE_STATUS_STORE_UNAVAILABLE, "%.120s: %.120s", in_message(host).c_str(),
                why.c_str());
}

}  // namespace

Result<void> HostServers::check(const HostServersPlan& plan) {
    for (const config::MemoryHost& host : plan.hosts) {
        if (host.bytes < lease::kExtentAlignmentBytes) {
            return config::bad_value(host.where, std::to_string(host.bytes / kMiB),
                                     "is too little for a server", "4 MB and more");
        }
        HANARE_TRY(address_of(host));
    }
    HANARE_TRY(sys::find_program(plan.rsh.front()));
    if (plan.hosts.size() <= kServersMax) return {};
    return fail(HANARE_STATUS_NOT_SUPPORTED, "-n %zu is %zu servers; a program can use %zu",
                plan.hosts.size() + 1, plan.hosts.size(), kServersMax);
}

Result<HostServers> HostServers::start(const HostServersPlan& plan) {
    HANARE_TRY_ASSIGN(const fabric::Secret secret, fabric::Secret::make());
    HostServers servers;
    HANARE_TRY_ASSIGN(servers.secret_, sys::sealed_memory_holding(secret.bytes()));
    for (const config::MemoryHost& host : plan.hosts) {
        HANARE_TRY_ASSIGN(sys::HelperProgram program, start_one(plan, host, secret));
        servers.programs_.push_back(std::move(program));
    }
    const job::Deadline deadline(kStart_ms);
    std::vector<config::ServerAddress> addresses;
    for (size_t i = 0; i < plan.hosts.size(); ++i) {
        const auto port = port_of(servers.programs_[i], deadline);
        if (!port) return failed(plan, plan.hosts[i], servers.programs_[i], port.error());
        HANARE_TRY_ASSIGN(std::string address, address_of(plan.hosts[i]));
        addresses.push_back({std::move(address), *port});
    }
    servers.store_ = spec_of(addresses);
    return servers;
}

std::string HostServers::secret_file() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(secret_.number());
}

void HostServers::end() noexcept {
    for (sys::HelperProgram& program : programs_) program.dismiss();
    const job::Deadline deadline(kEnd_ms);
    for (sys::HelperProgram& program : programs_) program.end(deadline.left_ms());
    programs_.clear();
}

}  // namespace hanare::cli
