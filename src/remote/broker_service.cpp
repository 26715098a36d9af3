// SPDX-License-Identifier: Apache-2.0
#include "remote/broker_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <system_error>
#include <thread>

#include "fabric/tcp_link.hpp"
#include "remote/broker_messages.hpp"
#include "remote/server_connection.hpp"
#include "sys/clock.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/event.hpp"
#include "sys/futex.hpp"
#include "sys/host_address.hpp"
#include "sys/local_socket.hpp"
#include "sys/random.hpp"
#include "sys/signal.hpp"

namespace hanare::remote {
namespace {

constexpr uint32_t kListener = 0;
constexpr uint32_t kEnd = 1;
constexpr uint32_t kFirstLine = 2;
// Of those who have not shown the token, the oldest makes room for another.
constexpr long kStrangersMax = 64;
constexpr uint32_t kYield_us = 1000;

using For = sys::ReadySet::For;

Result<std::string> random_digits(size_t count) {
    std::array<std::byte, kBrokerTokenBytes> bytes;
    HANARE_TRY(sys::fill_random(bytes));
    std::string digits;
    for (size_t i = 0; i < count; ++i) {
        digits += "0123456789abcdef"[static_cast<size_t>(bytes[i]) % 16];
    }
    return digits;
}

// In a time that does not depend on where they differ.
bool are_equal(std::span<const char> one, std::span<const char> other) {
    unsigned differences = one.size() == other.size() ? 0 : 1;
    for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
        differences |= static_cast<unsigned>(one[i] ^ other[i]);
    }
    return differences == 0;
}

}  // namespace

struct BrokerService::State {
    State(const Settings& wanted, sys::EventFd ending) : settings(wanted), end(std::move(ending)) {}

    struct Line {
        sys::FileDescriptor socket;
        bool is_known = false;  // has the token
    };

    void serve();
    void accept();
    void add(Line line);
    void limit_strangers();
    void end_line(uint32_t number);
    void hear(uint32_t number);
    bool answer(int line, const BrokerQuestion& question);
    Result<fabric::TcpLink::Connected> connect(const BrokerQuestion& question);
    Result<fabric::TcpLink::Connected> try_to_connect(const BrokerQuestion& question) const;

    const Settings settings;
    std::string token;
    std::string place;
    sys::FileDescriptor listener;
    sys::EventFd end;
    sys::ReadySet ready;
    std::map<uint32_t, Line> lines;  // by age
    // Servers that could not be connected to, by host and port: until then they are not tried.
    struct Failure {
        uint64_t end_ns = 0;
        Error error;
    };
    std::map<std::pair<std::string, uint16_t>, Failure> failures;
    uint32_t next_line = kFirstLine;
    std::thread thread;
};

Result<std::unique_ptr<BrokerService>> BrokerService::open(const Settings& settings) {
    HANARE_TRY_ASSIGN(sys::EventFd end, sys::EventFd::open());
    auto state = std::make_unique<State>(settings, std::move(end));
    HANARE_TRY_ASSIGN(state->token, random_digits(kBrokerTokenBytes));
    HANARE_TRY_ASSIGN(const std::string name, random_digits(kBrokerTokenBytes));
    const std::string address = "@hanare-broker-" + name;
    HANARE_TRY_ASSIGN(state->listener, sys::listen_local(address));
    HANARE_TRY_ASSIGN(state->ready, sys::ReadySet::open());
    int error = state->ready.add(state->listener.number(), kListener, For::kReading);
    if (error == 0) error = state->ready.add(state->end.number(), kEnd, For::kReading);
    if (error != 0) return fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for programs");
    state->place = address + " " + std::to_string(geteuid()) + " " + state->token;
    return std::unique_ptr<BrokerService>(new BrokerService(std::move(state)));
}

BrokerService::BrokerService(std::unique_ptr<State> state) : state_(std::move(state)) {}

BrokerService::~BrokerService() {
    state_->end.post();
    if (state_->thread.joinable()) state_->thread.join();
}

const std::string& BrokerService::place() const noexcept { return state_->place; }

Result<void> BrokerService::start() {
    const sys::SignalBlock inherited_by_the_thread;
    try {
        state_->thread = std::thread([this] { state_->serve(); });
    } catch (const std::system_error& error) {
        return fail_errno(HANARE_STATUS_SYSTEM, error.code().value(), "cannot start a thread");
    }
    return {};
}

void BrokerService::State::serve() {
    for (;;) {
        const int64_t number = ready.next();
        if (number == kEnd) return;
        if (number < 0) {
            sys::wait_until_readable(ready.number(), -1, -1);
        } else if (number == kListener) {
            accept();
        } else {
            hear(static_cast<uint32_t>(number));
        }
    }
}

void BrokerService::State::accept() {
    limit_strangers();
    sys::FileDescriptor socket = sys::accept_local(listener, sys::LocalPeers::kAnyUser);
    if (socket.is_open()) return add({.socket = std::move(socket)});
    // No descriptor is left, perhaps: one who waits would show for ever.
    sys::yield_for_us(kYield_us);
}

void BrokerService::State::add(Line line) {
    const uint32_t number = next_line++;
    if (ready.add(line.socket.number(), number, For::kReading) == 0) {
        lines[number] = std::move(line);
    }
}

void BrokerService::State::limit_strangers() {
    const auto is_stranger = [](const auto& each) { return !each.second.is_known; };
    if (std::ranges::count_if(lines, is_stranger) < kStrangersMax) return;
    end_line(std::ranges::find_if(lines, is_stranger)->first);
}

void BrokerService::State::end_line(uint32_t number) {
    ready.remove(lines[number].socket.number());
    lines.erase(number);
}

// A question comes as a whole or not at all.
void BrokerService::State::hear(uint32_t number) {
    const auto line = lines.find(number);
    if (line == lines.end()) return;
    BrokerQuestion question;
    const ptrdiff_t got = sys::receive_message(line->second.socket.number(),
                                               std::as_writable_bytes(std::span(&question, 1)));
    if (got == -EAGAIN) return;
    const bool is_good = got == sizeof question && question.version == kBrokerVersion &&
                         are_equal(question.token, token) && question.host.back() == '\0';
    line->second.is_known = is_good;
    // Who has given up needs no connection, and others wait.
    const bool is_wanted = is_good && !sys::is_abandoned(line->second.socket);
    if (!is_wanted || !answer(line->second.socket.number(), question)) end_line(number);
}

// All programs wait while a server is tried.  One that does not answer holds them up once: who asks
// for it next is refused at once, for as long as that has taken, so that the others have at least
// half of the time, and one that is well again is not refused for longer.
Result<fabric::TcpLink::Connected> BrokerService::State::connect(const BrokerQuestion& question) {
    const std::pair server(std::string(question.host.data()), question.port);
    const uint64_t begin_ns = sys::now_ns();
    std::erase_if(failures, [&](const auto& each) { return each.second.end_ns <= begin_ns; });
    if (const auto failure = failures.find(server); failure != failures.end()) {
        return std::unexpected(failure->second.error);
    }
    auto connected = try_to_connect(question);
    if (!connected) {
        const uint64_t now_ns = sys::now_ns();
        failures[server] = {.end_ns = now_ns + (now_ns - begin_ns), .error = connected.error()};
    }
    return connected;
}

Result<fabric::TcpLink::Connected> BrokerService::State::try_to_connect(
    const BrokerQuestion& question) const {
    HANARE_TRY_ASSIGN(const std::string host, sys::look_up_host(question.host.data()));
    return connect_to_server({.host = host,
                              .port = question.port,
                              .secret = settings.secret,
                              .timeout_ms = settings.timeout_ms});
}

// False: the line is of no more use.
bool BrokerService::State::answer(int line, const BrokerQuestion& question) {
    auto connected = connect(question);
    std::array<sys::FileDescriptor, 2> pair;
    if (connected && question.wants_line != 0) {
        if (auto made = sys::local_pair(); made) {
            pair = std::move(*made);
        } else {
            connected = std::unexpected(made.error());
        }
    }
    BrokerAnswer reply;
    std::array<int, 2> passed = {-1, -1};
    if (connected) {
        passed = {connected->socket.number(), pair[0].number()};
        reply.is_sealed = connected->keys ? 1 : 0;
        if (connected->keys) reply.keys = *connected->keys;
        reply.leaves_data = connected->protection == fabric::Protection::kSealedButData ? 1 : 0;
    } else {
        reply.status = connected.error().status;
        std::snprintf(reply.text.data(), reply.text.size(), "%s", connected.error().text);
    }
    const size_t count = !connected ? 0 : pair[0].is_open() ? 2 : 1;
    const int error = sys::send_message(line, std::as_bytes(std::span(&reply, 1)),
                                        std::span(passed).first(count));
    if (error == 0 && pair[1].is_open()) add({.socket = std::move(pair[1]), .is_known = true});
    return error == 0;
}

}  // namespace hanare::remote
