// SPDX-License-Identifier: Apache-2.0
#include "job/node_list.hpp"

#include <algorithm>
#include <charconv>

#include "config/rules.hpp"

namespace hanare::job {
namespace {

constexpr size_t kNameBytesMax = 255;

// Numbers of one width, as they stand in a bracket: "7", "01-03".
struct Numbers {
    uint32_t first = 0;
    uint32_t last = 0;
    size_t width = 0;
};

bool parse_digits(std::string_view text, uint32_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse_numbers(std::string_view text, Numbers& numbers) {
    const size_t dash = text.find('-');
    const std::string_view first = text.substr(0, dash);
    const std::string_view last = dash == text.npos ? first : text.substr(dash + 1);
    numbers.width = first.size();
    return parse_digits(first, numbers.first) && parse_digits(last, numbers.last) &&
           numbers.first <= numbers.last && numbers.last - numbers.first < kNodesMax;
}

// Before anything is made of it: a bracket can ask for many long names.
bool fits_behind(const std::vector<std::string>& names, size_t bytes) {
    const auto has_room = [&](const std::string& name) {
        return bytes <= kNameBytesMax && name.size() <= kNameBytesMax - bytes;
    };
    return std::ranges::all_of(names, has_room);
}

std::string padded(uint32_t number, size_t width) {
    const std::string digits = std::to_string(number);
    return std::string(width - std::min(width, digits.size()), '0') + digits;
}

// Behind each name so far what the bracket stands for.
bool append_bracket(std::vector<std::string>& names, std::string_view bracket) {
    std::vector<std::string> longer;
    while (!bracket.empty()) {
        const size_t comma = std::min(bracket.find(','), bracket.size());
        Numbers numbers;
        if (!parse_numbers(bracket.substr(0, comma), numbers)) return false;
        const size_t count = numbers.last - numbers.first + 1;
        if (longer.size() + names.size() * count > kNodesMax) return false;
        const size_t digits = std::max(numbers.width, std::to_string(numbers.last).size());
        if (!fits_behind(names, digits)) return false;
        for (const std::string& name : names) {
            for (size_t i = 0; i < count; ++i) {
                longer.push_back(name +
                                 padded(numbers.first + static_cast<uint32_t>(i), numbers.width));
            }
        }
        if (comma + 1 == bracket.size()) return false;  // nothing follows the comma
        bracket.remove_prefix(std::min(comma + 1, bracket.size()));
    }
    names = std::move(longer);
    return !names.empty();
}

// Takes one element up to the comma behind it, or the end.
bool take_element(std::string_view& list, std::vector<std::string>& names) {
    names = {""};
    while (!list.empty() && list.front() != ',') {
        if (list.front() == '[') {
            const size_t end = list.find(']');
            if (end == list.npos || !append_bracket(names, list.substr(1, end - 1))) return false;
            list.remove_prefix(end + 1);
            continue;
        }
        const size_t end = std::min(list.find_first_of("[,"), list.size());
        const std::string_view text = list.substr(0, end);
        const auto is_wrong = [](char c) { return c == ']' || c <= ' ' || c == 0x7f; };
        if (std::ranges::any_of(text, is_wrong) || !fits_behind(names, text.size())) return false;
        for (std::string& name : names) name += text;
        list.remove_prefix(end);
    }
    return !names.front().empty();
}

}  // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view what, std::string_view list) {
    const std::string_view whole = list;
    const auto wrong = [&] {
        return config::bad_value(what, whole, "is not understood",
                                 "a list of nodes such as a[01-03,7],b");
    };
    std::vector<std::string> nodes;
    std::vector<std::string> names;
    for (;;) {
        if (!take_element(list, names) || nodes.size() + names.size() > kNodesMax) return wrong();
        nodes.insert(nodes.end(), names.begin(), names.end());
        if (list.empty()) return nodes;
        list.remove_prefix(1);
    }
}

}  // namespace hanare::job
