// SPDX-License-Identifier: Apache-2.0
#include "space/code.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "hook/rewrite/code_image.hpp"
#include "hook/rewrite/stub.hpp"
#include "hook/rewrite/syscall_sites.hpp"
#include "space/calls.hpp"
#include "sys/code_memory.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

using hook::Code;

// As far as a jump reaches.
constexpr uint64_t kReach = (uint64_t{1} << 31) - kMiB;

// The content of a file, without libc.
class FileContent {
public:
    explicit FileContent(int file) noexcept {
        struct stat status = {};
        if (sys::raw_call3(SYS_fstat, static_cast<uint64_t>(file),
                           reinterpret_cast<uint64_t>(&status), 0) != 0 ||
            status.st_size <= 0) {
            return;
        }
        const auto bytes = static_cast<uint64_t>(status.st_size);
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

class Rewriting {
public:
    Rewriting(const hook::CodeImage& image, Code read, uint8_t* run) noexcept
        : image_(image), read_(read), run_(run), places_(read) {}

    bool has_any() const noexcept { return places_.count() != 0; }

    // How many are left.
    uint32_t run(Partition& partition) noexcept {
        find(&Rewriting::count_wanted);
        if (wanted_ == 0) return 0;
        const auto begin = reinterpret_cast<uint64_t>(run_);
        const uint64_t end = begin + read_.size();
        const uint64_t bytes = hook::StubArea::bytes_for(wanted_);
        const int64_t room =
            partition.map_between(bytes, end > kReach ? end - kReach : 0, begin + kReach);
        if (room < 0) return left_;
        auto* const memory = reinterpret_cast<uint8_t*>(room);
        stubs_ = hook::StubArea::inside({memory, bytes}, wanted_);
        const uint32_t all = left_;
        find(&Rewriting::add);
        return write() ? left_ : all;
    }

private:
    struct Jump {
        uint8_t* from;
        const uint8_t* to;
    };
    static constexpr size_t kSitesMax = 512;

    void find(void (Rewriting::*visit)(const hook::SyscallSite&)) noexcept {
        visit_ = visit;
        hook::find_syscall_sites(
            image_, places_,
            [](const hook::SyscallSite& site, void* self) {
                auto* const rewriting = static_cast<Rewriting*>(self);
                // syscall(2) of libc loads the number that it is given: memory hooks of MPI
                // libraries map by it.
                const bool is_wanted =
                    site.number < 0 || is_answered(static_cast<uint32_t>(site.number));
                if (is_wanted) (rewriting->*rewriting->visit_)(site);
            },
            this);
    }
    void count_wanted(const hook::SyscallSite& site) noexcept {
        wanted_ = std::min<uint32_t>(wanted_ + 1, kSitesMax);
        if (site.number >= 0) ++left_;
    }
    void add(const hook::SyscallSite& site) noexcept {
        uint8_t* const place = run_ + (site.syscall - read_.data());
        const bool is_usable = site.usable() && site.begin() >= taken_until_ && count_ < kSitesMax;
        const uint8_t* const stub = is_usable ? stubs_.add(site, place) : nullptr;
        if (stub == nullptr) return;
        jumps_[count_++] = {.from = place - site.before_bytes, .to = stub};
        if (site.number >= 0) --left_;
        taken_until_ = site.end();
    }
    bool make_writable(bool is_writable) const noexcept {
        return sys::protect_code(run_, round_up(read_.size(), kOsPageBytes), is_writable);
    }
    bool write() noexcept {
        if (!stubs_.seal_inside() || !make_writable(true)) return false;
        for (size_t i = 0; i < count_; ++i) {
            hook::write_jump(jumps_[i].from, jumps_[i].from, jumps_[i].to);
        }
        return make_writable(false);
    }

    const hook::CodeImage& image_;
    const Code read_;
    uint8_t* const run_;
    const hook::SyscallBytes places_;
    void (Rewriting::*visit_)(const hook::SyscallSite&) = nullptr;
    hook::StubArea stubs_;
    std::array<Jump, kSitesMax> jumps_;
    size_t count_ = 0;
    uint32_t wanted_ = 0;
    uint32_t left_ = 0;  // of those whose number is known
    const uint8_t* taken_until_ = nullptr;
};

}  // namespace

uint32_t rewrite_code(Partition& partition, Range place, int file, uint64_t offset) noexcept {
    const FileContent content(file);
    const Code all = content.bytes();
    if (offset >= all.size()) return 0;
    const std::optional<hook::CodeImage> image = hook::CodeImage::of_file(all);
    if (!image) return 0;
    const Code read =
        all.subspan(offset, std::min<uint64_t>(place.end - place.begin, all.size() - offset));
    Rewriting rewriting(*image, read, reinterpret_cast<uint8_t*>(place.begin));
    return rewriting.has_any() ? rewriting.run(partition) : 0;
}

}  // namespace hanare::space
