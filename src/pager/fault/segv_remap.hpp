// SPDX-License-Identifier: Apache-2.0
//
// Engine segv-remap, where userfaultfd is refused.  What is absent lies in a mapping without
// rights, so accesses raise SIGSEGV.  A filled slot is moved into the region as a mapping, with its
// page tables (mremap): no copy, no page allocation, one step for running threads; a read-only
// block is made so before it is moved, so clean tracking is exact.
//
// Every mapped block is a mapping of its own and mostly has another one behind it;
// vm.max_map_count bounds them (pager/mapping_budget.hpp chooses blocks large enough).
#pragma once

#include <csignal>

#include "pager/fault/engine.hpp"

namespace hanare::pager {

class SegvRemap final : public Engine {
public:
    const char* name() const noexcept override { return "segv-remap"; }
    int fault_signal() const noexcept override { return SIGSEGV; }
    uint32_t mappings_per_block() const noexcept override { return 2; }

    int attach(std::byte* range, size_t bytes) noexcept override;
    int attach_arena(std::byte* arena, size_t bytes) noexcept override;
    int populate(std::byte* slot, size_t bytes) noexcept override;
    int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept override;
    int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                          bool* written) noexcept override;
    int allow_writes(std::byte* block, size_t bytes) noexcept override;
    int withdraw(std::byte* block, std::byte* slot, size_t bytes,
                 FilePlace place) noexcept override;
    int drop(std::byte* range, size_t bytes) noexcept override;
    int become_child() noexcept override { return 0; }
    void abandon_in_child() noexcept override {}

private:
    static int withdraw_by_copy(std::byte* block, std::byte* slot, size_t bytes) noexcept;
};

}  // namespace hanare::pager
