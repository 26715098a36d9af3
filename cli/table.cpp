// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>

namespace hanare::cli {

namespace {

// Lines of at most `width` bytes, broken at the last blank that fits; a longer word is broken hard.
std::vector<std::string> wrapped(const std::string& cell, size_t width) {
    std::vector<std::string> lines;
    size_t start = 0;
    while (cell.size() - start > width) {
        const size_t blank = cell.rfind(' ', start + width);
        const bool has_blank = blank != std::string::npos && blank > start;
        const size_t end = has_blank ? blank : start + width;
        lines.push_back(cell.substr(start, end - start));
        start = has_blank ? end + 1 : end;
    }
    lines.push_back(cell.substr(start));
    return lines;
}

}  // namespace

void Table::append_row(std::string& text, const std::vector<std::string>& cells) const {
    std::vector<std::vector<std::string>> lines;
    size_t height = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
        lines.push_back(wrapped(cells[i], columns_[i].width));
        height = std::max(height, lines.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
        std::string line;
        for (size_t i = 0; i < columns_.size(); ++i) {
            std::string part = y < lines[i].size() ? lines[i][y] : "";
            part.resize(columns_[i].width + 2, ' ');
            line += part;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
}

std::string Table::text() const {
    std::string text;
    std::vector<std::string> titles;
    std::vector<std::string> rule;
    for (const Column& column : columns_) {
        titles.push_back(column.title);
        rule.emplace_back(column.width, '-');
    }
    append_row(text, titles);
    append_row(text, rule);
    for (const auto& cells : rows_) append_row(text, cells);
    return text;
}

}  // namespace hanare::cli
