// SPDX-License-Identifier: Apache-2.0
//
// What is behind the handles of comm.h, and what its entry points share.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "capi/arguments.hpp"
#include "capi/guard.hpp"
#include "fabric/signal_queue.hpp"
#include "hanare/comm.h"
#include "job/communicator.hpp"
#include "job/group.hpp"
#include "job/job.hpp"

struct hanare_comm_window {
    hanare_comm* comm = nullptr;
    uint32_t number = 0;
};

namespace hanare::capi {

// A process joins its job once, for communication or for shared memory.
inline constinit std::atomic<bool> has_joined_job{false};

struct SignalHandler {
    hanare_signal_handler handler;
    void* context;
};

}  // namespace hanare::capi

struct hanare_comm {
    std::unique_ptr<hanare::job::Job> job;
    hanare::job::Communicator::Handle communicator;
    hanare::job::Group::Handle group;
    std::atomic<size_t> operations{0};  // handles that were not freed
    std::mutex windows_lock;
    std::vector<std::unique_ptr<hanare_comm_window>> windows;  // under windows_lock
    std::mutex signals_lock;  // making the queue, and setting handlers
    std::vector<std::unique_ptr<hanare::capi::SignalHandler>> signal_handlers;  // also old ones
    std::unique_ptr<hanare::fabric::SignalQueue> signals;
};

namespace hanare::capi {

// An entry point that works on an open communicator, of this process.
template <typename Body>
hanare_status on_comm(const char* function, hanare_comm* comm, Body body) noexcept {
    if (comm == nullptr) return report(null_argument(function, "comm"));
    return guarded(function, [&]() -> Result<void> {
        HANARE_TRY(comm->communicator->check_process());
        return body(*comm);
    });
}

inline Result<void> check_pointer(const char* what, const void* pointer, size_t bytes = 1) {
    if (pointer != nullptr || bytes == 0) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s must not be NULL", what);
}

inline std::span<const std::byte> bytes_at(const void* address, size_t bytes) {
    return {static_cast<const std::byte*>(address), bytes};
}
inline std::span<std::byte> room_at(void* address, size_t bytes) {
    return {static_cast<std::byte*>(address), bytes};
}

// Where an operation takes place, as all of them are told.
struct Target {
    uint32_t task = 0;
    const hanare_capability* capability = nullptr;
    uint64_t offset = 0;
    int timeout_ms = 0;
};
inline Result<void> aim(fabric::Operation& operation, fabric::Kind kind, const Target& target) {
    HANARE_TRY(check_pointer("capability", target.capability));
    operation.kind = kind;
    operation.capability = std::bit_cast<fabric::Capability>(*target.capability);
    operation.offset = target.offset;
    operation.deadline_ns = job::deadline_after(target.timeout_ms);
    return {};
}

inline Result<void> make_fetch(fabric::Operation& operation, const Target& target,
                               hanare_fetch_op op, uint32_t width, uint64_t operand,
                               uint64_t compare) {
    HANARE_TRY(aim(operation, fabric::Kind::kFetch, target));
    if (op < HANARE_FETCH_ADD || op > HANARE_FETCH_COMPARE_SWAP || (width != 4 && width != 8)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "fetch-op %d on a word of %u bytes; there are 1 to 6, on 4 or 8 bytes",
                    static_cast<int>(op), width);
    }
    operation.fetch_op = static_cast<fabric::FetchOp>(op);
    operation.width = static_cast<uint8_t>(width);
    operation.operand = operand;
    operation.compare = compare;
    return {};
}

// Puts, and whatever carries something there.
inline Result<void> make_sending(fabric::Operation& operation, fabric::Kind kind,
                                 const Target& target, const void* source, size_t bytes) {
    HANARE_TRY(aim(operation, kind, target));
    HANARE_TRY(check_pointer("source", source, bytes));
    operation.source = bytes_at(source, bytes);
    return {};
}

inline Result<void> make_fetching(fabric::Operation& operation, fabric::Kind kind,
                                  const Target& target, void* room, size_t bytes) {
    HANARE_TRY(aim(operation, kind, target));
    HANARE_TRY(check_pointer("destination", room, bytes));
    operation.destination = room_at(room, bytes);
    return {};
}

}  // namespace hanare::capi
