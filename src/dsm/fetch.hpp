// SPDX-License-Identifier: Apache-2.0
//
// Fetch: copies of some blocks from their home, on their way into this task's alias of them.  The
// home is told first, on the same connection, so that what it writes later is not overlooked; both
// requests go at once, but for How::asks_first.  Who wants to write asks to become their home
// (home_moves.cpp); where that is refused the copies are good all the same.  Of blocks that have
// another home by now it has none.  Async-signal-safe; the object stays where it is until end().
#pragma once

#include <algorithm>
#include <cstring>

#include "dsm/mail.hpp"
#include "dsm/notices.hpp"
#include "dsm/peers.hpp"
#include "dsm/segment.hpp"

namespace hanare::dsm {

// What is said of each block that was asked for by kMove.
struct Grant {
    static constexpr uint8_t kMoved = 1;
    static constexpr uint8_t kRefused = 2;  // and will be
    static constexpr uint8_t kMovesShift = 4;
};

class Fetch {
public:
    static constexpr uint32_t kBlocksMax = 64;

    // `asks_first`: what is in this task's memory now stays where the data does not come, because
    // it is a copy that is read still, or others may read it there (BlockState::is_needed).
    struct How {
        QuestionKind kind = QuestionKind::kFetch;
        bool asks_first = false;
        uint32_t place = 0;         // of kSnapshot: the first block's in the home's mail
        bool each_barrier = false;  // of kSnapshot: this is done after each barrier
    };
    Fetch(uint32_t home, Run run, How how) noexcept : home_(home), run_(run), how_(how) {}

    uint32_t home() const noexcept { return home_; }
    const Run& run() const noexcept { return run_; }
    bool asks_first() const noexcept { return how_.asks_first; }
    bool is_snapshot() const noexcept { return how_.kind == QuestionKind::kSnapshot; }
    // Before it begins.
    bool follows(uint32_t block) const noexcept { return run_.first + run_.count == block; }
    void extend() noexcept { ++run_.count; }

    void begin(Peers& peers, const Segment& segment) noexcept {
        question_ = {
            .kind = how_.kind,
            .from = peers.rank(),
            .begin = run_.first,
            .count = run_.count | uint64_t{how_.place} << 32 | (how_.each_barrier ? kFollows : 0)};
        notice_.kind = fabric::Kind::kCall;
        notice_.source = std::as_bytes(std::span(&question_, 1));
        notice_.destination = answer_;
        peers.prepare(notice_);
        peers.post(home_, notice_);
        if (!how_.asks_first) post_read(peers, segment, run_.count);
    }

    hanare_status end(Peers& peers, const Segment& segment) noexcept {
        const hanare_status told = peers.wait(home_, notice_);
        const hanare_status got = how_.asks_first ? HANARE_STATUS_OK : peers.wait(home_, read_);
        if (told != HANARE_STATUS_OK || got != HANARE_STATUS_OK) {
            return told != HANARE_STATUS_OK ? told : got;
        }
        std::memcpy(&said_, answer_, sizeof said_);
        const size_t grants = how_.kind == QuestionKind::kMove ? said_.count : 0;
        const bool is_sound = notice_.value() == sizeof said_ + grants &&
                              said_.count <= run_.count && said_.home < peers.size();
        if (!is_sound) return HANARE_STATUS_CORRUPT;
        if (!how_.asks_first || said_.count == 0) return HANARE_STATUS_OK;
        post_read(peers, segment, said_.count);
        return peers.wait(home_, read_);
    }

    // How many of the blocks have come, from the first on, and whose the next one is.
    uint32_t count() const noexcept { return said_.count; }
    uint32_t next_home() const noexcept { return said_.home; }
    uint8_t grant(uint32_t index) const noexcept {
        return std::to_integer<uint8_t>(answer_[sizeof said_ + index]);
    }

private:
    void post_read(Peers& peers, const Segment& segment, uint32_t count) noexcept {
        read_.kind = fabric::Kind::kGet;
        read_.capability = peers.keys(home_).memory;
        read_.offset = uint64_t{run_.first} * kBlockBytes;
        if (how_.kind == QuestionKind::kSnapshot) {
            read_.capability = peers.keys(home_).mail;
            read_.offset = mail_snapshot_offset(peers.size(), peers.rank()) +
                           uint64_t{how_.place} * kBlockBytes;
        }
        read_.destination = {segment.alias(run_.first), size_t{count} * kBlockBytes};
        peers.prepare(read_);
        peers.post(home_, read_);
    }

    const uint32_t home_;
    Run run_;
    const How how_;
    Question question_;
    HomeAnswer said_;
    std::byte answer_[sizeof(HomeAnswer) + kBlocksMax];
    fabric::Operation notice_;
    fabric::Operation read_;
};

}  // namespace hanare::dsm
