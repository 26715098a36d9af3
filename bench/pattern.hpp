// SPDX-License-Identifier: Apache-2.0
//
// Words whose values are known from their index and the number of the write pass, so that whatever
// is read can be checked at the speed of reading: inside an OS page they are an arithmetic series
// that begins at a hash of page and pass, and a page's sum has a closed form.  As doubles they all
// lie in [1, 2).  No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace hanare::bench {

inline constexpr size_t kPageWords = kOsPageBytes / sizeof(uint64_t);

// Word `index` of the array after write pass `pass`.
uint64_t pattern_word(uint64_t index, uint32_t pass);

// Pages [first, last) of the array that begins at `words`.
struct PageRange {
    uint64_t first = 0;
    uint64_t last = 0;

    uint64_t bytes() const { return (last - first) * kOsPageBytes; }
    // Share number `part` of `parts` almost equal ones.
    PageRange share(uint64_t part, uint64_t parts) const;
};

void pattern_fill(uint64_t* words, PageRange pages, uint32_t pass);

// These return a page of the range that did not hold what pass `pass` writes; nothing when all did.
std::optional<uint64_t> pattern_check(const uint64_t* words, PageRange pages, uint32_t pass);
// Reads one word of each page.
std::optional<uint64_t> pattern_check_one_word(const uint64_t* words, PageRange pages,
                                               uint32_t pass);
// Reads and writes every word: the pages hold pass `pass` + 1 afterwards.
std::optional<uint64_t> pattern_advance(uint64_t* words, PageRange pages, uint32_t pass);

// a = b + c / 2, in doubles, exact whether or not the compiler fuses the operations.
void pattern_triad(double* a, const double* b, const double* c, size_t count);
// A page of `pages` whose doubles are not that of the pages as far behind them as `b_page` and
// `c_page` are from page 0.
std::optional<uint64_t> pattern_check_triad(const double* a, PageRange pages, uint64_t b_page,
                                            uint64_t c_page, uint32_t pass);

// The index of the first word of `page` that is not what pass `pass` writes; that of the page's
// first word when all are right by now.
uint64_t pattern_wrong_word(const uint64_t* words, uint64_t page, uint32_t pass);

}  // namespace hanare::bench
