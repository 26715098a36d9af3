// SPDX-License-Identifier: Apache-2.0
//
// Server: the control socket of this process.  Belongs to one thread at a time, which has other
// work and calls serve() when descriptor() is readable; nothing there waits, and nothing allocates
// but address space (README.md has the protocol and the reason).  One that is not listening does
// nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "control/addresses.hpp"
#include "control/answer.hpp"
#include "sys/event.hpp"
#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace hanare::control {

// What may be asked.
struct Request {
    std::string_view name;
    void (*answer)(Answer& answer, void* context);
    // Instead, where the name is followed by a blank and an argument: false if the answer is what
    // is wrong with it.
    bool (*carry_out)(Answer& answer, std::string_view argument, void* context) = nullptr;
};

class Server {
public:
    static constexpr size_t kClientsMax = 8;

    // `answer_bytes`: of the longest answer.
    explicit Server(std::span<const Request> requests, size_t answer_bytes) noexcept
        : requests_(requests), answer_bytes_(answer_bytes) {}
    ~Server() { close(); }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Allocates.
    Result<void> listen(Kind kind);
    bool is_listening() const noexcept { return listener_.is_open(); }
    // -1 when not listening.
    int descriptor() const noexcept { return ready_.number(); }
    // "" when not listening.
    const char* address() const noexcept { return address_; }

    // `context` is what Request::answer gets.
    void serve(void* context) noexcept;

    // Nobody finds this process any more.  Any thread, once; not in a child.
    void remove_name() noexcept;
    void close() noexcept;
    // In the child of a fork: the parent goes on.  Async-signal-safe.
    void abandon_in_child() noexcept;

private:
    static constexpr size_t kRequestBytesMax = 1024;
    static constexpr size_t kAddressBytes = 128;
    static constexpr size_t kHeaderBytes = 64;

    struct Client {
        sys::FileDescriptor socket;
        uint64_t order = 0;  // who came first
        size_t request_bytes = 0;
        char request[kRequestBytesMax];
        sys::Mapping memory;      // of the answer
        std::string_view unsent;  // of it
    };

    void accept_clients() noexcept;
    Client& free_client() noexcept;
    bool go_on(Client& client, void* context) noexcept;
    bool read_request(Client& client) noexcept;
    bool make_answer(Client& client, void* context) noexcept;
    bool respond(Answer& body, std::string_view received, void* context) const noexcept;
    static void drop(Client& client) noexcept;
    void forget() noexcept;

    const std::span<const Request> requests_;
    const size_t answer_bytes_;
    char address_[kAddressBytes] = {};
    int process_id_ = 0;  // who listens
    sys::FileDescriptor listener_;
    sys::ReadySet ready_;
    uint64_t arrivals_ = 0;
    std::array<Client, kClientsMax> clients_;
};

}  // namespace hanare::control
