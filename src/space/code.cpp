// SPDX-License-Identifier: Apache-2.0
#include "space/code.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include "base/units.hpp"
#include "hook/rewrite/code_image.hpp"
#include "hook/rewrite/stub.hpp"
#include "hook/rewrite/syscall_sites.hpp"
#include "space/calls.hpp"
#include "space/known_sites.hpp"
#include "sys/code_memory.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

using hook::Code;

// As far as a jump reaches.
constexpr uint64_t kReach = (uint64_t{1} << 31) - kMiB;

constexpr uint64_t ns_of(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// The content of a file, without libc.
class FileContent {
public:
    FileContent(int file, uint64_t bytes) noexcept {
        const int64_t place = sys::raw_call6(SYS_mmap, 0, bytes, PROT_READ, MAP_PRIVATE,
                                             static_cast<uint64_t>(file), 0);
        if (place > 0) bytes_ = {reinterpret_cast<const uint8_t*>(place), bytes};
    }
    ~FileContent() {
        if (!bytes_.empty()) {
            sys::raw_call3(SYS_munmap, reinterpret_cast<uint64_t>(bytes_.data()), bytes_.size(), 0);
        }
    }
    FileContent(const FileContent&) = delete;
    FileContent& operator=(const FileContent&) = delete;

    Code bytes() const noexcept { return bytes_; }

private:
    Code bytes_;
};

// The system calls of a file's code that are answered, in their order.
class Sites {
public:
    // Of code that is at `mapped`: from what tasks have found before, else by decoding.
    Sites(int file, const KnownSites::Code& code, const uint8_t* mapped) noexcept {
        const auto known = KnownSites::find(code);
        if (known && are_there(*known, mapped)) {
            count_ = known->size();
            std::ranges::copy(*known, sites_.begin());
            return;
        }
        decode(FileContent(file, code.file_bytes).bytes(), code);
        // What is written to in the same tick of the clock has the same times afterwards.
        if (is_complete_ && is_settled(code)) KnownSites::add(code, all());
    }

    std::span<const KnownSites::Site> all() const noexcept { return {sites_.data(), count_}; }
    // With a number that is known, and too many to be in all().
    uint32_t dropped() const noexcept { return dropped_; }

private:
    static bool are_there(std::span<const KnownSites::Site> sites, const uint8_t* mapped) noexcept {
        return std::ranges::all_of(sites, [mapped](const KnownSites::Site& site) {
            return mapped[site.offset] == 0x0f && mapped[site.offset + 1] == 0x05;
        });
    }
    static bool is_settled(const KnownSites::Code& code) noexcept {
        constexpr uint64_t kTicksNs = 100'000'000;
        timespec now = {};
        sys::raw_call3(SYS_clock_gettime, CLOCK_REALTIME, reinterpret_cast<uint64_t>(&now), 0);
        const uint64_t now_ns = ns_of(now);
        return code.changed_ns + kTicksNs < now_ns && code.written_ns + kTicksNs < now_ns;
    }
    void decode(Code content, const KnownSites::Code& code) noexcept {
        if (code.offset >= content.size()) return;
        const auto image = hook::CodeImage::of_file(content);
        if (!image) return;
        code_ = content.subspan(code.offset,
                                std::min<uint64_t>(code.bytes, content.size() - code.offset));
        is_complete_ = true;
        hook::find_syscall_sites(
            *image, hook::SyscallBytes(code_),
            [](const hook::SyscallSite& site, void* self) { static_cast<Sites*>(self)->add(site); },
            this);
    }
    // syscall(2) of libc loads the number that it is given: memory hooks of MPI libraries map by
    // it.
    void add(const hook::SyscallSite& site) noexcept {
        if (site.number >= 0 && !is_answered(static_cast<uint32_t>(site.number))) return;
        if (count_ == sites_.size()) {
            is_complete_ = false;
            if (site.number >= 0) ++dropped_;
            return;
        }
        sites_[count_++] = {.offset = static_cast<uint32_t>(site.syscall - code_.data()),
                            .before_bytes = site.before_bytes,
                            .after_bytes = site.after_bytes,
                            .number = site.number};
    }

    Code code_;
    std::array<KnownSites::Site, KnownSites::kSitesMax> sites_;
    size_t count_ = 0;
    uint32_t dropped_ = 0;
    bool is_complete_ = false;
};

class Rewriting {
public:
    explicit Rewriting(std::span<uint8_t> code) noexcept : code_(code) {}

    // How many with a known number are left.
    uint32_t run(Partition& partition, const Sites& sites) noexcept {
        const auto all = sites.all();
        const auto known = static_cast<uint32_t>(
            std::ranges::count_if(all, [](const auto& site) { return site.number >= 0; }));
        if (all.empty()) return sites.dropped();
        const auto begin = reinterpret_cast<uint64_t>(code_.data());
        const uint64_t end = begin + code_.size();
        const uint64_t bytes = hook::StubArea::bytes_for(all.size());
        // In page tables that there are.
        int64_t room = partition.map_between(bytes, end, begin + kReach);
        if (room < 0) room = partition.map_between(bytes, end > kReach ? end - kReach : 0, begin);
        if (room < 0) return known + sites.dropped();
        auto* const memory = reinterpret_cast<uint8_t*>(room);
        stubs_ = hook::StubArea::inside({memory, bytes}, all.size());
        for (const KnownSites::Site& site : all) add(site);
        return known - (write() ? rewritten_ : 0) + sites.dropped();
    }

private:
    struct Jump {
        uint8_t* from;
        const uint8_t* to;
    };

    void add(const KnownSites::Site& found) noexcept {
        uint8_t* const place = code_.data() + found.offset;
        const hook::SyscallSite site = {.syscall = place,
                                        .before_bytes = found.before_bytes,
                                        .after_bytes = found.after_bytes,
                                        .number = found.number};
        const bool is_usable = site.usable() && site.begin() >= taken_until_;
        const uint8_t* const stub = is_usable ? stubs_.add(site, place) : nullptr;
        if (stub == nullptr) return;
        jumps_[count_++] = {.from = place - site.before_bytes, .to = stub};
        if (site.number >= 0) ++rewritten_;
        taken_until_ = site.end();
    }
    bool make_writable(bool is_writable) const noexcept {
        return sys::protect_code(code_.data(), round_up(code_.size(), kOsPageBytes), is_writable);
    }
    bool write() noexcept {
        if (!stubs_.seal_inside() || !make_writable(true)) return false;
        for (size_t i = 0; i < count_; ++i) {
            hook::write_jump(jumps_[i].from, jumps_[i].from, jumps_[i].to);
        }
        return make_writable(false);
    }

    const std::span<uint8_t> code_;
    hook::StubArea stubs_;
    std::array<Jump, KnownSites::kSitesMax> jumps_;
    size_t count_ = 0;
    uint32_t rewritten_ = 0;  // with a known number
    const uint8_t* taken_until_ = nullptr;
};

}  // namespace

uint32_t rewrite_code(Partition& partition, Range place, int file, uint64_t offset) noexcept {
    struct stat status = {};
    if (sys::raw_call3(SYS_fstat, static_cast<uint64_t>(file), reinterpret_cast<uint64_t>(&status),
                       0) != 0 ||
        status.st_size <= 0 || offset >= static_cast<uint64_t>(status.st_size)) {
        return 0;
    }
    const auto file_bytes = static_cast<uint64_t>(status.st_size);
    const uint64_t bytes = std::min(place.end - place.begin, file_bytes - offset);
    const Sites sites(file,
                      {.device = status.st_dev,
                       .inode = status.st_ino,
                       .file_bytes = file_bytes,
                       .written_ns = ns_of(status.st_mtim),
                       .changed_ns = ns_of(status.st_ctim),
                       .offset = offset,
                       .bytes = bytes},
                      reinterpret_cast<const uint8_t*>(place.begin));
    return Rewriting({reinterpret_cast<uint8_t*>(place.begin), bytes}).run(partition, sites);
}

}  // namespace hanare::space
