// SPDX-License-Identifier: Apache-2.0
//
// Engine thread: as sigbus-move or sigbus-copy, but threads of Hanare serve the faults
// (FaultService) while the faulting thread waits in the kernel.  So accesses of system calls are
// served as well.  Needs the permission for that, and costs two switches between threads per fault.
//
// An access that cannot be served meets a poisoned page: SIGBUS, or EFAULT from the system call.
// Before Linux 6.6, which cannot poison, a mapping that fails takes the page's place for good.
#pragma once

#include <atomic>

#include "pager/fault/sigbus_copy.hpp"
#include "pager/fault/sigbus_move.hpp"

namespace hanare::pager {

template <typename Base>
class Threaded final : public Base {
public:
    using Base::Base;

    const char* name() const noexcept override { return "thread"; }
    const sys::Userfault* events() const noexcept override { return &this->userfault_; }
    int refuse(std::byte* page, size_t bytes, bool is_owned) noexcept override;
    int readmit(std::byte* range, size_t bytes) noexcept override;

    int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int install_part(std::byte* part, const std::byte* content, size_t bytes,
                     bool writable) noexcept override;

private:
    template <typename Step>
    int without_refusals(std::byte* range, size_t bytes, Step step) noexcept;

    std::atomic<bool> has_refused_{false};
};

extern template class Threaded<MovingEngine>;
extern template class Threaded<CopyingEngine>;

}  // namespace hanare::pager
