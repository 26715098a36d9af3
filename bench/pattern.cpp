// SPDX-License-Identifier: Apache-2.0
#include "bench/pattern.hpp"

#include <bit>

#include "base/prng.hpp"
#include "bench/kernel_attributes.hpp"

namespace hanare::bench {
namespace {

constexpr uint64_t kExponent = 0x3ff0000000000000;  // of the doubles in [1, 2)
// Below 2^51 even after a page of steps, and so is the hash: the exponent never changes.
constexpr uint64_t kStep = 0x291f4914f6d;
static_assert(kStep % 2 == 1 && kStep * kPageWords < uint64_t{1} << 51);
constexpr uint64_t kStepsSum = kStep * (kPageWords * (kPageWords - 1) / 2);

// The first word of a page.
uint64_t page_key(uint64_t page, uint32_t pass) {
    uint64_t state = page * 0xd1b54a32d192ed03 + pass;
    return kExponent + (splitmix64(state) >> 13);
}

uint64_t page_sum(uint64_t key) { return key * kPageWords + kStepsSum; }

HANARE_KERNEL void fill_page(uint64_t* words, uint64_t key) {
    for (size_t i = 0; i < kPageWords; ++i) words[i] = key + i * kStep;
}

HANARE_KERNEL uint64_t sum_of_page(const uint64_t* words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kPageWords; ++i) sum += words[i];
    return sum;
}

// Returns the sum of what it read.
HANARE_KERNEL uint64_t add_to_page(uint64_t* words, uint64_t delta) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kPageWords; ++i) {
        sum += words[i];
        words[i] += delta;
    }
    return sum;
}

HANARE_KERNEL void triad(double* __restrict a, const double* __restrict b,
                         const double* __restrict c, size_t count) {
    for (size_t i = 0; i < count; ++i) a[i] = b[i] + 0.5 * c[i];
}

double as_double(uint64_t word) { return std::bit_cast<double>(word); }

}  // namespace

uint64_t pattern_word(uint64_t index, uint32_t pass) {
    return page_key(index / kPageWords, pass) + index % kPageWords * kStep;
}

PageRange PageRange::share(uint64_t part, uint64_t parts) const {
    const uint64_t count = last - first;
    return {first + count * part / parts, first + count * (part + 1) / parts};
}

void pattern_fill(uint64_t* words, PageRange pages, uint32_t pass) {
    for (uint64_t page = pages.first; page < pages.last; ++page) {
        fill_page(words + page * kPageWords, page_key(page, pass));
    }
}

std::optional<uint64_t> pattern_check(const uint64_t* words, PageRange pages, uint32_t pass) {
    for (uint64_t page = pages.first; page < pages.last; ++page) {
        if (sum_of_page(words + page * kPageWords) != page_sum(page_key(page, pass))) return page;
    }
    return std::nullopt;
}

std::optional<uint64_t> pattern_check_one_word(const uint64_t* words, PageRange pages,
                                               uint32_t pass) {
    for (uint64_t page = pages.first; page < pages.last; ++page) {
        const uint64_t index = page * kPageWords + page % kPageWords;
        if (words[index] != pattern_word(index, pass)) return page;
    }
    return std::nullopt;
}

std::optional<uint64_t> pattern_advance(uint64_t* words, PageRange pages, uint32_t pass) {
    for (uint64_t page = pages.first; page < pages.last; ++page) {
        const uint64_t key = page_key(page, pass);
        const uint64_t delta = page_key(page, pass + 1) - key;
        if (add_to_page(words + page * kPageWords, delta) != page_sum(key)) return page;
    }
    return std::nullopt;
}

void pattern_triad(double* a, const double* b, const double* c, size_t count) {
    triad(a, b, c, count);
}

std::optional<uint64_t> pattern_check_triad(const double* a, PageRange pages, uint64_t b_page,
                                            uint64_t c_page, uint32_t pass) {
    for (uint64_t page = pages.first; page < pages.last; ++page) {
        const uint64_t b = page_key(b_page + page, pass);
        const uint64_t c = page_key(c_page + page, pass);
        for (size_t i = 0; i < kPageWords; ++i) {
            const double expected = as_double(b + i * kStep) + 0.5 * as_double(c + i * kStep);
            if (a[page * kPageWords + i] != expected) return page;
        }
    }
    return std::nullopt;
}

uint64_t pattern_wrong_word(const uint64_t* words, uint64_t page, uint32_t pass) {
    const uint64_t first = page * kPageWords;
    for (uint64_t index = first; index < first + kPageWords; ++index) {
        if (words[index] != pattern_word(index, pass)) return index;
    }
    return first;
}

}  // namespace hanare::bench
