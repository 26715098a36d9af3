// SPDX-License-Identifier: Apache-2.0
//
// What a peer sends, in both directions: requests of any content to a target, answers of any
// content to a source; over a socket, in frames that were sealed by who knows the keys, or through
// memory.  Nothing may be touched but the region and the destinations, and every operation ends.
//
// The first byte says how much of each header is put right, so that what lies behind the checks is
// reached, too, and which way it goes.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "fabric/fifo.hpp"
#include "fabric/tcp_connection.hpp"
#include "fabric/tcp_link.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::fabric {
namespace {

enum Help : uint8_t {
    kSeal = 1,
    kCapability = 2,
    kToSource = 4,
    kInMemory = 8,
    kInFrames = 16,
    kScribble = 32,    // over the heads of the rings, or over a frame
    kLeavesData = 64,  // in frames: data goes as it is
};

sys::Mapping mapping_of(const sys::FileDescriptor& file) {
    sys::Mapping memory = sys::Mapping::reserve(Transport::kSharedBytes, kOsPageBytes).value();
    HANARE_ASSERT(sys::map_shared(memory, file).has_value());
    return memory;
}

// Both ends of a connection; `side` is that of the one which is fuzzed.
class Pair {
public:
    Pair(uint8_t help, Handshake::Side side) : help_(help) {
        int ends[2];
        HANARE_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        const auto other =
            side == Handshake::Side::kSource ? Handshake::Side::kTarget : Handshake::Side::kSource;
        sys::FileDescriptor one(ends[0]);
        sys::FileDescriptor two(ends[1]);
        if ((help & kInMemory) != 0) {
            const sys::FileDescriptor file =
                sys::create_shared_memory(Transport::kSharedBytes).value();
            scribbled_ = mapping_of(file);
            ours = std::make_unique<Transport>(std::move(one), mapping_of(file), other);
            theirs_ = std::make_unique<Transport>(std::move(two), mapping_of(file), side);
            return;
        }
        ours = std::make_unique<Transport>(std::move(one));
        theirs_ = std::make_unique<Transport>(std::move(two));
        if ((help & kInFrames) == 0) return;
        const SessionKeys keys;
        const Protection protection =
            (help & kLeavesData) != 0 ? Protection::kSealedButData : Protection::kSealed;
        HANARE_ASSERT(
            ours->seal_with(keys, other, Transport::Opening::kStraight, protection).has_value());
        HANARE_ASSERT(
            theirs_->seal_with(keys, side, Transport::Opening::kStraight, protection).has_value());
    }
    // A request or answer, or any part of such; what it carries goes as data where it may.
    void send(std::span<const uint8_t> bytes, size_t header_bytes) {
        std::vector<std::byte> copy(bytes.size());
        std::memcpy(copy.data(), bytes.data(), bytes.size());
        if ((help_ & kScribble) != 0) scribble(bytes);
        const size_t framed = std::min(copy.size(), header_bytes);
        const std::array<sys::Part, 2> parts = {
            {{copy.data(), framed}, {copy.data() + framed, copy.size() - framed}}};
        if (theirs_->leaves_data() && parts[1].bytes > kSmallBytes) {
            theirs_->send_with_data(parts);
        } else {
            theirs_->send(parts);
        }
    }
    void drain() {
        std::array<std::byte, 4096> room;
        const sys::Part part = {room.data(), room.size()};
        while (theirs_->receive({&part, 1}) > 0) {
        }
    }

    std::unique_ptr<Transport> ours;

private:
    // What a peer can do that does not keep to its own code.
    void scribble(std::span<const uint8_t> bytes) {
        if ((help_ & kInMemory) != 0) {
            for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
                const size_t ring = (bytes[i] & 1) * ByteRing::kMemoryBytes;
                scribbled_.address()[ring + (bytes[i] >> 1)] = std::byte{bytes[i + 1]};
            }
        } else {
            ::send(theirs_->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        }
    }

    const uint8_t help_;
    std::unique_ptr<Transport> theirs_;
    sys::Mapping scribbled_;
};

// Goes through the input as the receiver would, and changes headers.  Where each ends with what it
// carries.
template <typename Header, typename Mend>
std::vector<size_t> mend_headers(std::vector<uint8_t>& input, Mend mend) {
    std::vector<size_t> ends;
    uint32_t number = 0;
    for (size_t at = 0; at + sizeof(Header) <= input.size(); ++number) {
        Header header;
        std::memcpy(&header, input.data() + at, sizeof header);
        header.sequence = number;
        const size_t carried = mend(header, number);
        seal(header);
        std::memcpy(input.data() + at, &header, sizeof header);
        at += sizeof header + std::min(carried, input.size());
        ends.push_back(std::min(at, input.size()));
    }
    return ends;
}

// How much is sent at once: up to the next of these, or `step`.
size_t next_piece(std::span<const uint8_t> rest, size_t all_bytes, std::span<const size_t> ends,
                  size_t step) {
    const size_t at = all_bytes - rest.size();
    const auto next = std::ranges::upper_bound(ends, at);
    return next == ends.end() ? std::min(rest.size(), step) : *next - at;
}

// Says what it was asked.
class Echo : public CallHandler {
public:
    hanare_status answer_call(uint64_t, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override {
        if (question.size() > room.size()) return HANARE_STATUS_OUT_OF_RANGE;
        std::ranges::copy(question, room.begin());
        bytes = question.size();
        return HANARE_STATUS_OK;
    }
    void caller_left(uint64_t) noexcept override {}
};

void fuzz_target(std::vector<uint8_t> input, uint8_t help) {
    std::vector<std::byte> memory(8192);
    ExposedRegions regions;
    const uint32_t region = regions.expose(memory, kRead | kWrite | kAtomic).value();
    const Capability all = regions.capability(region, kRead | kWrite | kAtomic).value();
    alignas(Fifo::kAlignment) std::byte queue[4096];
    HANARE_ASSERT(Fifo::format(queue) == HANARE_STATUS_OK);
    const Capability of_queue =
        regions
            .capability(regions.expose(queue, kPush | kPop | kSignal).value(),
                        kPush | kPop | kSignal)
            .value();
    std::vector<size_t> ends;
    if ((help & kSeal) != 0) {
        ends = mend_headers<RequestHeader>(input, [&](RequestHeader& header, uint32_t) -> size_t {
            header.version = kWireVersion;
            header.kind = static_cast<Kind>(1 + static_cast<uint8_t>(header.kind) % 7);
            if ((help & kCapability) != 0) {
                const bool is_of_queue = is_on_queue(header.kind) || header.kind == Kind::kCall;
                header.capability = is_of_queue ? of_queue : all;
                header.bytes %= is_of_queue ? kMessageBytesMax + 1 : 10'000;
                header.offset = is_of_queue ? 0 : header.offset % 10'000;
            }
            if (header.kind == Kind::kCall) header.operand %= kMessageBytesMax + 1;
            if (header.kind == Kind::kFetch) {
                header.bytes = header.width % 2 == 0 ? 4 : 8;
                header.width = static_cast<uint8_t>(header.bytes | (header.width & kWakes));
                header.fetch_op =
                    static_cast<FetchOp>(1 + static_cast<uint8_t>(header.fetch_op) % 6);
            }
            return carried_bytes(header);
        });
    }
    Pair pair(help, Handshake::Side::kSource);
    Echo echo;
    TcpConnection connection(std::move(pair.ours), regions, Caller{&echo, 1});
    if ((help & kLeavesData) == 0) ends.clear();
    std::span<const uint8_t> rest = input;
    while (!rest.empty()) {
        const size_t bytes = next_piece(rest, input.size(), ends, 1 + rest[0] * 16u);
        pair.send(rest.first(bytes), sizeof(RequestHeader));
        rest = rest.subspan(bytes);
        if (connection.serve() == TcpConnection::Outcome::kClosed) return;
        pair.drain();
    }
}

void fuzz_source(std::vector<uint8_t> input, uint8_t help) {
    std::vector<std::byte> small(100);
    std::vector<std::byte> large(3000);
    std::array<Operation, 4> calls;
    calls[0].kind = Kind::kGet;
    calls[0].destination = small;
    calls[1].source = small;
    calls[2].kind = Kind::kGet;
    calls[2].destination = large;
    calls[3].kind = Kind::kFetch;
    // The kinds and sizes of their requests.
    constexpr std::array<std::pair<Kind, uint32_t>, 4> kRequests = {
        {{Kind::kGet, 100}, {Kind::kPut, 0}, {Kind::kGet, 3000}, {Kind::kFetch, 0}}};
    std::vector<size_t> ends;
    if ((help & kSeal) != 0) {
        ends =
            mend_headers<AnswerHeader>(input, [&](AnswerHeader& header, uint32_t number) -> size_t {
                const auto& [kind, bytes] =
                    kRequests[std::min<size_t>(number, kRequests.size() - 1)];
                header.version = kWireVersion;
                header.kind = kind;
                header.status =
                    static_cast<int16_t>((help & kCapability) != 0 ? header.status % 2 : 0);
                header.status = static_cast<int16_t>(-std::abs(header.status));
                header.bytes = header.status == 0 && kind == Kind::kGet ? bytes : 0;
                return header.bytes;
            });
    }
    Pair pair(help, Handshake::Side::kTarget);
    const auto made = TcpLink::make(std::move(pair.ours), 0).value();
    TcpLink& link = *made;
    for (Operation& call : calls) link.post(call);
    if ((help & kLeavesData) == 0) ends.clear();
    std::span<const uint8_t> rest = input;
    while (!rest.empty() && !link.is_lost()) {
        const size_t bytes = next_piece(rest, input.size(), ends, 1 + rest[0] * 256u);
        pair.send(rest.first(bytes), sizeof(AnswerHeader));
        rest = rest.subspan(bytes);
        link.test(calls.back());
        pair.drain();
    }
    link.end();
    for (const Operation& call : calls) HANARE_ASSERT(call.is_done());
}

}  // namespace
}  // namespace hanare::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return 0;
    const std::vector<uint8_t> input(data + 1, data + bytes);
    if ((data[0] & hanare::fabric::kToSource) != 0) {
        hanare::fabric::fuzz_source(input, data[0]);
    } else {
        hanare::fabric::fuzz_target(input, data[0]);
    }
    return 0;
}
