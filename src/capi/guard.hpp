// SPDX-License-Identifier: Apache-2.0
//
// The border of the C API: exceptions become statuses, children of fork() are turned away, and a
// failed Result becomes the thread's last error.
#pragma once

#include <exception>
#include <new>
#include <pthread.h>
#include <utility>

#include "capi/last_error.hpp"
#include "pager/fault/handler.hpp"

namespace hanare::capi {

// Keeps a cancelled thread alive until it is outside: locks and transfers have to be completed.
class CancellationBlock {
public:
    CancellationBlock() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_); }
    ~CancellationBlock() { pthread_setcancelstate(saved_, nullptr); }
    CancellationBlock(const CancellationBlock&) = delete;
    CancellationBlock& operator=(const CancellationBlock&) = delete;

private:
    int saved_ = PTHREAD_CANCEL_ENABLE;
};

// Runs `body`, which returns a Result<void>, for the entry point `name`.
template <typename Body>
hanare_status guarded(const char* name, Body body) noexcept {
    const CancellationBlock whole_call;
    Error error;
    try {
        if (pager::is_forked_child()) {
            return report(
                fail(HANARE_STATUS_FORKED, "%s: far memory is not inherited through fork()", name)
                    .error());
        }
        const Result<void> result = std::forward<Body>(body)();
        if (result) return HANARE_STATUS_OK;
        error = result.error();
    } catch (const std::bad_alloc&) {
        error = fail(HANARE_STATUS_NO_MEMORY, "%s: out of memory", name).error();
    } catch (const std::exception& exception) {
        error = fail(HANARE_STATUS_INTERNAL, "%s: %s", name, exception.what()).error();
    } catch (...) {
        error = fail(HANARE_STATUS_INTERNAL, "%s: unknown exception", name).error();
    }
    return report(error);
}

}  // namespace hanare::capi
