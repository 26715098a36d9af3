// SPDX-License-Identifier: Apache-2.0
//
// Tables for people: columns as wide as their widest cell, the first one left-aligned.
// Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hanare::bench {

class Table {
public:
    explicit Table(std::vector<std::string> header);
    // As many cells as the header has.
    void add_row(std::vector<std::string> cells);
    // With a line below the header; each line ends with a newline.
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

std::string format_seconds(double seconds);   // "12.3 s", "45.6 ms"
std::string format_rate(double bytes_per_s);  // "1.95 GB/s", decimal units
std::string format_count(uint64_t count);     // "8,192"
std::string format_ratio(double ratio);       // "1.02x", "5.9x", "17x"

}  // namespace hanare::bench
