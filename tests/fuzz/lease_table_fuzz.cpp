// SPDX-License-Identifier: Apache-2.0
//
// What clients ask a memory server: questions of any content and size, from several connections
// that come and go.  No byte of the memory gets lost, and nothing is left when all have gone.
//
// Each question begins with a byte that says whose it is and how much of it is put right, and one
// for the room of its answer.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "server/lease_table.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kCallers = 3;

enum Help : uint8_t {
    kHead = 4,    // of the version, and of a question that there is
    kLease = 8,   // of a lease that there was
    kSmall = 16,  // about as many bytes as there are
    kName = 32,   // none
    kCut = 64,    // of a size that the input says
    kLeave = 128,
};

class Clients {
public:
    // What is left of the input.
    std::span<const uint8_t> ask(std::span<const uint8_t> input) {
        const uint8_t help = input[0];
        const size_t room_bytes = size_t{input[1]} * 9;
        input = input.subspan(2);
        const uint64_t caller = help % kCallers;
        if ((help & kLeave) != 0) {
            table_.caller_left(caller);
            check();
            return input;
        }
        std::array<std::byte, sizeof(lease::Question) + 8> bytes = {};
        size_t size = std::min(sizeof(lease::Question), input.size());
        std::memcpy(bytes.data(), input.data(), size);
        const auto rest = input.subspan(size);
        mend(bytes, help);
        size = (help & kCut) != 0 ? room_bytes % bytes.size() : sizeof(lease::Question);
        answer(caller, std::span(bytes).first(size), room_bytes);
        return rest;
    }
    void leave() {
        for (uint64_t caller = 0; caller < kCallers; ++caller) table_.caller_left(caller);
        check();
        HANARE_ASSERT(table_.status().leases.empty() && table_.status().leased_bytes == 0);
    }

private:
    void mend(std::span<std::byte> bytes, uint8_t help) const {
        lease::Question question;
        std::memcpy(&question, bytes.data(), sizeof question);
        if ((help & kHead) != 0) {
            question.version = lease::kMessageVersion;
            question.what = static_cast<lease::Ask>(1 + static_cast<uint16_t>(question.what) % 7);
        }
        if ((help & kLease) != 0 && !ids_.empty()) {
            question.lease = ids_[question.lease.number % ids_.size()];
        }
        if ((help & kSmall) != 0) question.bytes %= arena_->total_bytes() + kMiB;
        if ((help & kName) != 0) std::ranges::fill(question.client, '\0');
        std::memcpy(bytes.data(), &question, sizeof question);
    }
    void answer(uint64_t caller, std::span<const std::byte> question, size_t room_bytes) {
        std::vector<std::byte> room(room_bytes);
        size_t bytes = 0;
        const hanare_status status = table_.answer_call(caller, question, room, bytes);
        check();
        if (status != HANARE_STATUS_OK) return;
        lease::Answer answer;
        HANARE_ASSERT(bytes >= sizeof answer && bytes <= room.size());
        std::memcpy(&answer, room.data(), sizeof answer);
        if (answer.lease.number != 0) ids_.push_back(answer.lease);
    }
    void check() const {
        const LeaseTable::Status status = table_.status();
        HANARE_ASSERT(status.leased_bytes + status.free_bytes + status.unwiped_bytes ==
                      status.total_bytes);
        uint64_t leased = 0;
        for (const LeaseTable::Row& row : status.leases) leased += row.bytes;
        HANARE_ASSERT(leased == status.leased_bytes);
    }

    const std::unique_ptr<Arena> arena_ = Arena::open({.bytes = 256 * kMiB}).value();
    fabric::ExposedRegions regions_;
    LeaseTable table_{{.quota_bytes = 200 * kMiB, .leases_max = 100}, *arena_, regions_};
    std::vector<lease::LeaseId> ids_;
};

}  // namespace
}  // namespace hanare::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    hanare::server::Clients clients;
    std::span<const uint8_t> rest(data, bytes);
    while (rest.size() >= 2) rest = clients.ask(rest);
    clients.leave();
    return 0;
}
