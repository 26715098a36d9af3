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
    UserfaultEngine(sys::Userfault userfault, sys::Userfault::Features features)
        : userfault_(std::move(userfault)), features_(features) {}

    int attach(std::byte* range, size_t bytes) noexcept override;
    int discard(std::byte* pages, size_t bytes) noexcept override;
    int allow_writes(std::byte* pages, size_t bytes) noexcept override;
    bool serves_parts() const noexcept override { return true; }
    int install_part(std::byte* part, const std::byte* content, size_t bytes,
                     bool writable) noexcept override;
    int fill(std::byte* slot, const std::byte* content, size_t bytes) noexcept override;
    int forbid_writes(std::byte* pages, size_t bytes) noexcept override;
    void abandon_in_child() noexcept override { userfault_.close(); }
    int become_child() noexcept override;
    int watch_again(std::byte* range, size_t bytes) noexcept override {
        return userfault_.register_range(range, bytes);
    }
    bool loses_protection() const noexcept override { return true; }

protected:
    ~UserfaultEngine() = default;

    // As Userfault::copy().
    int copy(std::byte* target, const std::byte* content, size_t bytes, bool write_protected,
             size_t* copied) noexcept;

    sys::Userfault userfault_;

private:
    const sys::Userfault::Features features_;
};

}  // namespace hanare::pager
