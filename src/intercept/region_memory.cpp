// SPDX-License-Identifier: Apache-2.0
#include "intercept/region_memory.hpp"

#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <new>
#include <string_view>

#include "hook/system_calls.hpp"
#include "intercept/bounce.hpp"
#include "intercept/far_arguments.hpp"
#include "intercept/region_calls.hpp"
#include "pager/fault/holds.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"

namespace hanare::intercept {

namespace {

// Signals first: a handler of the program's may ask for memory, too.
class Changing {
public:
    explicit Changing(sys::ProcessLock& lock) noexcept : guard_(lock) {}

private:
    sys::SignalBlock signals_;
    sys::ProcessLockGuard guard_;
};

// Whose own system calls must stay as they are, and who has caught the program's.
bool is_under_hanare_run() {
    const auto is_its_library = [](dl_phdr_info* module, size_t, void*) {
        const std::string_view path(module->dlpi_name);
        return path.ends_with("/libhanare-run.so") ? 1 : 0;
    };
    return dl_iterate_phdr(is_its_library, nullptr) != 0;
}

void begin_child() {
    region_memory().forget_in_child();
    sys::note_memory_owner();
    pager::holds.forget_others_in_child();
    BounceFrame::forget_others_in_child();
}

}  // namespace

RegionMemory& region_memory() noexcept {
    // It has to outlive every destructor of the program.
    alignas(RegionMemory) static std::byte place[sizeof(RegionMemory)];
    static auto* const made = new (place) RegionMemory;
    return *made;
}

Result<void> RegionMemory::begin() {
    const Changing changing(lock_);
    if (has_begun_) return {};
    if (is_under_hanare_run()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "syscalls = on: the program is under hanare run, which has intercepted its "
                    "system calls; use one of the two");
    }
    set_far_memory(*this);
    if (!is_prepared_) {
        HANARE_TRY(hook::prepare_system_calls(handle_region_call, calls_with_addresses()));
        is_prepared_ = true;
    }
    HANARE_TRY(hook::catch_system_calls());
    if (hook::rewrite_report().rewritten == 0) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "no system call can be intercepted here: none was found where code is loaded");
    }
    if (const int error = pthread_atfork(nullptr, nullptr, begin_child); error != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, error, "cannot register with pthread_atfork");
    }
    has_begun_ = true;
    return {};
}

void RegionMemory::note_pool(uint64_t local_bytes) noexcept { divide_local_memory(local_bytes); }

// visit(range, owner), until it returns true.
template <typename Visit>
void RegionMemory::for_each_range(Visit visit) noexcept {
    uintptr_t* owners = first_owners_;
    for (Chunk* chunk = &first_; chunk != nullptr;) {
        for (size_t i = 0; i < kRangesPerChunk; ++i) {
            if (visit(chunk->ranges[i], owners[i])) return;
        }
        chunk = chunk->next.load(std::memory_order_relaxed);
        if (chunk != nullptr) owners = static_cast<OwnedChunk*>(chunk)->owners;
    }
}

Result<void> RegionMemory::add(uintptr_t begin, size_t bytes, uintptr_t owner) {
    const Changing changing(lock_);
    for (bool is_added = false;;) {
        size_t count = 0;
        for_each_range([&](Bounds& range, uintptr_t& owner_of_range) {
            ++count;
            if (range.bytes.load(std::memory_order_relaxed) != 0) return false;
            owner_of_range = owner;
            set_range(range, begin, bytes, hook::far_in_front_of(begin));
            note_used(count);
            is_added = true;
            return true;
        });
        if (is_added) return {};
        auto* const more = new (std::nothrow) OwnedChunk;  // never given back
        if (more == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for region ranges");
        Chunk* last = &first_;
        while (Chunk* const next = last->next.load(std::memory_order_relaxed)) last = next;
        last->next.store(more, std::memory_order_release);
    }
}

size_t RegionMemory::remove(uintptr_t begin, uintptr_t owner) noexcept {
    const Changing changing(lock_);
    size_t bytes = 0;
    for_each_range([&](Bounds& range, uintptr_t& owner_of_range) {
        const size_t has = range.bytes.load(std::memory_order_relaxed);
        if (has == 0 || owner_of_range != owner ||
            range.begin.load(std::memory_order_relaxed) != begin) {
            return false;
        }
        range.bytes.store(0, std::memory_order_release);
        bytes = has;
        return true;
    });
    return bytes;
}

void RegionMemory::remove_all(uintptr_t owner) noexcept {
    const Changing changing(lock_);
    for_each_range([&](Bounds& range, uintptr_t& owner_of_range) {
        if (owner_of_range == owner) range.bytes.store(0, std::memory_order_release);
        return false;
    });
}

void RegionMemory::forget_in_child() noexcept {
    for_each_range([](Bounds& range, uintptr_t&) {
        range.bytes.store(0, std::memory_order_release);
        return false;
    });
}

}  // namespace hanare::intercept
