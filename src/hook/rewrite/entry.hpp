// SPDX-License-Identifier: Apache-2.0
//
// The way from a stub to the dispatcher (entry.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hook/rewrite/system_call.hpp"

namespace hanare::hook {

inline constexpr size_t kSystemCallNumbers = 512;
// The low 16 bits of a number are looked up, without a comparison that would change the flags.
inline constexpr size_t kWantedBytes = 0x10000;

// Addresses are looked up by their bits 32 to 47, in places of which a part only is meant also by
// bits 16 to 31.
inline constexpr uint64_t kPlaceBytes = uint64_t{1} << 32;
inline constexpr size_t kPlaces = 0x10000;
inline constexpr uint64_t kPartBytes = uint64_t{1} << 16;
inline constexpr size_t kParts = kPlaceBytes / kPartBytes;

enum class Place : uint8_t { kFar = 0, kNear = 1, kNearInParts = 2 };

inline constexpr size_t kFiles = 0x10000;

enum class Wanted : uint8_t {
    kNot = 0,
    // Where there is memory that the handler cares for: at the stack pointer, or
    kTransfer = 1,            // at the second argument, unless the file lets it begin at once;
    kReadAtOffset = 2,        // the same;
    kWhereSecondIs = 3,       // at the second argument,
    kWhereFirstIs = 4,        // at the first one,
    kWhereFirstTwoAre = 5,    // at one of the first two,
    kWhereFirstThreeAre = 6,  // at one of the first three,
    kWhereAnyIs = 7,          // at any of the six.
    kAlways = 8,
};

extern "C" {
// A Wanted: which system calls with these low bits go through hanare_hook_dispatch (dispatch.cpp).
extern uint8_t hanare_hook_wanted[kWantedBytes];
// A Place for each: whether what begins there may reach into memory that the handler cares for.
// Behind them, for the parts of all places that are near in parts, 1 where one of these is.
extern uint8_t hanare_hook_places[kPlaces + kParts];

// By the number of a file 1 where reads at offsets may begin at once; behind these, the same of all
// other transfers.
extern uint8_t hanare_hook_files[2 * kFiles];

// do_files_change_unseen() and threads_begin_unseen() (system_calls.hpp).
extern std::atomic<bool> hanare_hook_files_change_unseen;
extern std::atomic<bool> hanare_hook_threads_begin_unseen;

void hanare_hook_entry() noexcept;
Verdict hanare_hook_dispatch(SystemCall* call);
Verdict hanare_hook_dispatch_again(SystemCall* call, int64_t result);
}

}  // namespace hanare::hook
