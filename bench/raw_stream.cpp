// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sys/clock.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::bench {
namespace {

constexpr int kPatienceMs = 30'000;  // for the next bytes
constexpr double kNsPerS = 1e9;

struct Request {
    uint64_t is_put = 0;  // else data is wanted
    uint64_t bytes = 0;
};
// A put is answered by this once all of it is there.
using Answer = uint64_t;

enum class Direction { kSend, kReceive };

// All of it.  PEER_LOST: the peer has closed, or nothing moves any more.
Result<void> move_all(int socket, Direction direction, std::span<std::byte> data) {
    const bool sends = direction == Direction::kSend;
    while (!data.empty()) {
        const sys::Part part = {data.data(), data.size()};
        const ptrdiff_t moved =
            sends ? sys::send_parts(socket, {&part, 1}) : sys::receive_parts(socket, {&part, 1});
        if (moved == -EAGAIN) {
            const sys::Ready ready =
                sys::wait_for_socket(socket, {.to_read = !sends, .to_write = sends}, kPatienceMs);
            if (ready.to_read || ready.to_write) continue;
        }
        if (moved <= 0) return fail(HANARE_STATUS_PEER_LOST, "the raw connection has ended");
        data = data.subspan(static_cast<size_t>(moved));
    }
    return {};
}

template <typename T>
std::span<std::byte> bytes_of(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Result<void> serve_raw_stream(const sys::FileDescriptor& socket, std::span<std::byte> memory) {
    const int number = socket.number();
    for (Request request; move_all(number, Direction::kReceive, bytes_of(request));) {
        if (request.bytes > memory.size()) {
            return fail(HANARE_STATUS_INTERNAL, "a raw request beyond the memory");
        }
        const std::span<std::byte> data = memory.first(request.bytes);
        if (request.is_put == 0) {
            HANARE_TRY(move_all(number, Direction::kSend, data));
            continue;
        }
        HANARE_TRY(move_all(number, Direction::kReceive, data));
        Answer answer = request.bytes;
        HANARE_TRY(move_all(number, Direction::kSend, bytes_of(answer)));
    }
    return {};
}

Result<RawStream> RawStream::connect(const std::string& host, uint16_t port) {
    HANARE_TRY_ASSIGN(sys::FileDescriptor socket, sys::connect_tcp(host, port, kPatienceMs));
    return RawStream(std::move(socket));
}

Result<double> RawStream::put(std::span<std::byte> data) {
    const int number = socket_.number();
    const uint64_t begin_ns = sys::now_ns();
    Request request = {1, data.size()};
    HANARE_TRY(move_all(number, Direction::kSend, bytes_of(request)));
    HANARE_TRY(move_all(number, Direction::kSend, data));
    Answer answer = 0;
    HANARE_TRY(move_all(number, Direction::kReceive, bytes_of(answer)));
    if (answer != data.size()) return fail(HANARE_STATUS_INTERNAL, "a raw put has lost bytes");
    return static_cast<double>(sys::now_ns() - begin_ns) / kNsPerS;
}

Result<double> RawStream::get(std::span<std::byte> data) {
    const int number = socket_.number();
    const uint64_t begin_ns = sys::now_ns();
    Request request = {0, data.size()};
    HANARE_TRY(move_all(number, Direction::kSend, bytes_of(request)));
    HANARE_TRY(move_all(number, Direction::kReceive, data));
    return static_cast<double>(sys::now_ns() - begin_ns) / kNsPerS;
}

}  // namespace hanare::bench
