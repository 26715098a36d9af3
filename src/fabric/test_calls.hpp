// SPDX-License-Identifier: Apache-2.0
//
// Operations as tests write them, with a deadline that nobody reaches who is served.  Included by
// *_test.cpp only.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "fabric/link.hpp"
#include "sys/clock.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::fabric {

constexpr uint64_t kNsPerMs = 1'000'000;

struct Call : Operation {
    virtual ~Call() = default;
    Call(Kind what, const Capability& key, uint64_t at) {
        kind = what;
        capability = key;
        offset = at;
        deadline_ns = sys::now_ns() + 20'000 * kNsPerMs;
    }
};
struct Put : Call {
    Put(const Capability& key, uint64_t at, std::span<const std::byte> data)
        : Call(Kind::kPut, key, at) {
        source = data;
    }
};
struct Get : Call {
    Get(const Capability& key, uint64_t at, std::span<std::byte> data) : Call(Kind::kGet, key, at) {
        destination = data;
    }
};
struct Fetch : Call {
    Fetch(const Capability& key, uint64_t at, FetchOp op, uint64_t a, uint64_t b = 0)
        : Call(Kind::kFetch, key, at) {
        fetch_op = op;
        operand = a;
        compare = b;
    }
};

struct Ask : Call {
    Ask(std::span<const std::byte> question, std::span<std::byte> room) : Call(Kind::kCall, {}, 0) {
        source = question;
        destination = room;
    }
};
struct Push : Call {
    Push(const Capability& key, std::span<const std::byte> message) : Call(Kind::kPush, key, 0) {
        source = message;
    }
};
struct Pop : Call {
    Pop(const Capability& key, std::span<std::byte> room) : Call(Kind::kPop, key, 0) {
        destination = room;
    }
};

struct Signal : Call {
    Signal(const Capability& key, std::span<const std::byte> message)
        : Call(Kind::kSignal, key, 0) {
        source = message;
    }
};

template <typename Any>
hanare_status run(Link& link, Any&& call) {
    return link.carry_out(call);
}

// Before what they use goes away, operations are over, also where a test fails.
struct Ended {
    Link& link;
    ~Ended() { link.end(); }
};

inline std::vector<std::byte> random_bytes(Prng& prng, size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(prng.next());
    return data;
}

// Memory that other processes can have, too.
class SharedBytes {
public:
    explicit SharedBytes(size_t bytes)
        : file_(sys::create_shared_memory(bytes).value()),
          memory_(sys::Mapping::reserve(bytes, kOsPageBytes).value()) {
        EXPECT_TRUE(sys::map_shared(memory_, file_));
    }
    std::span<std::byte> all() const { return {memory_.address(), memory_.bytes()}; }
    sys::FileDescriptor file() const { return sys::duplicate(file_); }

private:
    const sys::FileDescriptor file_;
    const sys::Mapping memory_;
};

inline bool is_same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::ranges::equal(a, b);
}

}  // namespace hanare::fabric
