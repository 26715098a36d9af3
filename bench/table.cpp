// SPDX-License-Identifier: Apache-2.0
#include "bench/table.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/assert.hpp"

namespace hanare::bench {
namespace {

constexpr size_t kGap = 2;

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add_row(std::vector<std::string> cells) {
    HANARE_ASSERT(cells.size() == rows_.front().size());
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
        for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string out;
    for (size_t r = 0; r < rows_.size(); ++r) {
        for (size_t c = 0; c < widths.size(); ++c) {
            const std::string& cell = rows_[r][c];
            const std::string pad(widths[c] - cell.size(), ' ');
            if (c > 0) out.append(kGap, ' ');
            out += c == 0 ? cell + pad : pad + cell;
        }
        out.erase(out.find_last_not_of(' ') + 1);
        out += '\n';
        if (r != 0) continue;
        size_t width = (widths.size() - 1) * kGap;
        for (const size_t column : widths) width += column;
        out += std::string(width, '-') + '\n';
    }
    return out;
}

std::string format(const char* pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    char buffer[512];
    const int length = std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
    va_end(arguments);
    HANARE_ASSERT(length >= 0);
    return {buffer, std::min(static_cast<size_t>(length), sizeof buffer - 1)};
}

std::string format_seconds(double seconds) {
    if (seconds < 0.0001) return format("%.0f us", seconds * 1e6);
    if (seconds < 0.1) return format("%.1f ms", seconds * 1e3);
    return format(seconds < 10 ? "%.2f s" : "%.1f s", seconds);
}

std::string format_rate(double bytes_per_s) {
    if (bytes_per_s < 1e9) return format("%.0f MB/s", bytes_per_s / 1e6);
    return format("%.2f GB/s", bytes_per_s / 1e9);
}

std::string format_count(uint64_t count) {
    std::string digits = std::to_string(count);
    for (size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

std::string format_ratio(double ratio) {
    return format(ratio < 2 ? "%.2fx" : ratio < 10 ? "%.1fx" : "%.0fx", ratio);
}

}  // namespace hanare::bench
