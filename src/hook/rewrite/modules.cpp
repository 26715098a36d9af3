// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/modules.hpp"

#include <link.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "hook/rewrite/code_image.hpp"
#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/stub.hpp"
#include "hook/rewrite/syscall_sites.hpp"
#include "sys/code_memory.hpp"
#include "sys/memory.hpp"
#include "sys/process_lock.hpp"
#include "sys/signal.hpp"
#include "sys/stopped_threads.hpp"
#include "sys/thread_count.hpp"

namespace hanare::hook {

constinit CodeRange code_ranges[kModulesMax];
constinit std::atomic<size_t> code_range_count{0};

namespace {

// Of the range with the same index: its stubs, and its end while it is being unmapped.
std::array<StubArea, kModulesMax> stub_areas;
std::array<const uint8_t*, kModulesMax> withdrawn_ends = {};
std::atomic<uint32_t> modules_seen{0};
std::atomic<uint32_t> sites_rewritten{0};
std::atomic<uint32_t> sites_left{0};

// Held by whoever rewrites, or forgets what was rewritten, with signals blocked.
constinit sys::ProcessLock turn;

// kModulesMax: the table is full.
size_t claim_range(const uint8_t* begin) noexcept {
    for (size_t index = 0; index < kModulesMax; ++index) {
        const uint8_t* nobody = nullptr;
        if (!code_ranges[index].begin.compare_exchange_strong(nobody, begin)) continue;
        size_t count = code_range_count.load();
        while (count <= index && !code_range_count.compare_exchange_weak(count, index + 1)) {
        }
        return index;
    }
    return kModulesMax;
}

// The innermost.
constinit PendingCall* pending_call = nullptr;

// While others than the calling thread are there.
constinit std::span<sys::StoppedThread> stopped_threads;

// Code that is read at `read` and runs at `run`: the same, or a file's bytes and where they are
// mapped.
struct Placement {
    Code read;
    uint8_t* run = nullptr;

    uint8_t* running(const uint8_t* place) const noexcept { return run + (place - read.data()); }
};

constexpr int64_t kAnyNumber = -1;

// A system call, by its number if that is known, is not caught.
void note_unseen(int64_t number) noexcept {
    switch (number) {
        case SYS_clone:
        case SYS_clone3: hanare_hook_threads_begin_unseen.store(true); break;
        case SYS_close:
        case SYS_close_range:
        case SYS_dup2:
        case SYS_dup3:
        case SYS_fcntl:
        case SYS_unshare: break;
        default:
            if (number >= 0) return;
            hanare_hook_threads_begin_unseen.store(true);
    }
    hanare_hook_files_change_unseen.store(true);
    for (uint64_t file = 0; file < kFiles; ++file) let_transfers_begin(file, false, false);
}

// Jumps are written when all sites have been looked at, since that reads the code around them.
struct Jump {
    uint8_t* from;
    const uint8_t* to;
    uint8_t before_bytes;  // that it takes the place of
    uint8_t after_bytes;

    void write() const noexcept {
        write_jump(from, from, to);
        for (sys::StoppedThread& thread : stopped_threads) move(thread);
        for (PendingCall* call = pending_call; call != nullptr; call = call->outer) {
            if (call->behind == from + before_bytes + SyscallSite::kSyscallBytes) move(*call);
        }
    }

private:
    void move(PendingCall& call) const noexcept {
        call.entry = to + before_bytes;
        if (after_bytes != 0) call.goes_on = call.entry + kStubCallBytes;
    }
    // One that stands between instructions which are not there any more goes on where they are now.
    // One that waits in the system call stands behind it; should the kernel have to make it again,
    // it goes back by the length of the instruction, which the stub ends with as well.
    void move(sys::StoppedThread& thread) const noexcept {
        const uint64_t offset = thread.registers.rip - reinterpret_cast<uint64_t>(from);
        const uint64_t behind = before_bytes + SyscallSite::kSyscallBytes;
        const bool is_behind = offset == behind && before_bytes < kJumpBytes;
        if (!is_behind && (offset == 0 || offset >= kJumpBytes)) return;
        const uint64_t shift = offset >= behind ? kStubCallBytes - SyscallSite::kSyscallBytes : 0;
        thread.registers.rip = reinterpret_cast<uint64_t>(to) + offset + shift;
        thread.is_moved = true;
    }
};

class Rewriting {
public:
    Rewriting(const CodeImage& image, const Placement& placement) noexcept
        : image_(image),
          placement_(placement),
          places_(placement.read),
          capacity_(places_.count()) {}

    Result<void> run() {
        if (const Result<void> reserved = reserve(); !reserved) {
            stubs_.release();
            sites_left.fetch_add(static_cast<uint32_t>(capacity_));
            note_unseen(kAnyNumber);
            return reserved;
        }
        if (capacity_ == 0) return {};
        find_syscall_sites(
            image_, places_,
            [](const SyscallSite& site, void* self) { static_cast<Rewriting*>(self)->visit(site); },
            this);
        if (found_ == 0) {
            stubs_.release();
            return {};
        }
        modules_seen.fetch_add(1);
        const Result<void> written = count_ > 0 ? write() : Result<void>();
        if (!written) note_unseen(kAnyNumber);
        if (count_ == 0 || !written) stubs_.release();
        const uint32_t rewritten = written ? static_cast<uint32_t>(count_) : 0;
        sites_rewritten.fetch_add(rewritten);
        sites_left.fetch_add(found_ - rewritten);
        return written;
    }

private:
    // Two bytes that look like the instruction and are none take room only.
    Result<void> reserve() {
        if (capacity_ == 0) return {};
        const uint8_t* begin = placement_.run;
        HANARE_TRY_ASSIGN(stubs_,
                          StubArea::reserve(begin, begin + placement_.read.size(), capacity_));
        HANARE_TRY_ASSIGN(
            memory_, sys::Mapping::reserve(sys::round_up_to_page(capacity_ * sizeof(Jump)), 4096));
        return {};
    }
    Jump* jumps() const noexcept { return reinterpret_cast<Jump*>(memory_.address()); }

    void visit(const SyscallSite& site) noexcept {
        // Unwinders know the trampoline of signal handlers by its bytes.
        if (site.number == SYS_rt_sigreturn) return;
        ++found_;
        uint8_t* const place = placement_.running(site.syscall);
        const bool is_usable = site.usable() && site.begin() >= taken_until_;
        const uint8_t* const stub = is_usable ? stubs_.add(site, place) : nullptr;
        if (stub == nullptr) {
            note_unseen(site.number);
            return;
        }
        jumps()[count_++] = {.from = place - site.before_bytes,
                             .to = stub,
                             .before_bytes = site.before_bytes,
                             .after_bytes = site.after_bytes};
        taken_until_ = site.end();
    }
    Result<void> write() {
        const std::span all(jumps(), count_);
        const uint8_t* end = all.back().from + kJumpBytes;
        // The mapping is not split, which the kernel refuses for its own code.
        const sys::WritableCode writable(placement_.run, placement_.run + placement_.read.size());
        if (!writable.allowed()) {
            return fail_errno(HANARE_STATUS_NOT_SUPPORTED, writable.errno_value(),
                              "rewriting code in memory");
        }
        const size_t index = claim_range(all.front().from);
        if (index == kModulesMax) {
            return fail(HANARE_STATUS_LIMIT, "more than %zu modules with system calls",
                        kModulesMax);
        }
        if (Result<void> sealed = stubs_.seal(); !sealed) {
            code_ranges[index].begin.store(nullptr);
            return sealed;
        }
        for (const Jump& jump : all) jump.write();
        stub_areas[index] = stubs_;
        code_ranges[index].end.store(end);
        return {};
    }

    const CodeImage& image_;
    const Placement placement_;
    const SyscallBytes places_;
    const size_t capacity_;
    StubArea stubs_;
    sys::Mapping memory_;
    size_t count_ = 0;
    uint32_t found_ = 0;
    const uint8_t* taken_until_ = nullptr;  // by the site before
};

Code own_code_in(const CodeImage& image) noexcept {
    const auto* ours = reinterpret_cast<const uint8_t*>(&hanare_hook_entry);
    for (const Code& code : image.code()) {
        if (ours >= code.data() && ours < code.data() + code.size()) return code;
    }
    return {};
}

int find_own(dl_phdr_info* module, size_t, void* context) {
    const Code own = own_code_in(CodeImage::of_loaded(*module));
    if (own.empty()) return 0;
    *static_cast<Code*>(context) = own;
    return 1;
}

struct Visit {
    sys::StoppedThreads others;
    bool has_begun = false;
    Result<void> result = {};

    // Now that nobody else holds the lock on the list of modules.
    bool begin() {
        has_begun = true;
        if (!sys::ThreadCount().is_alone()) result = others.stop();
        stopped_threads = others.threads();
        return result.has_value();
    }
};

// Goes on where a module cannot be rewritten; keeps why the first could not.
int visit_loaded(dl_phdr_info* module, size_t, void* context) {
    auto& visit = *static_cast<Visit*>(context);
    if (!visit.has_begun && !visit.begin()) return 1;
    const CodeImage image = CodeImage::of_loaded(*module);
    if (!own_code_in(image).empty()) return 0;
    Result<void>& result = visit.result;
    for (const Code& code : image.code()) {
        const Placement placement{.read = code, .run = const_cast<uint8_t*>(code.data())};
        const Result<void> rewritten = Rewriting(image, placement).run();
        if (result && !rewritten) result = rewritten;
    }
    return 0;
}

}  // namespace

Code own_code() noexcept {
    Code own;
    dl_iterate_phdr(find_own, &own);
    return own;
}

PendingCallNote::PendingCallNote(PendingCall& call) noexcept {
    call.outer = pending_call;
    pending_call = &call;
}

PendingCallNote::~PendingCallNote() { pending_call = pending_call->outer; }

Result<void> rewrite_loaded_modules() {
    // A handler must not meet half a jump.
    const sys::SignalBlock no_handlers;
    const sys::ProcessLockGuard guard(turn);
    Visit visit;
    dl_iterate_phdr(visit_loaded, &visit);
    stopped_threads = {};
    if (sites_rewritten.load() == 0) HANARE_TRY(visit.result);
    return {};
}

void rewrite_mapped_code(uint8_t* memory, size_t bytes, int descriptor, uint64_t offset) noexcept {
    const sys::FileBytes file(descriptor);
    const Code content = file.bytes();
    if (offset >= content.size()) return;
    const std::optional<CodeImage> image = CodeImage::of_file(content);
    if (!image) return;
    const Placement placement{
        .read = content.subspan(offset, std::min<uint64_t>(bytes, content.size() - offset)),
        .run = memory};
    const sys::SignalBlock no_handlers;
    const sys::ProcessLockGuard guard(turn);
    static_cast<void>(Rewriting(*image, placement).run());
}

// Whole modules only, as ld.so unmaps them.
void withdraw_code(const uint8_t* memory, size_t bytes) noexcept {
    const sys::SignalBlock no_handlers;
    const sys::ProcessLockGuard guard(turn);
    const size_t count = code_range_count.load();
    for (size_t index = 0; index < count; ++index) {
        CodeRange& range = code_ranges[index];
        const uint8_t* end = range.end.load();
        if (end == nullptr || range.begin.load() < memory || end > memory + bytes) continue;
        if (range.end.compare_exchange_strong(end, nullptr)) withdrawn_ends[index] = end;
    }
}

void finish_withdrawal(const uint8_t* memory, size_t bytes, bool unmapped) noexcept {
    const sys::SignalBlock no_handlers;
    const sys::ProcessLockGuard guard(turn);
    const size_t count = code_range_count.load();
    for (size_t index = 0; index < count; ++index) {
        CodeRange& range = code_ranges[index];
        const uint8_t* begin = range.begin.load();
        const uint8_t* end = withdrawn_ends[index];
        if (end == nullptr || begin < memory || end > memory + bytes) continue;
        withdrawn_ends[index] = nullptr;
        if (unmapped) {
            stub_areas[index].release();
            range.begin.store(nullptr);
        } else {
            range.end.store(end);
        }
    }
}

RewriteReport count_modules() noexcept {
    return {.modules = modules_seen.load(),
            .rewritten = sites_rewritten.load(),
            .left = sites_left.load()};
}

}  // namespace hanare::hook
