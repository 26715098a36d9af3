// SPDX-License-Identifier: Apache-2.0
//
// LifeWord: a word in shared memory that says whether a thread lives, to whoever can read it, at
// the price of a load.  The thread holds a robust mutex there; when it ends, however that happens,
// the kernel takes its number out.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace hanare::sys {

class LifeWord {
public:
    // In memory of its own that is all zeros: nobody lives.
    LifeWord() = delete;
    LifeWord(const LifeWord&) = delete;
    LifeWord& operator=(const LifeWord&) = delete;

    // Once in the life of the memory, before begin(): 0 or an errno value.
    int prepare() noexcept;
    // By the thread whose life it is; until end(), or the end of the thread, or exec.  Nothing
    // happens while it is another's.
    void begin() noexcept;
    void end() noexcept;
    // Any process, also where the memory is mapped for reading only.  A child of fork() that ends
    // does not change it.
    bool is_alive() const noexcept {
        static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0);
        return (__atomic_load_n(reinterpret_cast<const uint32_t*>(&mutex_), __ATOMIC_ACQUIRE) &
                kThreadMask) != 0;
    }

private:
    static constexpr uint32_t kThreadMask = 0x3fffffff;  // FUTEX_TID_MASK

    pthread_mutex_t mutex_;
};

}  // namespace hanare::sys
