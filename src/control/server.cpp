// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/units.hpp"
#include "control/protocol.hpp"
#include "sys/local_socket.hpp"

namespace hanare::control {

namespace {

constexpr uint32_t kListener = Server::kClientsMax;
// Rounds of one call; what is left then keeps the descriptor readable.
constexpr size_t kTurnsMax = 4 * Server::kClientsMax;

}  // namespace

Result<void> Server::listen(Kind kind) {
    Result<sys::FileDescriptor> listener = fail(HANARE_STATUS_SYSTEM, "no address");
    std::string address;
    for (const std::string& candidate : own_addresses(kind)) {
        address = candidate;
        listener = sys::listen_local(candidate);
        if (listener) break;
    }
    if (!listener) return std::unexpected(listener.error());
    std::strncpy(address_, address.c_str(), sizeof address_ - 1);
    process_id_ = getpid();
    listener_ = std::move(*listener);
    auto ready = sys::ReadySet::open();
    if (ready) {
        ready_ = std::move(*ready);
        const int error = ready_.add(listener_.number(), kListener, sys::ReadySet::For::kReading);
        if (error == 0) return {};
        ready = fail_errno(HANARE_STATUS_SYSTEM, error, "cannot wait for %.100s", address_);
    }
    close();
    return std::unexpected(ready.error());
}

void Server::serve(void* context) noexcept {
    if (!is_listening()) return;
    for (size_t turn = 0; turn < kTurnsMax; ++turn) {
        const int64_t number = ready_.next();
        if (number < 0) return;
        if (number == kListener) {
            accept_clients();
        } else {
            Client& client = clients_[static_cast<size_t>(number)];
            if (!go_on(client, context)) drop(client);
        }
    }
}

void Server::accept_clients() noexcept {
    for (size_t turn = 0; turn < kTurnsMax; ++turn) {
        errno = 0;
        sys::FileDescriptor socket = sys::accept_local(listener_);
        if (!socket.is_open()) {
            if (errno == 0) continue;  // of another user
            return;
        }
        Client& client = free_client();
        const auto number = static_cast<uint32_t>(&client - clients_.data());
        if (ready_.add(socket.number(), number, sys::ReadySet::For::kReading) != 0) continue;
        client.socket = std::move(socket);
        client.order = ++arrivals_;
    }
}

// Who has been here longest has had time enough.
Server::Client& Server::free_client() noexcept {
    Client* oldest = &clients_.front();
    for (Client& client : clients_) {
        if (!client.socket.is_open()) return client;
        if (client.order < oldest->order) oldest = &client;
    }
    drop(*oldest);
    return *oldest;
}

void Server::drop(Client& client) noexcept {
    client.socket.close();
    client.request_bytes = 0;
    client.memory = sys::Mapping();
    client.unsent = {};
}

// Does what can be done without waiting; false when the connection is to be closed.
bool Server::go_on(Client& client, void* context) noexcept {
    if (client.memory.address() == nullptr) {
        if (!read_request(client)) return errno == EAGAIN;
        if (!make_answer(client, context)) return false;
    }
    while (!client.unsent.empty()) {
        const ptrdiff_t sent = sys::send_some(client.socket, client.unsent);
        if (sent < 0) return false;
        if (sent == 0) break;
        client.unsent.remove_prefix(static_cast<size_t>(sent));
    }
    if (client.unsent.empty()) return false;
    const auto number = static_cast<uint32_t>(&client - clients_.data());
    return ready_.change(client.socket.number(), number, sys::ReadySet::For::kWriting) == 0;
}

// Whether there is one line, or too much for one.  Otherwise EAGAIN in errno: there will be more.
// What is there is read, since what is not would reset the connection.
bool Server::read_request(Client& client) noexcept {
    bool is_whole = false;
    for (size_t turn = 0; turn < kTurnsMax; ++turn) {
        char part[4096];
        const ptrdiff_t got = sys::receive_some(client.socket, part, sizeof part);
        if (got <= 0) {
            if (got == 0) errno = 0;
            break;
        }
        const size_t room = kRequestBytesMax - client.request_bytes;
        const size_t kept = std::min(room, static_cast<size_t>(got));
        std::memcpy(client.request + client.request_bytes, part, kept);
        client.request_bytes += kept;
        const std::string_view line(client.request, client.request_bytes);
        is_whole = kept == room || line.find('\n') != line.npos;
    }
    return is_whole;
}

bool Server::make_answer(Client& client, void* context) noexcept {
    auto memory =
        sys::Mapping::reserve(round_up(answer_bytes_ + kHeaderBytes, kOsPageBytes), kOsPageBytes);
    if (!memory) return false;
    auto* const text = reinterpret_cast<char*>(memory->address());
    client.memory = std::move(*memory);
    const std::string_view received(client.request, client.request_bytes);
    // The header says how long the rest is, and lies directly in front of it.
    Answer body(text + kHeaderBytes, answer_bytes_);
    const bool is_ok = respond(body, received, context);
    char header_text[kHeaderBytes];
    Answer header(header_text, sizeof header_text);
    header.text(kProtocolName).decimal(kProtocolVersion).text(is_ok ? " ok " : " error ");
    header.decimal(body.view().size()).text("\n");
    char* const begin = text + kHeaderBytes - header.view().size();
    std::memcpy(begin, header_text, header.view().size());
    client.unsent = {begin, header.view().size() + body.view().size()};
    return true;
}

// False when the answer is what is wrong with the request.
bool Server::respond(Answer& body, std::string_view received, void* context) const noexcept {
    const size_t end = received.find('\n');
    const std::optional<RequestLine> request = parse_request(received.substr(0, end));
    if (!request || end == received.npos) {
        body.text("not a request: it is one line, '").text(kProtocolName);
        body.decimal(kProtocolVersion).text(" REQUEST'");
        return false;
    }
    if (request->version != kProtocolVersion) {
        body.text("version ").decimal(request->version).text(" is not spoken here, version ");
        body.decimal(kProtocolVersion).text(" is");
        return false;
    }
    const std::string_view name = request->name.substr(0, request->name.find(' '));
    for (const Request& known : requests_) {
        const bool takes_argument = known.carry_out != nullptr;
        if (known.name != (takes_argument ? name : request->name)) continue;
        bool is_good = true;
        if (takes_argument) {
            const std::string_view rest = request->name.substr(name.size());
            is_good = known.carry_out(body, rest.substr(rest.empty() ? 0 : 1), context);
        } else {
            known.answer(body, context);
        }
        if (body.is_complete()) return is_good;
        body.clear();
        body.text("the answer is too long");
        return false;
    }
    body.text("unknown request ").quoted(request->name).text("; known are:");
    for (const Request& known : requests_) body.text(" ").text(known.name);
    return false;
}

void Server::remove_name() noexcept {
    if (is_listening() && has_file(address_) && process_id_ == getpid()) unlink(address_);
}

void Server::close() noexcept {
    remove_name();
    forget();
}

void Server::abandon_in_child() noexcept { forget(); }

void Server::forget() noexcept {
    for (Client& client : clients_) drop(client);
    ready_.close();
    listener_.close();
    address_[0] = '\0';
}

}  // namespace hanare::control
