// SPDX-License-Identifier: Apache-2.0
//
// What engines that catch accesses with userfaultfd have in common: protection, and parts of
// blocks.
#pragma once

#include <utility>

#include "pager/fault/engine.hpp"
#include "sys/uffd.hpp"

namespace hanare::pager {

class UserfaultEngine : public Engine {
public:
    explicit UserfaultEngine(sys::Userfault userfault) : userfault_(std::move(userfault)) {}

    int attach(std::byte* range, size_t bytes) noexcept override;
    int discard(std::byte* pages, size_t bytes) noexcept override;
    int allow_writes(std::byte* pages, size_t bytes) noexcept override;
    bool serves_parts() const noexcept override { return true; }
    int install_part(std::byte* part, const std::byte* content, size_t bytes,
                     bool writable) noexcept override;
    int forbid_writes(std::byte* pages, size_t bytes) noexcept override;
    void abandon_in_child() noexcept override { userfault_.close(); }

protected:
    ~UserfaultEngine() = default;

    sys::Userfault userfault_;
};

}  // namespace hanare::pager
