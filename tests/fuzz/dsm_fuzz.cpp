// SPDX-License-Identifier: Apache-2.0
//
// What a peer says to shared memory: diffs, runs of notices, messages of barriers with positions,
// and questions about blocks.  Nothing may be touched but the blocks and the rings, and what was
// refused or taken leaves all in order.
//
// The first byte says which.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "dsm/diff.hpp"
#include "dsm/home_memory.hpp"
#include "dsm/notices.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::dsm {
namespace {

constexpr uint32_t kBlocks = 600;
constexpr uint32_t kTasks = 3;
using Input = std::span<const std::byte>;

template <typename T>
T take(Input& input) {
    T value = {};
    const size_t bytes = std::min(input.size(), sizeof value);
    std::memcpy(&value, input.data(), bytes);
    input = input.subspan(bytes);
    return value;
}

void fuzz_diff(Input input) {
    std::vector<std::byte> memory(kBlocks * kBlockBytes);
    const BlockPlace place = [](void* context, uint32_t block) noexcept -> std::byte* {
        auto& all = *static_cast<std::vector<std::byte>*>(context);
        return block < kBlocks ? all.data() + size_t{block} * kBlockBytes : nullptr;
    };
    // No copy: what lies behind is not the diff's.
    const auto bytes = std::make_unique<std::byte[]>(input.size());
    std::ranges::copy(input, bytes.get());
    const size_t used = apply_diff({bytes.get(), input.size()}, place, &memory);
    HANARE_ASSERT(used <= input.size());
    if (used != 0) HANARE_ASSERT(diff_bytes({bytes.get(), input.size()}) == used);
}

void fuzz_runs(Input input) {
    auto list = RunList::make(1 + take<uint8_t>(input)).value();
    std::vector<std::byte> bytes(input.begin(), input.end());
    const size_t first = bytes.empty() ? 0 : std::to_integer<size_t>(bytes[0]) % bytes.size();
    read_runs({std::span(bytes).first(first), std::span(bytes).subspan(first)}, list);
    list.make_disjoint();
    uint64_t behind = 0;
    for (const Run& run : list.runs()) {
        HANARE_ASSERT(run.count > 0 && run.count <= UINT32_MAX - run.first);
        HANARE_ASSERT(run.first > behind || behind == 0);
        behind = uint64_t{run.first} + run.count;
        HANARE_ASSERT(list.contains(run.first) && list.contains(run.first + run.count - 1));
    }
}

// As HomeProtocol does with a message.
void fuzz_barrier(Input input) {
    auto notices = Notices::make(1, kTasks).value();
    auto runs = RunList::make(1000).value();
    while (!input.empty()) {
        std::vector<Said> said(kTasks);
        std::vector<uint64_t> known(kTasks);
        for (uint32_t task = 0; task < kTasks; ++task) {
            said[task] = {take<uint64_t>(input), take<uint64_t>(input)};
            known[task] = said[task].position;
        }
        if (!notices.may_be_known(known)) continue;
        const size_t bytes = std::min<size_t>(input.size(), take<uint16_t>(input));
        const auto logs = input.first(std::min(bytes, input.size()));
        input = input.subspan(logs.size());
        if (!notices.take_in(said, logs)) continue;
        for (uint32_t task = 0; task < kTasks; ++task) {
            const uint64_t begin = notices.position(task);
            if (known[task] <= begin) continue;
            if (known[task] - begin <= Notices::kRangeBytesMax) {
                read_runs(notices.pieces(task, begin, known[task] - begin), runs);
            }
            notices.extend(task, known[task]);
        }
        const Run own = {take<uint32_t>(input), 1};
        notices.append({&own, 1});
    }
}

struct Home {
    Home() : peers(0, kTasks, counters) {
        segment = Segment::reserve(reinterpret_cast<std::byte*>(uint64_t{1} << 45),
                                   size_t{kBlocks} * kBlockBytes)
                      .value();
        HANARE_ASSERT(segment.show(sys::create_shared_memory(segment.bytes()).value()).has_value());
        auto made = HomeMemory::make(segment, peers, counters);
        // No userfaultfd for this user: nothing to be found out.
        if (made) memory = std::move(*made);
    }
    Counters counters;
    Segment segment;
    Peers peers;
    std::unique_ptr<HomeMemory> memory;
};

void fuzz_questions(Input input) {
    static Home home;
    if (home.memory == nullptr) return;
    HomeAnswer answer;
    uint16_t homes[HomeMemory::kClaimsMax];
    uint8_t grants[Fetch::kBlocksMax];
    static std::array<std::byte, kSnapshotBlocksMax * kBlockBytes> snapshot;
    while (!input.empty()) {
        const auto kind = take<uint8_t>(input);
        const bool is_near = (kind & 16) != 0;
        const auto task = take<uint8_t>(input);
        const uint64_t first = is_near ? take<uint16_t>(input) % kBlocks : take<uint64_t>(input);
        const uint64_t count = is_near ? take<uint8_t>(input) % 65 : take<uint64_t>(input);
        switch (kind % 5) {
            case 0: home.memory->claim_for(task, first, count, 1 + count % 7, homes); break;
            case 1:
                if (count > Fetch::kBlocksMax) break;
                if (home.memory->note_fetch(first, count, answer)) {
                    HANARE_ASSERT(answer.count <= count && answer.home < kTasks);
                }
                break;
            case 2:
                if (count <= kSnapshotBlocksMax &&
                    home.memory->take_snapshot(first, count, task, answer, snapshot.data())) {
                    HANARE_ASSERT(answer.count <= count && answer.home < kTasks);
                }
                break;
            case 3:
                if (count > Fetch::kBlocksMax) break;
                if (home.memory->move_to(task, first, count, answer, grants)) {
                    HANARE_ASSERT(answer.count <= count && answer.home < kTasks);
                }
                break;
            default: {
                const auto diffs = input.first(std::min<size_t>(input.size(), count));
                input = input.subspan(diffs.size());
                if (home.memory->apply(diffs, answer)) HANARE_ASSERT(answer.count <= diffs.size());
            }
        }
    }
}

}  // namespace
}  // namespace hanare::dsm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return 0;
    const hanare::dsm::Input input(reinterpret_cast<const std::byte*>(data + 1), bytes - 1);
    switch (data[0] % 4) {
        case 0: hanare::dsm::fuzz_diff(input); break;
        case 1: hanare::dsm::fuzz_runs(input); break;
        case 2: hanare::dsm::fuzz_barrier(input); break;
        default: hanare::dsm::fuzz_questions(input);
    }
    return 0;
}
