// SPDX-License-Identifier: Apache-2.0
#include "sys/own_thread_id.hpp"

#include <sys/mman.h>

#include <atomic>

#include "base/units.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {
namespace {

// In a page that the kernel hands to children of fork as zeros: which process asks, counted along a
// line of children.  Numbers with another count were given to threads of a parent.
constinit std::atomic<std::atomic<uint32_t>*> process_word{nullptr};
constinit std::atomic<uint32_t> processes{0};

struct Known {
    uint32_t process = 0;
    uint32_t thread = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Known known;

std::atomic<uint32_t>* make_word() noexcept {
    const int saved_errno = errno;
    void* const page = raw::mmap(nullptr, kOsPageBytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::atomic<uint32_t>* word = nullptr;
    if (page != MAP_FAILED) {
        auto* const made = static_cast<std::atomic<uint32_t>*>(page);
        if (raw::madvise(page, kOsPageBytes, MADV_WIPEONFORK) != 0) {
            raw::munmap(page, kOsPageBytes);
        } else if (process_word.compare_exchange_strong(word, made)) {
            word = made;
        } else {
            raw::munmap(page, kOsPageBytes);
        }
    }
    errno = saved_errno;
    return word;
}

// Also for a signal handler in between: both find the same.
uint32_t ask() noexcept {
    const uint32_t thread = raw_thread_id();
    std::atomic<uint32_t>* word = process_word.load(std::memory_order_acquire);
    if (word == nullptr) word = make_word();
    if (word == nullptr) return thread;
    uint32_t process = word->load();
    if (process == 0) {
        const uint32_t fresh = processes.fetch_add(1) + 1;
        if (word->compare_exchange_strong(process, fresh)) process = fresh;
    }
    known.thread = thread;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    known.process = process;
    return thread;
}

}  // namespace

uint32_t own_thread_id() noexcept {
    const std::atomic<uint32_t>* const word = process_word.load(std::memory_order_acquire);
    if (word == nullptr) return ask();
    const uint32_t process = word->load(std::memory_order_relaxed);
    return process != 0 && known.process == process ? known.thread : ask();
}

void forget_own_thread_id() noexcept { known.process = 0; }

}  // namespace hanare::sys
