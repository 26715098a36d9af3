// SPDX-License-Identifier: Apache-2.0
//
// The cases of `hanare bench pager`: one array, larger than the memory that its system may use, and
// what is done to it.  Every value that is read is checked (pattern.hpp).  Names and order only
// here; what a case does: pager_array.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hanare::bench {

// In the order in which they run: the first needs an array that was never written, the last spoils
// it.
enum class PagerCase {
    kSeqWrite,     // every word, ascending, for the first time
    kSeqReadCold,  // with nothing in memory
    kSeqReadWarm,  // right after another such pass
    kSeqRmw,       // reads and writes every word, right after a reading pass
    kStrided,      // reads a word of each OS page, ascending, with nothing in memory
    kRandomClean,  // reads of single words after a reading pass
    kRandomDirty,  // the same after a writing pass
    kMixed,        // a sequential stream over one half beside random reads of the other
    kTriad,        // a = b + c / 2 over the thirds of the array
};
inline constexpr int kPagerCases = 9;

const char* pager_case_name(PagerCase which);  // "seq_write"
std::optional<PagerCase> pager_case_of(std::string_view name);
// "seq_write, seq_read_cold, ...", for messages.
std::string pager_case_names();

// Whether it is measured in time per access, and not as a rate.
bool is_random(PagerCase which);

}  // namespace hanare::bench
