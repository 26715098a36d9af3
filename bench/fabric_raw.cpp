// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric_raw.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

class RawInput {
public:
    explicit RawInput(int socket) : socket_(socket) {}

    // All of it, polling, and what comes behind it in the same call.  False: the peer has closed.
    bool receive(std::span<std::byte> wanted) {
        const size_t early = std::min(wanted.size(), end_ - begin_);
        std::memcpy(wanted.data(), early_.data() + begin_, early);
        begin_ += early;
        wanted = wanted.subspan(early);
        while (!wanted.empty()) {
            const std::array<sys::Part, 2> parts = {
                {{wanted.data(), wanted.size()}, {early_.data(), early_.size()}}};
            const ptrdiff_t result = sys::receive_parts(socket_, parts);
            if (result == -EAGAIN) continue;
            if (result <= 0) return false;
            const auto received = static_cast<size_t>(result);
            const size_t own = std::min(received, wanted.size());
            wanted = wanted.subspan(own);
            begin_ = 0;
            end_ = received - own;
        }
        return true;
    }

private:
    const int socket_;
    std::array<std::byte, 4096> early_;
    size_t begin_ = 0;
    size_t end_ = 0;
};

bool send_all(int socket, std::span<std::byte> data) {
    while (!data.empty()) {
        const sys::Part part = {data.data(), data.size()};
        const ptrdiff_t sent = sys::send_parts(socket, {&part, 1});
        if (sent == -EAGAIN) continue;
        if (sent <= 0) return false;
        data = data.subspan(static_cast<size_t>(sent));
    }
    return true;
}

}  // namespace

Result<void> serve_raw(const sys::FileDescriptor& socket, std::span<std::byte> memory) {
    RawInput input(socket.number());
    RawRequest request;
    while (input.receive(std::as_writable_bytes(std::span(&request, 1)))) {
        if (request.bytes > memory.size() || request.offset > memory.size() - request.bytes) {
            return fail(HANARE_STATUS_INTERNAL, "a raw request beyond the region");
        }
        const std::span<std::byte> place = memory.subspan(request.offset, request.bytes);
        uint64_t word = 0;
        std::span<std::byte> answer = std::as_writable_bytes(std::span(&word, 1));
        switch (request.action) {
            case FabricAction::kGet: answer = place; break;
            case FabricAction::kPut:
                if (!input.receive(place)) return {};
                break;
            case FabricAction::kFetchAdd:
                word = __atomic_fetch_add(reinterpret_cast<uint64_t*>(place.data()), 1,
                                          __ATOMIC_SEQ_CST);
                break;
        }
        if (!send_all(socket.number(), answer)) return {};
    }
    return {};
}

}  // namespace hanare::bench
