// SPDX-License-Identifier: Apache-2.0
//
// What a text consists of, line by line, and whether it is sorted: how the demo knows that a sorted
// text is the one it gave to sort, without sorting it itself.  Lines end with '\n'; order is that
// of bytes (LC_ALL=C).  No state; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.hpp"

namespace hanare::bench {

// A digest of lines that does not depend on their order: the sum of their hashes of 128 bits.
class LineBag {
public:
    void add(std::string_view line);
    uint64_t lines() const { return lines_; }
    uint64_t bytes() const { return bytes_; }  // with the ends of the lines
    bool operator==(const LineBag&) const = default;

private:
    uint64_t lines_ = 0;
    uint64_t bytes_ = 0;
    uint64_t sums_[2] = {};
};

struct TextCheck {
    LineBag bag;
    uint64_t digest[2] = {};  // of all bytes in their order
    bool is_sorted = true;
    bool is_complete = false;  // false when `should_stop` ended it
};

// Reads the file from its beginning; its position stays.
Result<TextCheck> check_text(int file, const std::function<bool()>& should_stop);

}  // namespace hanare::bench
