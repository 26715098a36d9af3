// SPDX-License-Identifier: Apache-2.0
//
// What a stranger sends instead of a handshake, and what somebody in between makes of a real one:
// pairs of bytes say which of those that pass is changed, and how.  Nobody who does not know the
// secret gets through, and the two sides have the same keys if both are done.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "fabric/handshake.hpp"
#include "sys/file.hpp"

namespace hanare::fabric {
namespace {

enum Mode : uint8_t { kFromStranger = 1, kToSource = 2, kSealed = 4, kLeavesData = 8 };

struct Sockets {
    Sockets() {
        int ends[2];
        HANARE_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        inner = sys::FileDescriptor(ends[0]);
        outer = sys::FileDescriptor(ends[1]);
    }
    sys::FileDescriptor inner;  // of a side of the handshake
    sys::FileDescriptor outer;
};

struct End {
    End(Handshake::Side side, const Secret& secret, Protection protection)
        : handshake(Handshake::begin(side, sockets.inner.number(), secret, protection).value()) {}
    Sockets sockets;
    Handshake handshake;
};

const Secret& secret() {
    static const Secret made = Secret::make().value();
    return made;
}

bool is_over(Handshake::State state) {
    return state == Handshake::State::kDone || state == Handshake::State::kStranger ||
           state == Handshake::State::kLost;
}

void fuzz_stranger(std::span<const uint8_t> input, uint8_t mode) {
    const auto side = (mode & kToSource) != 0 ? Handshake::Side::kSource : Handshake::Side::kTarget;
    End end(side, secret(), Protection::kAuthenticated);
    Handshake::State state = end.handshake.go_on();
    while (!input.empty() && !is_over(state)) {
        const size_t bytes = std::min<size_t>(input.size(), 1 + input[0] * 4u);
        if (send(end.sockets.outer.number(), input.data(), bytes, MSG_NOSIGNAL) < 0) break;
        input = input.subspan(bytes);
        state = end.handshake.go_on();
    }
    HANARE_ASSERT(state != Handshake::State::kDone);
}

// All that one side has sent, to the other.
void pass_on(int from, int to, std::span<const uint8_t> changes, size_t& passed) {
    uint8_t bytes[4096];
    for (ssize_t got = 0; (got = recv(from, bytes, sizeof bytes, 0)) > 0;) {
        const auto count = static_cast<size_t>(got);
        for (size_t i = 0; i + 2 < changes.size(); i += 3) {
            const size_t at = changes[i] + changes[i + 1] * size_t{256};
            if (at >= passed && at < passed + count) bytes[at - passed] ^= changes[i + 2];
        }
        passed += count;
        if (send(to, bytes, count, MSG_NOSIGNAL) < 0) return;
    }
}

void fuzz_between(std::span<const uint8_t> input, uint8_t mode) {
    const Protection protection = (mode & kSealed) == 0       ? Protection::kAuthenticated
                                  : (mode & kLeavesData) != 0 ? Protection::kSealedButData
                                                              : Protection::kSealed;
    End source(Handshake::Side::kSource, secret(), protection);
    End target(Handshake::Side::kTarget, secret(), Protection::kAuthenticated);
    const auto none = input.first(0);
    const bool is_to_source = (mode & kToSource) != 0;
    size_t to_target = 0;
    size_t to_source = 0;
    Handshake::State of_source{};
    Handshake::State of_target{};
    for (int turn = 0; turn < 8; ++turn) {
        if (!is_over(of_source)) of_source = source.handshake.go_on();
        pass_on(source.sockets.outer.number(), target.sockets.outer.number(),
                is_to_source ? none : input, to_target);
        if (!is_over(of_target)) of_target = target.handshake.go_on();
        pass_on(target.sockets.outer.number(), source.sockets.outer.number(),
                is_to_source ? input : none, to_source);
    }
    if (of_source != Handshake::State::kDone || of_target != Handshake::State::kDone) return;
    const SessionKeys a = source.handshake.keys().value();
    const SessionKeys b = target.handshake.keys().value();
    HANARE_ASSERT(a.to_target.key == b.to_target.key && a.to_source.key == b.to_source.key);
    HANARE_ASSERT(target.handshake.protection() == protection);
}

}  // namespace
}  // namespace hanare::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return 0;
    const std::span<const uint8_t> input(data + 1, bytes - 1);
    if ((data[0] & hanare::fabric::kFromStranger) != 0) {
        hanare::fabric::fuzz_stranger(input, data[0]);
    } else {
        hanare::fabric::fuzz_between(input, data[0]);
    }
    return 0;
}
