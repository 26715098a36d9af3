// SPDX-License-Identifier: Apache-2.0
//
// Traps on what nothing that a fault handler reaches may call: this program's malloc and friends
// and its pthread mutexes take notice when the calling thread is inside the handler.
#pragma once

#include <cstdint>

namespace hanare::api_test {

// Trapped calls since the start, by any thread; and the name of the last one.
uint64_t trapped_calls();
const char* last_trapped_call();

// Lets the next ioctl(2), or moving of a mapping, that a handler makes call one of the trapped
// functions: proves that the trap works.
enum class Provocation {
    kNone,
    kMalloc,
    kCalloc,
    kRealloc,
    kFree,
    kAligned,
    kNew,
    kLock,
    kTryLock
};
void provoke(Provocation provocation);

}  // namespace hanare::api_test
