// SPDX-License-Identifier: Apache-2.0
//
// Tables for terminals: fixed column widths, cells wrapped at blanks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hanare::cli {

class Table {
public:
    struct Column {
        std::string title;
        size_t width = 0;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // As many cells as there are columns.
    void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

    // With titles, a rule below them, and "\n" at the end.
    std::string text() const;

private:
    void append_row(std::string& text, const std::vector<std::string>& cells) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace hanare::cli
