// SPDX-License-Identifier: Apache-2.0
//
// The table's form: Linux Standard Base Core, ".eh_frame_hdr".  Only what GNU ld, lld, gold and
// mold write is read: a sorted table of 32-bit distances.
#include "hook/rewrite/code_image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace hanare::hook {

namespace {

// Encodings of pointers in .eh_frame_hdr.
constexpr uint8_t kUnsigned4 = 0x03;
constexpr uint8_t kDistance4FromTable = 0x3b;

// Code that no description covers is at most so far behind code that one does; farther away there
// may be tables.
constexpr uint64_t kGapBytesMax = 64;

template <typename T>
T read_as(const uint8_t* place) noexcept {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

}  // namespace

class CodeImage::Builder {
public:
    void add(const ElfW(Phdr) & header, std::span<const uint8_t> bytes) noexcept {
        if (image_.all_count_ == kSegmentsMax || bytes.empty()) return;
        image_.all_[image_.all_count_++] = {.address = header.p_vaddr, .bytes = bytes};
        if ((header.p_flags & (PF_X | PF_W)) != PF_X) return;
        image_.segments_[image_.segment_count_++] = bytes;
    }
    CodeImage finish(uint64_t table_address) noexcept {
        if (table_address != 0) image_.read_table(table_address);
        return image_;
    }

private:
    CodeImage image_;
};

CodeImage CodeImage::of_loaded(const dl_phdr_info& module) noexcept {
    Builder builder;
    uint64_t table_address = 0;
    for (const ElfW(Phdr) & header : std::span(module.dlpi_phdr, module.dlpi_phnum)) {
        if (header.p_type == PT_GNU_EH_FRAME) table_address = header.p_vaddr;
        if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
        const auto* place = reinterpret_cast<const uint8_t*>(module.dlpi_addr + header.p_vaddr);
        builder.add(header, {place, header.p_filesz});
    }
    return builder.finish(table_address);
}

std::optional<CodeImage> CodeImage::of_file(std::span<const uint8_t> file) noexcept {
    if (file.size() < sizeof(ElfW(Ehdr))) return std::nullopt;
    const auto elf = read_as<ElfW(Ehdr)>(file.data());
    if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_machine != EM_X86_64 || elf.e_phentsize != sizeof(ElfW(Phdr)) ||
        elf.e_phoff > file.size() ||
        elf.e_phnum > (file.size() - elf.e_phoff) / sizeof(ElfW(Phdr))) {
        return std::nullopt;
    }
    Builder builder;
    uint64_t table_address = 0;
    for (size_t index = 0; index < elf.e_phnum; ++index) {
        const auto header =
            read_as<ElfW(Phdr)>(file.data() + elf.e_phoff + index * sizeof(ElfW(Phdr)));
        if (header.p_type == PT_GNU_EH_FRAME) table_address = header.p_vaddr;
        if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
        if (header.p_offset > file.size() || header.p_filesz > file.size() - header.p_offset)
            continue;
        builder.add(header, file.subspan(header.p_offset, header.p_filesz));
    }
    return builder.finish(table_address);
}

uint64_t CodeImage::address_of(const uint8_t* place) const noexcept {
    for (const Segment& segment : std::span(all_.data(), all_count_)) {
        const uint8_t* begin = segment.bytes.data();
        if (place >= begin && place < begin + segment.bytes.size()) {
            return segment.address + static_cast<uint64_t>(place - begin);
        }
    }
    return 0;
}

const uint8_t* CodeImage::place_of(uint64_t address) const noexcept {
    for (const Segment& segment : std::span(all_.data(), all_count_)) {
        if (address >= segment.address && address - segment.address < segment.bytes.size()) {
            return segment.bytes.data() + (address - segment.address);
        }
    }
    return nullptr;
}

Code CodeImage::segment_around(const uint8_t* place) const noexcept {
    for (const Code& segment : code()) {
        if (place >= segment.data() && place < segment.data() + segment.size()) return segment;
    }
    return {};
}

void CodeImage::read_table(uint64_t address) noexcept {
    const uint8_t* header = place_of(address);
    if (header == nullptr) return;
    const Code rest = [&] {
        for (const Segment& segment : std::span(all_.data(), all_count_)) {
            const uint8_t* end = segment.bytes.data() + segment.bytes.size();
            if (header >= segment.bytes.data() && header < end) return Code(header, end);
        }
        return Code();
    }();
    constexpr size_t kHeaderBytes = 12;  // version, three encodings, distance to .eh_frame, count
    if (rest.size() < kHeaderBytes || header[0] != 1 || header[2] != kUnsigned4 ||
        header[3] != kDistance4FromTable || (address & 3) != 0) {
        return;
    }
    const auto count = read_as<uint32_t>(header + 8);
    if (count == 0 || count > (rest.size() - kHeaderBytes) / sizeof(Entry)) return;
    table_address_ = address;
    table_ = {reinterpret_cast<const Entry*>(header + kHeaderBytes), count};
}

uint64_t CodeImage::function_start(size_t index) const noexcept {
    return table_address_ + static_cast<uint64_t>(static_cast<int64_t>(table_[index].function));
}

uint64_t CodeImage::description_of(size_t index) const noexcept {
    return table_address_ + static_cast<uint64_t>(static_cast<int64_t>(table_[index].description));
}

size_t CodeImage::functions_until(uint64_t address) const noexcept {
    size_t low = 0;
    size_t high = table_.size();
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (function_start(middle) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The description's length, the distance to its frame's common part, the function's beginning as a
// distance from where that is written, the function's length.  With any other encoding the second
// look at the beginning does not agree with the first, and the next function is the end.
uint64_t CodeImage::function_end(size_t index) const noexcept {
    const uint64_t start = function_start(index);
    const uint64_t next = index + 1 < table_.size() ? function_start(index + 1) : UINT64_MAX;
    const uint64_t description = description_of(index);
    const uint8_t* place = place_of(description);
    if (place == nullptr || place_of(description + 15) != place + 15) return next;
    const auto distance = static_cast<uint64_t>(static_cast<int64_t>(read_as<int32_t>(place + 8)));
    if (description + 8 + distance != start) return next;
    return std::min(next, start + read_as<uint32_t>(place + 12));
}

Code CodeImage::function_around(const uint8_t* place) const noexcept {
    const Code segment = segment_around(place);
    if (table_.empty() || segment.empty()) return segment;
    const uint64_t address = address_of(place);
    const uint64_t segment_start = address - static_cast<uint64_t>(place - segment.data());
    const uint64_t segment_end = segment_start + segment.size();
    const size_t low = functions_until(address);
    uint64_t begin = segment_start;
    uint64_t end = low < table_.size() ? function_start(low) : segment_end;
    if (low > 0) {
        begin = std::max(segment_start, function_start(low - 1));
        const uint64_t own_end = std::max(segment_start, function_end(low - 1));
        (address < own_end ? end : begin) = own_end;
        if (address >= own_end && address - own_end > kGapBytesMax) return {};
    } else if (address - segment_start > kGapBytesMax) {
        return {};
    }
    end = std::min(end, segment_end);
    if (begin > address || end <= address) return {};
    return segment.subspan(begin - segment_start, end - begin);
}

// The letter S among those that describe the description's common part.
bool CodeImage::is_signal_trampoline(const uint8_t* place) const noexcept {
    constexpr uint64_t kLettersAt = 9;  // behind length, zero and version
    constexpr uint64_t kLettersMax = 8;
    const uint64_t address = address_of(place);
    const size_t count = functions_until(address);
    if (count == 0 || function_end(count - 1) <= address) return false;
    const uint64_t description = description_of(count - 1);
    const uint8_t* to_common = place_of(description + 4);
    if (to_common == nullptr || place_of(description + 7) != to_common + 3) return false;
    const uint64_t common = description + 4 - read_as<uint32_t>(to_common);
    for (uint64_t at = common + kLettersAt; at < common + kLettersAt + kLettersMax; ++at) {
        const uint8_t* letter = place_of(at);
        if (letter == nullptr || *letter == 0) return false;
        if (*letter == 'S') return true;
    }
    return false;
}

}  // namespace hanare::hook
