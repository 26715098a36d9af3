// SPDX-License-Identifier: Apache-2.0
#include "dsm/notices.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::dsm {

static_assert(Notices::kRingBytes % sizeof(Run) == 0);

Result<Notices> Notices::make(uint32_t rank, uint32_t size) {
    HANARE_TRY_ASSIGN(auto rings, sys::SparseMemory::reserve(size * kRingBytes));
    return Notices(rank, size, std::move(rings));
}

std::vector<uint64_t> Notices::positions() const {
    std::vector<uint64_t> all(size_);
    for (uint32_t task = 0; task < size_; ++task) all[task] = position(task);
    return all;
}

Notices::Pieces Notices::pieces(uint32_t task, uint64_t from, uint64_t bytes) const noexcept {
    std::byte* const ring = rings_.address() + task * kRingBytes;
    const uint64_t at = from % kRingBytes;
    const uint64_t first = std::min(bytes, kRingBytes - at);
    return {{ring + at, first}, {ring, bytes - first}};
}

void Notices::append(std::span<const Run> runs) noexcept {
    constexpr size_t kRunsMax = kRangeBytesMax / 4 / sizeof(Run);
    constexpr Run kAll = {0, UINT32_MAX};
    if (runs.size() > kRunsMax) runs = {&kAll, 1};
    uint64_t at = position(rank_);
    for (const Run& run : runs) {
        std::memcpy(pieces(rank_, at, sizeof run).first.data(), &run, sizeof run);
        at += sizeof run;
    }
    extend(rank_, at);
}

void read_runs(const Notices::Pieces& pieces, std::vector<Run>& runs) {
    for (const auto& piece : {pieces.first, pieces.second}) {
        for (size_t at = 0; at + sizeof(Run) <= piece.size(); at += sizeof(Run)) {
            Run run;
            std::memcpy(&run, piece.data() + at, sizeof run);
            run.count = std::min(run.count, UINT32_MAX - run.first);
            runs.push_back(run);
        }
    }
}

void make_disjoint(std::vector<Run>& runs) {
    std::ranges::sort(runs, {}, &Run::first);
    size_t kept = 0;
    for (const Run& run : runs) {
        if (run.count == 0) continue;
        if (kept > 0 && run.first <= runs[kept - 1].first + runs[kept - 1].count) {
            Run& last = runs[kept - 1];
            last.count = std::max(last.first + last.count, run.first + run.count) - last.first;
        } else {
            runs[kept++] = run;
        }
    }
    runs.resize(kept);
}

}  // namespace hanare::dsm
