// SPDX-License-Identifier: Apache-2.0
//
// Peers: the other tasks as the protocol reaches them: what it asks them (calls, answered by the
// thread that serves their connections), and what it reads and writes of the memory that they have
// exposed for it.  All links are made before the program runs, because fault handlers use them.
//
// Any thread, async-signal-safe once it is complete.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dsm/counters.hpp"
#include "fabric/link.hpp"
#include "hanare/status.h"

namespace hanare::dsm {

// What a task has exposed to the others.
struct PeerKeys {
    fabric::Capability memory;   // its alias, to be read
    fabric::Capability mail;     // to be written to, with words to wake it, and to be read
    fabric::Capability notices;  // its notice logs, to be read
};

enum class QuestionKind : uint32_t {
    kClaim = 1,       // begin, count: who is their home?  of as many as the upper half of count
                      // says: whoever asks, if nobody is
    kFetch = 2,       // begin, count: a copy is about to be read; answered by a HomeAnswer
    kApply = 3,       // diffs follow; or begin bytes of them are in the asker's mail; HomeAnswer
    kAllocate = 4,    // begin: bytes
    kFree = 5,        // begin: offset
    kLastHolder = 6,  // begin: a lock; the manager's; positions follow (LockAnswer)
    kHandOver = 7,    // begin: a lock; of who had it, or waits for it, before; the same
    kHandedOver = 8,  // begin: a lock; what comes with it follows (Locks)
    kDistribute = 9,  // begin: offset in the module whose name follows; count: bytes at the end
    kMove = 10,       // begin, count: as kFetch; and the asker wants to be their home (Grant)
    kSnapshot = 11,   // begin, count: as kFetch, but what is read are copies in the home's mail;
                      // upper half of count: the first one's number there, and kFollows
    // home_waits.hpp; positions follow where it says so
    kWait = 32,           // begin: condition, lock << 32; count: ticket
    kWake = 33,           // the same; count: how many at most
    kMakeSemaphore = 34,  // begin: its number; count: its count
    kEndSemaphore = 35,
    kTakeSemaphore = 36,  // count: ticket
    kPostSemaphore = 37,  // positions
    kWoken = 38,          // begin: ticket; positions, or nothing
    kMeet = 39,           // begin: id, tasks << 32; count: hash of these; positions
};

// Of kSnapshot's count: the asker needs these after each barrier.
inline constexpr uint64_t kFollows = uint64_t{1} << 63;

// Of blocks, or bytes of diffs, so many are at home here; the next one's home is rather that task.
struct HomeAnswer {
    uint32_t count = 0;
    uint32_t home = 0;
};

struct Question {
    QuestionKind kind = QuestionKind::kClaim;
    uint32_t from = 0;
    uint64_t begin = 0;
    uint64_t count = 0;
};

class Peers {
public:
    // How long who does not answer may take: one whose machine is gone is found sooner.  After that
    // it counts as lost: what it has made of a question is not known.
    static constexpr int kAnswerMs = 60'000;

    Peers(uint32_t rank, uint32_t size, Counters& counters)
        : rank_(rank), counters_(counters), links_(size), keys_(size) {}

    uint32_t rank() const noexcept { return rank_; }
    uint32_t size() const noexcept { return static_cast<uint32_t>(links_.size()); }
    void set(uint32_t rank, fabric::Link* link, const PeerKeys& keys) {
        links_[rank] = link;
        keys_[rank] = keys;
    }
    const PeerKeys& keys(uint32_t rank) const noexcept { return keys_[rank]; }

    // `answer` may be empty; *bytes, which may be null, is how long it was.
    hanare_status ask(uint32_t rank, std::span<const std::byte> question,
                      std::span<std::byte> answer = {}, size_t* bytes = nullptr) noexcept;

    // For who waits for several: each operation is posted once, and waited for.
    void prepare(fabric::Operation& operation) const noexcept;
    void post(uint32_t rank, fabric::Operation& operation) noexcept;
    // The same for what is counted otherwise.
    void post_apart(uint32_t rank, fabric::Operation& operation) noexcept {
        links_[rank]->post(operation);
    }
    hanare_status wait(uint32_t rank, fabric::Operation& operation) noexcept;

    // The first task that was found to be lost; nothing: none.
    static constexpr uint32_t kNobody = UINT32_MAX;
    uint32_t lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    void note_lost(uint32_t rank) noexcept {
        uint32_t nobody = kNobody;
        lost_.compare_exchange_strong(nobody, rank);
    }

    // What has failed in the middle of a release or an acquire: what this task has written, or what
    // it knows, is not whole, and nothing that orders accesses may succeed any more.
    hanare_status failure() const noexcept { return failure_.load(std::memory_order_acquire); }
    // The same, and where some task is lost: what was under way with it is not known, and where a
    // token is, may not be either.
    hanare_status trouble() const noexcept {
        return lost() != kNobody ? HANARE_STATUS_PEER_LOST : failure();
    }
    // Returns what it was given.
    hanare_status note_failure(hanare_status status) noexcept {
        hanare_status none = HANARE_STATUS_OK;
        failure_.compare_exchange_strong(none, status);
        return status;
    }

private:
    const uint32_t rank_;
    Counters& counters_;
    std::vector<fabric::Link*> links_;
    std::vector<PeerKeys> keys_;
    std::atomic<uint32_t> lost_{kNobody};
    std::atomic<hanare_status> failure_{HANARE_STATUS_OK};
};

// A question and what follows it, in one piece.
class QuestionText {
public:
    explicit QuestionText(const Question& question) noexcept { append(&question, sizeof question); }

    void append(const void* data, size_t bytes) noexcept;
    size_t room() const noexcept { return sizeof bytes_ - used_; }
    std::span<const std::byte> bytes() const noexcept { return {bytes_, used_}; }

private:
    size_t used_ = 0;
    std::byte bytes_[fabric::kMessageBytesMax];
};

}  // namespace hanare::dsm
