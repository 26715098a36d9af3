// SPDX-License-Identifier: Apache-2.0
#include "config/nearest.hpp"

#include <algorithm>
#include <vector>

namespace hanare::config {

namespace {

constexpr size_t kNameBytesMax = 64;  // nothing longer resembles an option

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Levenshtein, one row at a time.
size_t distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t changed = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
    if (name.size() > kNameBytesMax) return {};
    std::string_view best;
    size_t best_distance = name.size() / 3 + 1;
    for (const std::string_view candidate : known) {
        const size_t candidate_distance = distance(name, candidate);
        if (candidate_distance < best_distance) {
            best = candidate;
            best_distance = candidate_distance;
        }
    }
    return best;
}

std::string suggestion(std::string_view name, std::span<const std::string_view> known) {
    const std::string_view near = nearest(name, known);
    return near.empty() ? "" : "; did you mean '" + std::string(near) + "'?";
}

std::string in_quotes(std::string_view text) {
    constexpr size_t kShownBytes = 60;
    std::string result = "'";
    for (const char c : text.substr(0, kShownBytes)) {
        const auto byte = static_cast<unsigned char>(c);
        result += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return result + (text.size() > kShownBytes ? "...'" : "'");
}

}  // namespace hanare::config
