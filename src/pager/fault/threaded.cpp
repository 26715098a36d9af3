// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/threaded.hpp"

#include <cerrno>
#include <sys/mman.h>

#include "sys/memory.hpp"

namespace hanare::pager {

template <typename Base>
int Threaded<Base>::refuse(std::byte* page, size_t bytes, bool is_owned) noexcept {
    has_refused_.store(true, std::memory_order_relaxed);
    const int error = this->userfault_.poison(page, bytes);
    if (error != EINVAL && error != ENOTTY) return error;
    return is_owned ? sys::poison(page, bytes) : EINVAL;
}

template <typename Base>
int Threaded<Base>::readmit(std::byte* range, size_t bytes) noexcept {
    return sys::advise(range, bytes, MADV_DONTNEED);
}

// What an earlier fault on the block could not have may stand in the way of this one's.  The step
// is told whether it has failed before.
template <typename Base>
template <typename Step>
int Threaded<Base>::without_refusals(std::byte* range, size_t bytes, Step step) noexcept {
    const int error = step(false);
    if (error != EEXIST || !has_refused_.load(std::memory_order_relaxed)) return error;
    readmit(range, bytes);
    return step(true);
}

template <typename Base>
int Threaded<Base>::install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                     FilePlace place) noexcept {
    return without_refusals(
        block, bytes, [&](bool) { return Base::install_writable(block, slot, bytes, place); });
}

template <typename Base>
int Threaded<Base>::install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                      bool* written) noexcept {
    return without_refusals(block, bytes, [&](bool again) {
        if (!again) return Base::install_read_only(block, slot, bytes, written);
        // Pages were mapped for a moment, in which they may have been written to.
        *written = true;
        return Base::install_writable(block, slot, bytes, {});
    });
}

template <typename Base>
int Threaded<Base>::install_part(std::byte* part, const std::byte* content, size_t bytes,
                                 bool writable) noexcept {
    return without_refusals(
        part, bytes, [&](bool) { return Base::install_part(part, content, bytes, writable); });
}

template class Threaded<MovingEngine>;
template class Threaded<CopyingEngine>;

}  // namespace hanare::pager
