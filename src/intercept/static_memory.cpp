// SPDX-License-Identifier: Apache-2.0
#include "intercept/static_memory.hpp"

#include <algorithm>
#include <cstring>
#include <link.h>
#include <sys/mman.h>

#include "base/units.hpp"

namespace hanare::intercept {

namespace {

struct Bytes {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};

// The executable comes first.
int visit_executable(dl_phdr_info* module, size_t, void* context) {
    auto& largest = *static_cast<Bytes*>(context);
    for (size_t index = 0; index < module->dlpi_phnum; ++index) {
        const ElfW(Phdr)& header = module->dlpi_phdr[index];
        const bool is_data = header.p_type == PT_LOAD || header.p_type == kDlmSegment;
        if (!is_data || (header.p_flags & PF_W) == 0) continue;
        const uintptr_t start = module->dlpi_addr + header.p_vaddr;
        const Bytes found{round_up(start + header.p_filesz, uintptr_t{kOsPageBytes}),
                          start + header.p_memsz};
        if (found.end > found.begin && found.end - found.begin > largest.end - largest.begin) {
            largest = found;
        }
    }
    return 1;
}

std::vector<std::byte*> pages_present(std::byte* begin, size_t bytes) {
    std::vector<std::byte*> pages;
    std::vector<unsigned char> present(bytes / kOsPageBytes);
    // Where it cannot be known, all may be.
    if (mincore(begin, bytes, present.data()) != 0) {
        std::fill(present.begin(), present.end(), static_cast<unsigned char>(1));
    }
    for (size_t page = 0; page < present.size(); ++page) {
        if ((present[page] & 1) != 0) pages.push_back(begin + page * kOsPageBytes);
    }
    return pages;
}

}  // namespace

StaticMemory StaticMemory::of_executable(uint64_t block_bytes) {
    Bytes bss;
    dl_iterate_phdr(visit_executable, &bss);
    StaticMemory memory;
    const uintptr_t begin = round_up(bss.begin, block_bytes);
    const uintptr_t end = round_down(bss.end, block_bytes);
    if (end <= begin) return memory;
    memory.begin_ = reinterpret_cast<std::byte*>(begin);
    memory.bytes_ = end - begin;
    return memory;
}

Result<StaticMemory::Content> StaticMemory::take_content() const {
    Content content;
    std::vector<std::byte*> pages = pages_present(begin_, bytes_);
    HANARE_TRY_ASSIGN(
        content.copies_,
        sys::Mapping::reserve(std::max<size_t>(pages.size(), 1) * kOsPageBytes, kOsPageBytes));
    content.pages_ = std::move(pages);
    for (size_t page = 0; page < content.pages_.size(); ++page) {
        std::memcpy(content.copies_.address() + page * kOsPageBytes, content.pages_[page],
                    kOsPageBytes);
    }
    sys::advise(begin_, bytes_, MADV_DONTNEED);
    return content;
}

void StaticMemory::Content::put_back() const noexcept {
    for (size_t page = 0; page < pages_.size(); ++page) {
        std::memcpy(pages_[page], copies_.address() + page * kOsPageBytes, kOsPageBytes);
    }
}

}  // namespace hanare::intercept
