// SPDX-License-Identifier: Apache-2.0
//
// Acknowledgements that others give by fetch-ops on this task's control memory: up to 32 have a bit
// each in a slot.  Who gives it may first leave a failure there.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "job/communicator.hpp"

namespace hanare::job {

// What did not go well, and at which task.
struct Failure {
    hanare_status status = HANARE_STATUS_OK;
    uint32_t rank = 0;

    bool is_none() const noexcept { return status == HANARE_STATUS_OK; }
    // The first one stands.
    void note(hanare_status what, uint32_t where) noexcept {
        if (is_none()) *this = {what, where};
    }
    // As a word, which is 0 for none.  What cannot be a status becomes CORRUPT.
    uint64_t word() const noexcept;
    static Failure of(uint64_t word) noexcept;
    static Failure of(const Error& error, uint32_t where) noexcept { return {error.status, where}; }
};

// Which slots are in use.  Any thread.
class SlotTable {
public:
    explicit SlotTable(ControlWords& words) : words_(words), is_used_(ControlWords::kSlots) {}

    // An empty slot; LIMIT.
    Result<uint32_t> take();
    // Who is in `expected` and has not acknowledged yet still may: until then nobody gets the slot.
    void give_back(uint32_t slot, uint32_t expected) noexcept;

private:
    void reclaim();
    struct Late {
        uint32_t slot = 0;
        uint32_t expected = 0;
    };

    ControlWords& words_;
    std::mutex lock_;
    std::vector<bool> is_used_;  // under lock_
    std::vector<Late> late_;     // under lock_
};

// Where to acknowledge something.
struct AcknowledgementPlace {
    uint32_t rank = 0;
    uint32_t slot = 0;
    uint32_t index = 0;           // of the bit
    bool is_for_courier = false;  // who has to be told, too
};

// One acknowledgement on its way.
class Acknowledgement {
public:
    // Begins it.  The link outlives it.
    Acknowledgement(const Peer::Way& way, const AcknowledgementPlace& place, const Failure& failure,
                    uint64_t deadline_ns);
    ~Acknowledgement() { finish(); }
    Acknowledgement(const Acknowledgement&) = delete;
    Acknowledgement& operator=(const Acknowledgement&) = delete;
    hanare_status finish() noexcept;

private:
    fabric::Link& link_;
    fabric::Operation failure_;
    fabric::Operation bit_;
    fabric::Operation bell_;
    fabric::Operation* last_ = nullptr;
};

}  // namespace hanare::job
