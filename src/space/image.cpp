// SPDX-License-Identifier: Apache-2.0
#include "space/image.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "space/code.hpp"
#include "sys/file.hpp"

namespace hanare::space {

namespace {

constexpr size_t kHeadersMax = 64;
constexpr size_t kLoaderBytesMax = 4096;
constexpr size_t kEntriesMax = 1024;  // of a dynamic section
constexpr uint64_t kNamesBytesMax = 64 * kMiB;

uint64_t page_of(uint64_t address) { return address / kOsPageBytes * kOsPageBytes; }

int protection_of(const Elf64_Phdr& header) {
    return ((header.p_flags & PF_R) != 0 ? PROT_READ : 0) |
           ((header.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
           ((header.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

class Loading {
public:
    Loading(Partition& partition, const std::string& path) : partition_(partition), path_(path) {}

    Result<Image> run() {
        file_ = sys::FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file_.is_open()) {
            return fail_errno(errno == ENOENT ? HANARE_STATUS_NOT_FOUND : HANARE_STATUS_PERMISSION,
                              errno, "%.200s", path_.c_str());
        }
        HANARE_TRY(read_headers());
        HANARE_TRY(refuse_sanitized());
        HANARE_TRY(find_place());
        for (const Elf64_Phdr& header : headers_) {
            if (header.p_type == PT_LOAD) HANARE_TRY(map(header));
        }
        HANARE_TRY_ASSIGN(std::string loader, read_loader());
        return Image{.base = base_,
                     .entry = base_ + elf_.e_entry,
                     .headers = base_ + headers_address(),
                     .header_count = headers_.size(),
                     .loader = std::move(loader)};
    }

private:
    Result<void> read(void* memory, size_t bytes, uint64_t offset) const {
        const ssize_t got = pread(file_.number(), memory, bytes, static_cast<off_t>(offset));
        if (got == static_cast<ssize_t>(bytes)) return {};
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.200s: is cut off", path_.c_str());
    }

    Result<void> read_headers() {
        HANARE_TRY(read(&elf_, sizeof elf_, 0));
        if (std::memcmp(elf_.e_ident, ELFMAG, SELFMAG) != 0 ||
            elf_.e_ident[EI_CLASS] != ELFCLASS64 || elf_.e_machine != EM_X86_64 ||
            elf_.e_phentsize != sizeof(Elf64_Phdr) || elf_.e_phnum == 0 ||
            elf_.e_phnum > kHeadersMax) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.200s: is no program of this machine",
                        path_.c_str());
        }
        if (elf_.e_type != ET_DYN) {
            return fail(HANARE_STATUS_NOT_SUPPORTED,
                        "%.200s: is not position-independent (compile it with -fPIE, link it with "
                        "-pie)",
                        path_.c_str());
        }
        headers_.resize(elf_.e_phnum);
        HANARE_TRY(read(headers_.data(), headers_.size() * sizeof(Elf64_Phdr), elf_.e_phoff));
        return check_headers();
    }

    // What the file does not have would end this process when it is touched.
    Result<void> check_headers() const {
        struct stat status = {};
        if (fstat(file_.number(), &status) != 0) {
            return fail_errno(HANARE_STATUS_SYSTEM, errno, "%.200s", path_.c_str());
        }
        const auto file_bytes = static_cast<uint64_t>(status.st_size);
        for (const Elf64_Phdr& header : headers_) {
            if (header.p_type == PT_GNU_STACK && (header.p_flags & PF_X) != 0) {
                return fail(HANARE_STATUS_NOT_SUPPORTED, "%.200s: wants to execute its stack",
                            path_.c_str());
            }
            if (header.p_type != PT_LOAD) continue;
            if (header.p_offset > file_bytes || header.p_filesz > file_bytes - header.p_offset) {
                return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.200s: is cut off", path_.c_str());
            }
        }
        return {};
    }

    // They put what they need at certain addresses, over whatever is there, or refuse to run.
    Result<void> refuse_sanitized() const {
        const auto dynamic = std::ranges::find(headers_, PT_DYNAMIC, &Elf64_Phdr::p_type);
        if (dynamic == headers_.end()) return {};
        std::vector<Elf64_Dyn> entries(
            std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kEntriesMax));
        HANARE_TRY(read(entries.data(), entries.size() * sizeof(Elf64_Dyn), dynamic->p_offset));
        const auto value_of = [&](Elf64_Sxword tag) {
            const auto found = std::ranges::find(entries, tag, &Elf64_Dyn::d_tag);
            return found == entries.end() ? 0 : found->d_un.d_val;
        };
        const uint64_t address = value_of(DT_STRTAB);
        const auto segment = std::ranges::find_if(headers_, [address](const Elf64_Phdr& header) {
            return header.p_type == PT_LOAD && address >= header.p_vaddr &&
                   address - header.p_vaddr < header.p_filesz;
        });
        if (segment == headers_.end()) return {};
        const uint64_t at = address - segment->p_vaddr;
        const uint64_t bytes = std::min(value_of(DT_STRSZ), segment->p_filesz - at);
        std::string names(std::min(bytes, kNamesBytesMax), '\0');
        HANARE_TRY(read(names.data(), names.size(), segment->p_offset + at));
        for (const char* const name : {"__asan_init", "__tsan_init", "__msan_init"}) {
            if (names.find(name) == names.npos) continue;
            return fail(HANARE_STATUS_NOT_SUPPORTED,
                        "%.200s: has a sanitizer, which needs addresses of its own", path_.c_str());
        }
        return {};
    }

    // For all segments together, with the distances that they have.
    Result<void> find_place() {
        uint64_t end = 0;
        uint64_t alignment = kOsPageBytes;
        for (const Elf64_Phdr& header : headers_) {
            if (header.p_type != PT_LOAD) continue;
            if (header.p_filesz > header.p_memsz ||
                header.p_memsz > kSegmentsBytesMax - std::min(kSegmentsBytesMax, header.p_vaddr) ||
                (header.p_vaddr - header.p_offset) % kOsPageBytes != 0) {
                return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.200s: has segments that cannot be",
                            path_.c_str());
            }
            end = std::max(end, header.p_vaddr + header.p_memsz);
            if (header.p_align > alignment && header.p_align <= kHugePageBytes) {
                alignment = header.p_align;
            }
        }
        if (end == 0) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "%.200s: has no segments", path_.c_str());
        }
        const uint64_t bytes = round_up(end, kOsPageBytes) + alignment;
        const int64_t place = partition_.map(
            {0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~uint64_t{0}, 0});
        if (place < 0) {
            return fail_errno(HANARE_STATUS_NO_MEMORY, static_cast<int>(-place), "mapping %.200s",
                              path_.c_str());
        }
        base_ = round_up(static_cast<uint64_t>(place), alignment);
        return {};
    }

    Result<void> map_fixed(uint64_t begin, uint64_t bytes, int protection, bool of_file,
                           uint64_t offset) {
        const uint64_t flags = MAP_PRIVATE | MAP_FIXED | (of_file ? 0 : MAP_ANONYMOUS);
        const uint64_t file = of_file ? static_cast<uint64_t>(file_.number()) : ~uint64_t{0};
        const int64_t result =
            partition_.map({begin, bytes, static_cast<uint64_t>(protection), flags, file, offset});
        if (result == static_cast<int64_t>(begin)) return {};
        return fail_errno(HANARE_STATUS_SYSTEM, static_cast<int>(-result), "mapping %.200s",
                          path_.c_str());
    }

    // What lies behind the file's part of a writable page is zeros; programs count on all of the
    // page, where the loader's first allocations are.
    Result<void> map(const Elf64_Phdr& header) {
        const uint64_t begin = base_ + page_of(header.p_vaddr);
        const uint64_t file_end = base_ + header.p_vaddr + header.p_filesz;
        const uint64_t end = round_up(base_ + header.p_vaddr + header.p_memsz, kOsPageBytes);
        const int protection = protection_of(header);
        uint64_t mapped_end = begin;
        if (header.p_filesz > 0) {
            mapped_end = round_up(file_end, kOsPageBytes);
            HANARE_TRY(
                map_fixed(begin, mapped_end - begin, protection, true, page_of(header.p_offset)));
            if ((protection & PROT_WRITE) != 0 && header.p_memsz > header.p_filesz) {
                std::memset(reinterpret_cast<void*>(file_end), 0, mapped_end - file_end);
            }
            const bool is_code = (protection & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC;
            if (is_code && rewrite_code(partition_, {begin, mapped_end}, file_.number(),
                                        page_of(header.p_offset)) != 0) {
                return fail(HANARE_STATUS_NOT_SUPPORTED,
                            "%.200s: has system calls that cannot be replaced", path_.c_str());
            }
        } else {
            mapped_end = round_up(base_ + header.p_vaddr, kOsPageBytes);
        }
        if (end > mapped_end) {
            HANARE_TRY(map_fixed(mapped_end, end - mapped_end, protection, false, 0));
        }
        return {};
    }

    uint64_t headers_address() const {
        for (const Elf64_Phdr& header : headers_) {
            if (header.p_type == PT_PHDR) return header.p_vaddr;
        }
        return elf_.e_phoff;
    }

    Result<std::string> read_loader() const {
        for (const Elf64_Phdr& header : headers_) {
            if (header.p_type != PT_INTERP) continue;
            if (header.p_filesz > kLoaderBytesMax) break;
            std::string loader(header.p_filesz, '\0');
            HANARE_TRY(read(loader.data(), loader.size(), header.p_offset));
            return std::string(loader.c_str());
        }
        return std::string();
    }

    static constexpr uint64_t kSegmentsBytesMax = 4 * kGiB;

    Partition& partition_;
    const std::string& path_;
    sys::FileDescriptor file_;
    Elf64_Ehdr elf_ = {};
    std::vector<Elf64_Phdr> headers_;
    uint64_t base_ = 0;
};

}  // namespace

Result<Image> map_image(Partition& partition, const std::string& path) {
    return Loading(partition, path).run();
}

}  // namespace hanare::space
