// SPDX-License-Identifier: Apache-2.0
//
// Peers whose machine or network is gone, and who therefore do not even say that they end: between
// two networks of their own, joined by a cable (veth) that is pulled.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/network_namespace.hpp"
#include "sys/test_support.hpp"

namespace hanare::fabric {
namespace {

constexpr char kHere[] = "10.77.0.1";
constexpr char kThere[] = "10.77.0.2";
constexpr size_t kBytes = 4 << 20;
constexpr uint64_t kPatience_ns = 25'000 * kNsPerMs;
const std::string kNotAllowed = "not allowed: ";

struct Address {
    uint16_t port = 0;
    pid_t process = 0;
    Capability capability;
};

template <typename Value>
Value receive(int from) {
    Value value = {};
    if (read(from, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) _exit(1);
    return value;
}
template <typename Value>
void send(int to, const Value& value) {
    if (write(to, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) _exit(1);
}

bool has_run(const std::string& command) {
    return std::system((command + " 2>/dev/null").c_str()) == 0;
}

bool open_interface(const std::string& name, const std::string& address) {
    return has_run("ip address add " + address + "/24 dev " + name) &&
           has_run("ip link set " + name + " up");
}

struct Served {
    std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
    ExposedRegions regions;
    Capability all =
        regions.capability(regions.expose(memory, kRead | kWrite).value(), kRead | kWrite).value();
};

std::unique_ptr<TcpService> open_service(const char* host, const Secret& secret, Served& served) {
    return TcpService::open({.host = host, .secret = secret}, served.regions).value();
}

std::unique_ptr<TcpLink> connect_to(const char* host, const Secret& secret, const Address& at) {
    auto link =
        TcpLink::connect({.host = host, .port = at.port, .secret = secret, .timeout_ms = 5000})
            .value();
    std::vector<std::byte> seen(1);
    if (run(*link, Get(at.capability, 0, seen)) != HANARE_STATUS_OK) _exit(1);
    return link;
}

[[noreturn]] void serve_there(int out, const Secret& secret) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Served served;
    const auto service = open_service(kThere, secret, served);
    send(out, Address{service->port(), getpid(), served.all});
    service->run();
    _exit(0);
}

// The other machine: a service, and a source that uses the one here.
[[noreturn]] void be_there(int in, int out, const Secret& secret) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!sys::enter_own_network()) _exit(1);
    send(out, 'n');
    receive<char>(in);
    if (!open_interface("hanare1", kThere)) _exit(1);
    if (fork() == 0) serve_there(out, secret);
    const auto here = receive<Address>(in);
    const auto idle = connect_to(kHere, secret, here);
    const auto greedy = connect_to(kHere, secret, here);
    std::vector<std::byte> room(kBytes);
    Get never_taken(here.capability, 0, room);
    greedy->post(never_taken);
    send(out, 'r');
    receive<char>(in);
    const bool is_pulled = has_run("ip link set hanare1 down");
    send(out, is_pulled ? 'd' : 'x');
    for (;;) pause();
}

// Connections that this network has to or from the port, and of these who waits to send.
struct Connections {
    int all = 0;
    int unsent = 0;
};
Connections connections_of(uint16_t port) {
    std::ifstream lines("/proc/self/net/tcp");
    std::string line;
    Connections found;
    char wanted[8];
    std::snprintf(wanted, sizeof wanted, ":%04X", port);
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues;
        words >> number >> local >> remote >> state >> queues;
        if (state != "01" || (!local.ends_with(wanted) && !remote.ends_with(wanted))) continue;
        ++found.all;
        if (!queues.starts_with("00000000:")) ++found.unsent;
    }
    return found;
}

template <typename Condition>
bool becomes_true(Condition&& condition) {
    const uint64_t end_ns = sys::now_ns() + kPatience_ns;
    while (!condition()) {
        if (sys::now_ns() > end_ns) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

// Operations on a service there, and connections of a source there, of all kinds.
std::string pull_the_cable(int in, int out, const Secret& secret) {
    const auto there = receive<Address>(in);
    Served served;
    const auto service = open_service(kHere, secret, served);
    std::jthread serving([&] { service->run(); });
    const uint16_t port = service->port();
    const auto answered = connect_to(kThere, secret, there);
    const auto asked = connect_to(kThere, secret, there);
    const auto full = connect_to(kThere, secret, there);
    send(out, Address{port, getpid(), served.all});
    receive<char>(in);

    kill(there.process, SIGSTOP);
    std::vector<std::byte> data(kBytes);
    std::vector<std::byte> seen(2);
    Get waits_for_answer(there.capability, 0, std::span(seen).first(1));
    Get not_acknowledged(there.capability, 0, std::span(seen).last(1));
    Put without_room(there.capability, 0, data);
    const uint64_t deadline_ns = sys::now_ns() + kPatience_ns;
    for (Call* each : {static_cast<Call*>(&waits_for_answer), static_cast<Call*>(&not_acknowledged),
                       static_cast<Call*>(&without_room)}) {
        each->deadline_ns = deadline_ns;
    }
    answered->post(waits_for_answer);
    full->post(without_room);
    std::string wrong;
    if (!becomes_true([&] { return connections_of(there.port).unsent == 1; }) ||
        !becomes_true([&] { return connections_of(port).unsent == 1; })) {
        wrong += "what was to wait does not; ";
    }
    send(out, 'p');
    if (receive<char>(in) != 'd') wrong += "the cable could not be pulled; ";
    asked->post(not_acknowledged);
    {
        hanare_status statuses[3] = {};
        std::jthread first([&] { statuses[0] = answered->wait(waits_for_answer); });
        std::jthread second([&] { statuses[1] = asked->wait(not_acknowledged); });
        // Who does not wait but looks now and then learns of it, too.
        becomes_true([&] { return full->test(without_room); });
        statuses[2] = without_room.status();
        first.join();
        second.join();
        for (const hanare_status status : statuses) {
            if (status != HANARE_STATUS_PEER_LOST) {
                wrong += std::string("an operation: ") + hanare_status_text(status) + "; ";
            }
        }
    }
    if (!becomes_true([&] { return connections_of(port).all == 0; })) {
        wrong += "the service still has connections; ";
    }
    service->stop();
    return wrong;
}

std::string join_networks_and_pull() {
    if (!has_run("ip -V >/dev/null")) return kNotAllowed + "there is no `ip` (iproute2)";
    if (const auto entered = sys::enter_own_network(); !entered) {
        return kNotAllowed + entered.error().text;
    }
    const Secret secret = Secret::make().value();
    int to_there[2];
    int from_there[2];
    if (pipe(to_there) != 0 || pipe(from_there) != 0) return "pipe failed";
    const pid_t child = fork();
    if (child == 0) {
        close(to_there[1]);
        close(from_there[0]);
        be_there(to_there[0], from_there[1], secret);
    }
    // So that the child's end shows.
    close(to_there[0]);
    close(from_there[1]);
    receive<char>(from_there[0]);
    std::string wrong;
    if (!has_run("ip link add hanare0 type veth peer name hanare1 netns " +
                 std::to_string(child)) ||
        !open_interface("hanare0", kHere)) {
        wrong = kNotAllowed + "networks cannot be joined (veth)";
    } else {
        send(to_there[1], 'c');
        wrong = pull_the_cable(from_there[0], to_there[1], secret);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return wrong;
}

TEST(SilentPeer, IsLost) {
    const std::string wrong = sys::testing::run_in_child(join_networks_and_pull);
    if (wrong.starts_with(kNotAllowed)) GTEST_SKIP() << wrong;
    EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hanare::fabric
