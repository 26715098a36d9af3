// SPDX-License-Identifier: Apache-2.0
//
// Watch: what a task records for the report of HANARE_DSM_REPORT (watch_report.hpp): faults of each
// block, which bytes of it this task has written, and which code has touched it.  There is one only
// where a report is wanted; tables are reserved before the program runs.
//
// note_*(): any thread, async-signal-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "dsm/segment.hpp"
#include "sys/sparse_memory.hpp"

namespace hanare::dsm {

class Watch {
public:
    static constexpr uint32_t kSitesMax = 4096;
    static constexpr uint32_t kNoSite = 0;
    static constexpr size_t kWrittenWords = kBlockBytes / 64;  // a bit for each byte

    struct BlockNotes {
        std::atomic<uint32_t> reads;
        std::atomic<uint32_t> writes;
        std::atomic<uint32_t> fetched;
        std::atomic<uint32_t> dropped;
        std::atomic<uint32_t> diffs;
        std::atomic<uint32_t> read_site;  // the last one, plus one
        std::atomic<uint32_t> write_site;
        std::atomic<uint32_t> unused;
        std::atomic<uint64_t> diff_bytes;
    };
    // An instruction that has raised faults; and from where a library was called, if it is in one.
    struct Site {
        std::atomic<uint64_t> key;
        std::atomic<uint64_t> instruction;
        std::atomic<uint64_t> caller;
        std::atomic<uint64_t> reads;
        std::atomic<uint64_t> writes;
    };

    static Result<std::unique_ptr<Watch>> make(uint32_t blocks);

    // The access at `offset` of the block has raised SIGBUS, and was served.
    struct Fault {
        uint32_t block = 0;
        uint32_t offset = 0;
        bool write = false;
        uint64_t instruction = 0;
        const uint64_t* stack = nullptr;
    };
    void note_fault(const Fault& fault) noexcept;
    void note_fetched(uint32_t first, uint32_t count) noexcept;
    void note_dropped(uint32_t first, uint32_t count) noexcept;
    // What differs from the twin goes home, as `bytes`.
    void note_diff(uint32_t block, const std::byte* twin, const std::byte* now,
                   size_t bytes) noexcept;

    // Nothing was noted of blocks from here on.
    uint32_t end() const noexcept { return end_.load(); }
    const BlockNotes& block(uint32_t number) const noexcept { return notes()[number]; }
    const std::atomic<uint64_t>* written(uint32_t number) const noexcept {
        return written_words(number);
    }
    const Site& site(uint32_t number) const noexcept { return sites_[number]; }

private:
    Watch(sys::SparseMemory notes, sys::SparseMemory written);

    BlockNotes* notes() const noexcept { return reinterpret_cast<BlockNotes*>(notes_.address()); }
    std::atomic<uint64_t>* written_words(uint32_t block) const noexcept {
        return reinterpret_cast<std::atomic<uint64_t>*>(written_.address()) + block * kWrittenWords;
    }
    BlockNotes& at(uint32_t block) noexcept;
    uint32_t site_of(const Fault& fault) noexcept;

    sys::SparseMemory notes_;
    sys::SparseMemory written_;
    std::unique_ptr<Site[]> sites_;
    std::atomic<uint32_t> end_{0};
    uint64_t program_begin_ = 0;  // the addresses of the program itself, without libraries
    uint64_t program_end_ = 0;
};

// "[FILE+0xOFFSET]" of the module in which the address is, as it is before it is loaded.
std::string place_of_code(uint64_t address);

}  // namespace hanare::dsm
