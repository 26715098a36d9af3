// SPDX-License-Identifier: Apache-2.0
#include "dsm/notices.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::dsm {

static_assert(Notices::kRingBytes % sizeof(Run) == 0);

Result<Notices> Notices::make(uint32_t rank, uint32_t size) {
    HANARE_TRY_ASSIGN(auto rings,
                      sys::SparseMemory::reserve(size * (kRingBytes + sizeof(uint64_t))));
    return Notices(rank, size, std::move(rings));
}

void Notices::copy_positions(std::span<uint64_t> room) const noexcept {
    for (uint32_t task = 0; task < size_; ++task) room[task] = position(task);
}

Notices::Pieces Notices::pieces(uint32_t task, uint64_t from, uint64_t bytes) const noexcept {
    std::byte* const ring = rings_.address() + task * kRingBytes;
    const uint64_t at = from % kRingBytes;
    const uint64_t first = std::min(bytes, kRingBytes - at);
    return {{ring + at, first}, {ring, bytes - first}};
}

// The fence keeps what is filled behind the word; who reads has its own order, that of its
// requests.
void Notices::prepare(uint32_t task, uint64_t position) noexcept {
    if (position <= prepared(task).load(std::memory_order_relaxed)) return;
    prepared(task).store(position, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Notices::append(std::span<const Run> runs) noexcept {
    constexpr size_t kRunsMax = kRangeBytesMax / 4 / sizeof(Run);
    if (runs.size() > kRunsMax) runs = {&kAllBlocks, 1};
    uint64_t at = position(rank_);
    prepare(rank_, at + runs.size_bytes());
    for (const Run& run : runs) {
        std::memcpy(pieces(rank_, at, sizeof run).first.data(), &run, sizeof run);
        at += sizeof run;
    }
    extend(rank_, at);
}

bool Notices::may_be_known(std::span<const uint64_t> known) const noexcept {
    const auto is_whole = [](uint64_t position) { return position % sizeof(Run) == 0; };
    return std::ranges::all_of(known, is_whole) && known[rank_] <= position(rank_);
}

bool Notices::take_in(std::span<const Said> said, std::span<const std::byte> logs) noexcept {
    for (uint32_t task = 0; task < size_; ++task) {
        const uint64_t known_here = position(task);
        const auto [position, begin] = said[task];
        if (position < begin || position - begin > logs.size()) return false;
        const auto log = logs.first(position - begin);
        logs = logs.subspan(log.size());
        if (position <= known_here) continue;
        if (known_here < begin) return false;
        const auto news = log.subspan(known_here - begin);
        prepare(task, position);
        const auto parts = pieces(task, known_here, news.size());
        std::memcpy(parts.first.data(), news.data(), parts.first.size());
        std::memcpy(parts.second.data(), news.data() + parts.first.size(), parts.second.size());
    }
    return true;
}

void Notices::fill_with_all(uint32_t task, uint64_t from, uint64_t bytes) noexcept {
    for (uint64_t at = from; at < from + bytes; at += sizeof kAllBlocks) {
        std::memcpy(pieces(task, at, sizeof kAllBlocks).first.data(), &kAllBlocks,
                    sizeof kAllBlocks);
    }
}

void read_runs(const Notices::Pieces& pieces, RunList& runs) noexcept {
    for (const auto& piece : {pieces.first, pieces.second}) {
        for (size_t at = 0; at + sizeof(Run) <= piece.size(); at += sizeof(Run)) {
            Run run;
            std::memcpy(&run, piece.data() + at, sizeof run);
            runs.add(run);
        }
    }
}

}  // namespace hanare::dsm
