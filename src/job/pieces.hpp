// SPDX-License-Identifier: Apache-2.0
//
// Bytes as short texts, for launchers that keep only these: hexadecimal digits, in as many pieces
// as the longest allowed text makes necessary.  The first begins with their number: "2-00ff", "80".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hanare::job {

inline constexpr size_t kPieceBytesMin = 16;
inline constexpr size_t kPiecesMax = 999;

// Each text has at most `text_bytes_max`, at least kPieceBytesMin, characters.  There must not be
// more than kPiecesMax.
std::vector<std::string> pieces_of(std::span<const std::byte> bytes, size_t text_bytes_max);

// How many pieces the first one says there are; 0: it is none.
size_t piece_count(std::string_view first);
// Nothing when they are not what pieces_of() has made.
std::optional<std::vector<std::byte>> join_pieces(std::span<const std::string> pieces);

}  // namespace hanare::job
