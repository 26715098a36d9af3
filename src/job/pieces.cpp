// SPDX-License-Identifier: Apache-2.0
#include "job/pieces.hpp"

#include <charconv>

#include "job/wipe.hpp"

namespace hanare::job {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kCountBytesMax = 4;  // "999-"

}  // namespace

std::vector<std::string> pieces_of(std::span<const std::byte> bytes, size_t text_bytes_max) {
    std::string digits;
    digits.reserve(2 * bytes.size());  // else growing leaves copies
    const WipeAtEnd wiping(digits);
    for (const std::byte byte : bytes) {
        digits += kDigits[static_cast<size_t>(byte >> 4)];
        digits += kDigits[static_cast<size_t>(byte & std::byte{15})];
    }
    const size_t length = text_bytes_max - kCountBytesMax;
    std::vector<std::string> pieces;
    for (size_t at = 0; at < digits.size(); at += length) {
        pieces.push_back(digits.substr(at, length));
    }
    if (pieces.empty()) pieces.emplace_back();
    pieces.front().insert(0, std::to_string(pieces.size()) + "-");
    return pieces;
}

size_t piece_count(std::string_view first) {
    size_t count = 0;
    const size_t end = first.find('-');
    if (end == first.npos || end + 1 > kCountBytesMax) return 0;
    const auto [stopped, error] = std::from_chars(first.data(), first.data() + end, count);
    return error == std::errc() && stopped == first.data() + end ? count : 0;
}

std::optional<std::vector<std::byte>> join_pieces(std::span<const std::string> pieces) {
    if (pieces.empty() || piece_count(pieces.front()) != pieces.size()) return std::nullopt;
    size_t length = 0;
    for (const std::string& piece : pieces) length += piece.size();
    std::string digits;
    digits.reserve(length);
    const WipeAtEnd wiping(digits);
    digits.append(pieces.front(), pieces.front().find('-') + 1);
    for (const std::string& piece : pieces.subspan(1)) digits += piece;
    if (digits.size() % 2 != 0) return std::nullopt;
    std::vector<std::byte> bytes;
    bytes.reserve(digits.size() / 2);
    for (size_t at = 0; at < digits.size(); at += 2) {
        const size_t high = kDigits.find(digits[at]);
        const size_t low = kDigits.find(digits[at + 1]);
        if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
        bytes.push_back(static_cast<std::byte>(16 * high + low));
    }
    return bytes;
}

}  // namespace hanare::job
