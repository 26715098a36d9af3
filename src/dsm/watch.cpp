// SPDX-License-Identifier: Apache-2.0
#include "dsm/watch.hpp"

#include <algorithm>
#include <cstdio>
#include <limits.h>
#include <link.h>
#include <unistd.h>
#include <utility>

namespace hanare::dsm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

template <typename Count>
void add(std::atomic<Count>& count, Count more) noexcept {
    count.fetch_add(more, kRelaxed);
}

struct Range {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
};

Range range_of(const dl_phdr_info& module) {
    Range range;
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = module.dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        range.begin = std::min<uint64_t>(range.begin, module.dlpi_addr + part.p_vaddr);
        range.end = std::max<uint64_t>(range.end, module.dlpi_addr + part.p_vaddr + part.p_memsz);
    }
    return range;
}

}  // namespace

Result<std::unique_ptr<Watch>> Watch::make(uint32_t blocks) {
    HANARE_TRY_ASSIGN(auto notes, sys::SparseMemory::reserve(blocks * sizeof(BlockNotes)));
    HANARE_TRY_ASSIGN(auto written, sys::SparseMemory::reserve(size_t{blocks} * kBlockBytes / 8));
    return std::unique_ptr<Watch>(new Watch(std::move(notes), std::move(written)));
}

Watch::Watch(sys::SparseMemory notes, sys::SparseMemory written)
    : notes_(std::move(notes)),
      written_(std::move(written)),
      sites_(std::make_unique<Site[]>(kSitesMax)) {
    Range program;
    // The first one is the program.
    dl_iterate_phdr(
        [](dl_phdr_info* module, size_t, void* range) {
            *static_cast<Range*>(range) = range_of(*module);
            return 1;
        },
        &program);
    program_begin_ = program.begin;
    program_end_ = program.end;
}

Watch::BlockNotes& Watch::at(uint32_t block) noexcept {
    uint32_t end = end_.load(kRelaxed);
    while (end <= block && !end_.compare_exchange_weak(end, block + 1)) {
    }
    return notes()[block];
}

void Watch::note_fault(const Fault& fault) noexcept {
    BlockNotes& notes = at(fault.block);
    const uint32_t site = site_of(fault);
    add(fault.write ? notes.writes : notes.reads, 1u);
    (fault.write ? notes.write_site : notes.read_site).store(site, kRelaxed);
    if (!fault.write) return;
    written_words(fault.block)[fault.offset / 64].fetch_or(uint64_t{1} << fault.offset % 64,
                                                           kRelaxed);
}

void Watch::note_fetched(uint32_t first, uint32_t count) noexcept {
    for (uint32_t i = 0; i < count; ++i) add(at(first + i).fetched, 1u);
}

void Watch::note_dropped(uint32_t first, uint32_t count) noexcept {
    for (uint32_t i = 0; i < count; ++i) add(at(first + i).dropped, 1u);
}

void Watch::note_diff(uint32_t block, const std::byte* twin, const std::byte* now,
                      size_t bytes) noexcept {
    BlockNotes& notes = at(block);
    add(notes.diffs, 1u);
    add(notes.diff_bytes, uint64_t{bytes});
    for (size_t word = 0; word < kWrittenWords; ++word) {
        uint64_t changed = 0;
        for (size_t i = 0; i < 64; ++i) {
            changed |= uint64_t{twin[word * 64 + i] != now[word * 64 + i]} << i;
        }
        if (changed != 0) written_words(block)[word].fetch_or(changed, kRelaxed);
    }
}

// Where a library has done it, by way of whom: its functions that copy have no frame, so that the
// address to which they return lies on top of the stack.
uint32_t Watch::site_of(const Fault& fault) noexcept {
    const auto is_program = [&](uint64_t address) {
        return address >= program_begin_ && address < program_end_;
    };
    uint64_t caller = 0;
    if (!is_program(fault.instruction) && fault.stack != nullptr && is_program(*fault.stack)) {
        caller = *fault.stack;
    }
    const uint64_t key = (fault.instruction * 0x9e3779b97f4a7c15 ^ caller) | 1;
    for (uint32_t i = 0; i < kSitesMax; ++i) {
        const auto number = static_cast<uint32_t>((key >> 40) + i) % kSitesMax;
        Site& site = sites_[number];
        uint64_t nothing = 0;
        if (site.key.compare_exchange_strong(nothing, key)) {
            site.instruction.store(fault.instruction, kRelaxed);
            site.caller.store(caller, kRelaxed);
        } else if (nothing != key) {
            continue;
        }
        add(fault.write ? site.writes : site.reads, uint64_t{1});
        return number + 1;
    }
    return kNoSite;
}

std::string place_of_code(uint64_t address) {
    struct Search {
        uint64_t address;
        bool is_first = true;
        std::string found = {};
    } search = {address};
    dl_iterate_phdr(
        [](dl_phdr_info* module, size_t, void* context) {
            auto& wanted = *static_cast<Search*>(context);
            const bool is_program = std::exchange(wanted.is_first, false);
            const Range range = range_of(*module);
            if (wanted.address < range.begin || wanted.address >= range.end) return 0;
            wanted.found = module->dlpi_name == nullptr ? "" : module->dlpi_name;
            char path[PATH_MAX] = "";
            if (is_program && readlink("/proc/self/exe", path, sizeof path - 1) > 0) {
                wanted.found = path;
            }
            char offset[32];
            std::snprintf(offset, sizeof offset, "+0x%llx]",
                          static_cast<unsigned long long>(wanted.address - module->dlpi_addr));
            wanted.found = "[" + wanted.found + offset;
            return 1;
        },
        &search);
    return search.found.empty() ? "unknown code" : search.found;
}

}  // namespace hanare::dsm
