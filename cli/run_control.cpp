// SPDX-License-Identifier: Apache-2.0
#include "cli/run_control.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/local_socket.hpp"
#include "telemetry/log.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClientsMax = 8;
constexpr size_t kRequestBytesMax = 64;
constexpr size_t kReadBytes = 4096;
constexpr uint64_t kPatience_ns = 1'000'000'000;
constexpr int kAnswerTimeout_ms = 2000;
constexpr size_t kAnswerBytesMax = 4 * kMiB;
constexpr std::string_view kRequest = "statistics";
constexpr std::string_view kSuffix = ".sock";

// Empty when this user has none.
std::string socket_directory() {
    const char* const runtime = secure_getenv("XDG_RUNTIME_DIR");
    const bool is_usable =
        runtime != nullptr && *runtime == '/' && sys::is_private_directory(runtime);
    return is_usable ? std::string(runtime) + "/hanare" : "";
}

std::string nameless_prefix() { return "hanare-" + std::to_string(geteuid()) + "-"; }

bool has_file(const std::string& address) { return !address.starts_with('@'); }

}  // namespace

RunControl::RunControl() {
    const std::string process = std::to_string(getpid());
    const std::string directory = socket_directory();
    std::vector<std::string> addresses = {"@" + nameless_prefix() + process};
    if (!directory.empty() && sys::make_private_directory(directory)) {
        addresses.insert(addresses.begin(), directory + "/" + process + std::string(kSuffix));
    }
    for (const std::string& address : addresses) {
        auto listener = sys::listen_local(address);
        if (listener) {
            listener_ = std::move(*listener);
            address_ = address;
            return;
        }
        telemetry::log(telemetry::LogLevel::kInfo, "%s", listener.error().text);
    }
}

RunControl::~RunControl() {
    if (!address_.empty() && has_file(address_)) unlink(address_.c_str());
}

void RunControl::append_to(std::vector<pollfd>& polled) const {
    if (listener_.is_open() && clients_.size() < kClientsMax) {
        polled.push_back({.fd = listener_.number(), .events = POLLIN, .revents = 0});
    }
    for (const Client& client : clients_) {
        const short events = client.answer.empty() ? POLLIN : POLLOUT;
        polled.push_back({.fd = client.socket.number(), .events = events, .revents = 0});
    }
}

void RunControl::serve(const std::function<std::string()>& statistics) {
    if (!listener_.is_open()) return;
    accept_clients();
    std::erase_if(clients_, [&](Client& client) { return is_done(client, statistics); });
}

void RunControl::accept_clients() {
    while (clients_.size() < kClientsMax) {
        errno = 0;
        sys::FileDescriptor socket = sys::accept_local(listener_);
        if (socket.is_open()) {
            clients_.push_back({.socket = std::move(socket),
                                .request = "",
                                .answer = "",
                                .deadline_ns = sys::now_ns() + kPatience_ns});
        } else if (errno != 0) {
            return;  // nobody waits any more
        }
    }
}

// Whether the connection is to be closed.
bool RunControl::is_done(Client& client, const std::function<std::string()>& statistics) {
    if (sys::now_ns() > client.deadline_ns) return true;
    if (client.answer.empty()) {
        // More than a request can have, so that a closed connection does not seem to be broken.
        char part[kReadBytes];
        const ptrdiff_t got = sys::receive_some(client.socket, part, sizeof part);
        if (got <= 0) return got == 0 || errno != EAGAIN;
        client.request.append(part, static_cast<size_t>(got));
        const size_t end = client.request.find('\n');
        if (end == std::string::npos && client.request.size() < kRequestBytesMax) return false;
        const bool is_known = client.request.substr(0, end) == kRequest;
        client.answer = is_known ? statistics() : "unknown request\n";
    }
    const ptrdiff_t sent = sys::send_some(client.socket, client.answer);
    if (sent > 0) client.answer.erase(0, static_cast<size_t>(sent));
    return sent < 0 || client.answer.empty();
}

std::vector<std::string> run_addresses() {
    std::vector<std::string> addresses = sys::nameless_addresses(nameless_prefix());
    std::error_code error;
    const std::string directory = socket_directory();
    if (directory.empty()) return addresses;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == kSuffix) addresses.push_back(entry->path().string());
    }
    return addresses;
}

Result<std::string> ask_run(const std::string& address) {
    const auto socket = sys::connect_local(address);
    if (!socket) {
        const bool is_left_over = socket.error().os_errno == ECONNREFUSED && has_file(address);
        if (is_left_over) unlink(address.c_str());
        return std::unexpected(socket.error());
    }
    sys::send_some(*socket, std::string(kRequest) + "\n");
    return sys::read_answer(*socket, kAnswerBytesMax, kAnswerTimeout_ms);
}

}  // namespace hanare::cli
