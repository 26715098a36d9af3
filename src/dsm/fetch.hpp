// SPDX-License-Identifier: Apache-2.0
//
// Fetch: copies of some blocks from their home, on their way into this task's alias of them.  The
// home is told first, on the same connection, so that what it writes later is not overlooked; both
// requests go at once.  Async-signal-safe; the object stays where it is until end().
#pragma once

#include "dsm/notices.hpp"
#include "dsm/peers.hpp"
#include "dsm/segment.hpp"

namespace hanare::dsm {

class Fetch {
public:
    Fetch(uint32_t home, Run run) noexcept : home_(home), run_(run) {}

    uint32_t home() const noexcept { return home_; }
    const Run& run() const noexcept { return run_; }
    // Before it begins.
    bool follows(uint32_t block) const noexcept { return run_.first + run_.count == block; }
    void extend() noexcept { ++run_.count; }

    void begin(Peers& peers, const Segment& segment) noexcept {
        question_ = {.kind = QuestionKind::kFetch,
                     .from = peers.rank(),
                     .begin = run_.first,
                     .count = run_.count};
        notice_.kind = fabric::Kind::kCall;
        notice_.source = std::as_bytes(std::span(&question_, 1));
        read_.kind = fabric::Kind::kGet;
        read_.capability = peers.keys(home_).memory;
        read_.offset = uint64_t{run_.first} * kBlockBytes;
        read_.destination = {segment.alias(run_.first), size_t{run_.count} * kBlockBytes};
        peers.prepare(notice_);
        peers.prepare(read_);
        peers.post(home_, notice_);
        peers.post(home_, read_);
    }

    hanare_status end(Peers& peers) noexcept {
        const hanare_status told = peers.wait(home_, notice_);
        const hanare_status got = peers.wait(home_, read_);
        return told != HANARE_STATUS_OK ? told : got;
    }

private:
    const uint32_t home_;
    Run run_;
    Question question_;
    fabric::Operation notice_;
    fabric::Operation read_;
};

}  // namespace hanare::dsm
