// SPDX-License-Identifier: Apache-2.0
//
// What allows a peer to do something to memory that another one has exposed: the region, how often
// its keys were replaced, the rights, and a key that nobody can guess.  A capability is plain data;
// whoever has it may pass it on.  (MBCF, Matsumoto 2001: protection of memory-based communication;
// there the processor's memory management, here keys, since packets cannot be trusted.)
#pragma once

#include <cstddef>
#include <cstdint>

namespace hanare::fabric {

enum Right : uint32_t {
    kRead = 1,
    kWrite = 2,
    kAtomic = 4,  // fetch-op
    kPush = 8,
    kPop = 16,
    kSignal = 32,  // push, and tell whoever the queue belongs to
};
using Rights = uint32_t;
inline constexpr Rights kAllRights = kRead | kWrite | kAtomic | kPush | kPop | kSignal;

struct Key {
    uint64_t words[2] = {};

    // In a time that does not depend on where they differ.
    friend bool operator==(const Key& a, const Key& b) noexcept {
        return ((a.words[0] ^ b.words[0]) | (a.words[1] ^ b.words[1])) == 0;
    }
};

// Of this layout on the wire.
struct Capability {
    uint32_t region = 0;
    uint32_t epoch = 0;
    Rights rights = 0;
    uint32_t unused = 0;
    Key key;
};
static_assert(sizeof(Capability) == 32);

}  // namespace hanare::fabric
