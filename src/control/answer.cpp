// SPDX-License-Identifier: Apache-2.0
#include "control/answer.hpp"

namespace hanare::control {

namespace {

// Bytes of the character that begins the text; 0 if that is none.  Overlong forms and surrogates
// are none.
size_t character_bytes(std::string_view text) noexcept {
    const auto byte = [&](size_t at) {
        return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
    };
    const auto follows = [&](size_t at, unsigned least = 0x80, unsigned most = 0xbf) {
        return byte(at) >= least && byte(at) <= most;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const unsigned least = first == 0xe0 ? 0xa0 : 0x80;
        const unsigned most = first == 0xed ? 0x9f : 0xbf;
        return follows(1, least, most) && follows(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const unsigned least = first == 0xf0 ? 0x90 : 0x80;
        const unsigned most = first == 0xf4 ? 0x8f : 0xbf;
        return follows(1, least, most) && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

}  // namespace

Answer& Answer::quoted(std::string_view value) noexcept {
    put('"');
    while (!value.empty()) {
        const size_t bytes = character_bytes(value);
        const auto first = static_cast<unsigned char>(value.front());
        if (bytes == 0) {
            put('?');
        } else if (first < 0x20) {
            constexpr char kDigits[] = "0123456789abcdef";
            text("\\u00");
            put(kDigits[first >> 4]);
            put(kDigits[first & 15]);
        } else {
            if (first == '"' || first == '\\') put('\\');
            text(value.substr(0, bytes));
        }
        value.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    put('"');
    return *this;
}

}  // namespace hanare::control
