// SPDX-License-Identifier: Apache-2.0
#include "cli/conditions.hpp"

#include <utility>

#include "base/units.hpp"

namespace hanare::cli {

Result<Conditions> Conditions::make(const ConditionsWanted& wanted) {
    Conditions made;
    if (wanted.swap == Swap::kFile) {
        HANARE_TRY_ASSIGN(
            made.swap_file_,
            sys::SwapFile::create(wanted.directory, wanted.swap_bytes, wanted.guardian));
    }
    if (wanted.swap == Swap::kZram) {
        HANARE_TRY_ASSIGN(made.zram_, sys::ZramSwap::create(wanted.directory, wanted.swap_bytes,
                                                            wanted.guardian));
    }
    if (wanted.cgroup_prefix.empty()) return made;
    auto cgroup =
        sys::MemoryCgroup::create(wanted.cgroup_prefix, wanted.limit_bytes, wanted.guardian);
    if (cgroup) {
        made.cgroup_ = std::move(*cgroup);
        // Another system's swap is not for this one; where there is none it may be refused.
        if (wanted.swap == Swap::kNone) (void)made.cgroup_->keep_out_of_swap();
        return made;
    }
    if (wanted.needs_cgroup) {
        return fail(cgroup.error().status, "no memory cgroup: %.200s", cgroup.error().text);
    }
    made.note_ = std::string("without a cgroup, by its own budget: ") + cgroup.error().text;
    return made;
}

std::vector<std::string> Conditions::undo() {
    std::vector<std::string> notes;
    if (zram_) {
        if (const auto peak = zram_->peak_bytes()) {
            notes.push_back("its device held " + format_size(*peak) +
                            " of memory beyond the limit; the data cannot be compressed");
        }
    }
    const auto remove = [&notes](auto& condition) {
        if (!condition) return;
        if (const auto removed = condition->remove(); !removed) {
            notes.push_back(removed.error().text);
        }
        condition.reset();
    };
    remove(cgroup_);
    remove(zram_);
    remove(swap_file_);
    return notes;
}

}  // namespace hanare::cli
