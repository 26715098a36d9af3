// SPDX-License-Identifier: Apache-2.0
#include "sys/life_word.hpp"

#include <linux/futex.h>

namespace hanare::sys {

static_assert(FUTEX_TID_MASK == 0x3fffffff);

int LifeWord::prepare() noexcept {
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error != 0) return error;
    error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (error == 0) error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (error == 0) error = pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return error;
}

void LifeWord::begin() noexcept { pthread_mutex_trylock(&mutex_); }

void LifeWord::end() noexcept { pthread_mutex_unlock(&mutex_); }

}  // namespace hanare::sys
