// SPDX-License-Identifier: Apache-2.0
//
// What a system that is compared needs around its process: a memory cgroup, swap.  Undone when the
// object goes, or with undo(), which also tells what could not be undone.  Used by the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/cgroup.hpp"
#include "sys/guardian.hpp"
#include "sys/swap_file.hpp"
#include "sys/zram_swap.hpp"

namespace hanare::cli {

enum class Swap { kNone, kFile, kZram };

struct ConditionsWanted {
    std::string cgroup_prefix;  // empty for no cgroup
    uint64_t limit_bytes = 0;
    bool needs_cgroup = true;  // else it may run without where there can be none
    Swap swap = Swap::kNone;
    uint64_t swap_bytes = 0;
    std::string directory;              // for the swap file
    sys::Guardian* guardian = nullptr;  // undoes this if we are killed; outlives the object
};

class Conditions {
public:
    // The error's text says why the system cannot run here.
    static Result<Conditions> make(const ConditionsWanted& wanted);

    // Null where there is none.
    const sys::MemoryCgroup* cgroup() const { return cgroup_ ? &*cgroup_ : nullptr; }
    sys::MemoryCgroup* cgroup() { return cgroup_ ? &*cgroup_ : nullptr; }
    // About conditions that are not as wanted.
    const std::string& note() const { return note_; }

    // After the last process has left.  Returns what went wrong, and what is worth knowing.
    std::vector<std::string> undo();

private:
    Conditions() = default;

    std::string note_;
    // In the order in which they are made.
    std::optional<sys::SwapFile> swap_file_;
    std::optional<sys::ZramSwap> zram_;
    std::optional<sys::MemoryCgroup> cgroup_;
};

}  // namespace hanare::cli
