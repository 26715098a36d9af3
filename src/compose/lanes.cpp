// SPDX-License-Identifier: Apache-2.0
#include "compose/lanes.hpp"

#include <bit>

#include "sys/lock.hpp"

namespace hanare::compose {

namespace {

// Until another thread's transfer is over.
constexpr uint32_t kPause_us = 50;

void carry_out_alone(Piece& piece) noexcept {
    store::IoRequest& request = piece.request;
    store::Store& store = piece.member->store();
    request.status = request.kind == store::IoKind::kRead
                         ? store.read(request.offset, request.memory, request.bytes)
                         : store.write(request.offset, request.memory, request.bytes);
}

}  // namespace

Result<Lanes> Lanes::make() {
    HANARE_TRY_ASSIGN(auto memory, sys::Mapping::reserve(kLanes * kLaneBytes, kOsPageBytes));
    return Lanes(std::move(memory));
}

Lanes::Lane::Lane(Lanes& lanes) noexcept : lanes_(lanes) {
    for (;;) {
        uint32_t used = lanes_.used_.load();
        number_ = static_cast<uint32_t>(std::countr_one(used));
        if (number_ >= kLanes) {
            sys::yield_for_us(kPause_us);
            continue;
        }
        if (lanes_.used_.compare_exchange_strong(used, used | uint32_t{1} << number_)) break;
    }
    memory_ = lanes_.memory_.address() + number_ * kLaneBytes;
}

Lanes::Lane::~Lane() { lanes_.used_.fetch_and(~(uint32_t{1} << number_)); }

// Where one cannot be started (a server's sealed write, a file without O_DIRECT), the others are
// under way while it is waited for.
void Lanes::Lane::carry_out(std::span<Piece> pieces) noexcept {
    const bool is_alone = pieces.size() == 1;
    for (Piece& piece : pieces) {
        store::IoRequest* const request = &piece.request;
        piece.transfers = is_alone ? nullptr : piece.member->lane(number_);
        if (piece.transfers != nullptr && piece.transfers->start(&request, 1) == 0) {
            piece.transfers = nullptr;
        }
    }
    for (Piece& piece : pieces) {
        if (piece.transfers == nullptr) carry_out_alone(piece);
    }
    for (Piece& piece : pieces) {
        if (piece.transfers == nullptr) continue;
        while (piece.transfers->next_completed(true) == nullptr) {
        }
    }
}

}  // namespace hanare::compose
