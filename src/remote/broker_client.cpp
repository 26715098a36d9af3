// SPDX-License-Identifier: Apache-2.0
#include "remote/broker_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "sys/clock.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/event.hpp"
#include "sys/local_socket.hpp"

namespace hanare::remote {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// Other processes of the program may be served before, each with a connection to be made; a server
// that does not answer holds them up once (BrokerService).
constexpr int kTimeouts = 4;

std::unexpected<Error> broker_gone(int error) {
    return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                      "`hanare run`, which makes connections to memory servers, does not answer");
}

}  // namespace

Result<std::unique_ptr<BrokerClient>> BrokerClient::open(const std::string& place,
                                                         const config::ServerAddress& server,
                                                         int timeout_ms, bool seals) {
    const size_t user_at = place.find(' ');
    const size_t token_at = place.find(' ', user_at + 1);
    BrokerQuestion question;
    if (user_at == place.npos || token_at == place.npos ||
        place.size() - token_at - 1 != question.token.size() ||
        server.host.size() >= question.host.size()) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                    "nobody makes connections to memory servers: not below `hanare run`");
    }
    place.copy(question.token.data(), question.token.size(), token_at + 1);
    server.host.copy(question.host.data(), server.host.size());
    question.port = server.port;
    const auto user = static_cast<uid_t>(std::strtoul(place.c_str() + user_at + 1, nullptr, 10));
    std::unique_ptr<BrokerClient> client(
        new BrokerClient(place.substr(0, user_at), user, question, timeout_ms, seals));
    HANARE_TRY(client->open_line());
    return client;
}

Result<void> BrokerClient::open_line() {
    auto line = sys::connect_local(address_, user_);
    if (!line) {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "`hanare run` is not to be reached: %s",
                    line.error().text);
    }
    line_ = std::move(*line);
    return {};
}

Result<std::unique_ptr<fabric::TcpLink>> BrokerClient::connect(uint32_t spin_us) {
    HANARE_TRY_ASSIGN(auto connected, ask(false));
    return fabric::TcpLink::over(std::move(connected), spin_us);
}

// A child has one thread, and does not know on how many processors it will be.
Result<std::unique_ptr<fabric::TcpLink>> BrokerClient::connect_for_child() {
    HANARE_TRY_ASSIGN(auto connected, ask(true));
    return fabric::TcpLink::over(std::move(connected), 0);
}

void BrokerClient::become_child() noexcept {
    line_.close();
    line_ = sys::FileDescriptor(childs_line_.release());
}

// An answer that comes too late would be taken for the next: the line ends with it, and the next
// question has another.
Result<fabric::TcpLink::Connected> BrokerClient::ask(bool wants_line) {
    if (!line_.is_open()) HANARE_TRY(open_line());
    question_.wants_line = wants_line ? 1 : 0;
    if (const int error =
            sys::send_message(line_.number(), std::as_bytes(std::span(&question_, 1)));
        error != 0) {
        return broker_gone(error);
    }
    const uint64_t end_ns =
        sys::now_ns() + uint64_t{kTimeouts} * static_cast<uint64_t>(timeout_ms_) * kNsPerMs;
    BrokerAnswer answer;
    std::array<sys::FileDescriptor, 2> files;
    ptrdiff_t got = -EAGAIN;
    for (uint64_t now = sys::now_ns(); got == -EAGAIN && now < end_ns; now = sys::now_ns()) {
        sys::wait_until_readable(line_.number(), -1,
                                 static_cast<int>((end_ns - now) / kNsPerMs) + 1);
        got = sys::receive_message(line_.number(), std::as_writable_bytes(std::span(&answer, 1)),
                                   files);
    }
    if (got != sizeof answer || answer.version != kBrokerVersion) {
        line_.close();
        return broker_gone(got == -EAGAIN ? ETIMEDOUT : got < 0 ? static_cast<int>(-got) : EPIPE);
    }
    if (answer.status != HANARE_STATUS_OK) {
        answer.text.back() = '\0';
        return fail(static_cast<hanare_status>(answer.status), "%s", answer.text.data());
    }
    if (!files[0].is_open() || (wants_line && !files[1].is_open())) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, EMFILE,
                          "a connection to a memory server could not be taken over");
    }
    fabric::TcpLink::Connected connected;
    connected.socket = std::move(files[0]);
    if (wants_line) childs_line_ = std::move(files[1]);
    if (answer.is_sealed != 0) connected.keys = answer.keys;
    if (answer.leaves_data != 0 && !seals_) {
        return fail(HANARE_STATUS_PERMISSION,
                    "what is kept there would be open on the network: `hanare run` has a "
                    "secret_file (HANARE_SECRET_FILE), and this program has none");
    }
    if (answer.leaves_data != 0) connected.protection = fabric::Protection::kSealedButData;
    return connected;
}

}  // namespace hanare::remote
