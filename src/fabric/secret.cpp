// SPDX-License-Identifier: Apache-2.0
#include "fabric/secret.hpp"

#include <algorithm>
#include <cstring>

#include "sys/private_file.hpp"
#include "sys/random.hpp"

namespace hanare::fabric {
namespace {

constexpr size_t kTextBytesMax = 2 * Secret::kBytes + 1;
constexpr std::string_view kDigits = "0123456789abcdef";

// -1: not a hexadecimal digit.
int value_of(char digit) {
    if (digit >= 'A' && digit <= 'F') digit = static_cast<char>(digit - 'A' + 'a');
    const size_t at = kDigits.find(digit);
    return at == kDigits.npos ? -1 : static_cast<int>(at);
}

}  // namespace

Result<Secret> Secret::make() {
    Secret made;
    HANARE_TRY(sys::fill_random(made.bytes_));
    return made;
}

Result<Secret> Secret::read_file(const std::string& path) {
    HANARE_TRY_ASSIGN(std::string text, sys::read_private_file(path, kTextBytesMax));
    Result<Secret> secret = parse(path.c_str(), text);
    explicit_bzero(text.data(), text.size());
    return secret;
}

Result<Secret> Secret::read_descriptor(int number) {
    HANARE_TRY_ASSIGN(std::string text, sys::read_to_end(number, kTextBytesMax));
    const std::string what = "descriptor " + std::to_string(number);
    Result<Secret> secret = parse(what.c_str(), text);
    explicit_bzero(text.data(), text.size());
    return secret;
}

Result<Secret> Secret::parse(const char* what, std::string_view text) {
    const auto wrong = [&] {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%.150s: a secret is %zu bytes, or %zu hexadecimal digits", what, kBytes,
                    2 * kBytes);
    };
    Secret secret;
    if (text.size() == kBytes) {
        std::memcpy(secret.bytes_.data(), text.data(), kBytes);
        return secret;
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.size() != 2 * kBytes) return wrong();
    for (size_t i = 0; i < kBytes; ++i) {
        const int high = value_of(text[2 * i]);
        const int low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0) return wrong();
        secret.bytes_[i] = static_cast<std::byte>(16 * high + low);
    }
    return secret;
}

Secret::~Secret() { explicit_bzero(bytes_.data(), bytes_.size()); }

std::string Secret::text() const {
    std::string digits;
    digits.reserve(2 * kBytes);  // no copies of a part are left behind
    for (const std::byte byte : bytes_) {
        digits += kDigits[static_cast<size_t>(byte >> 4)];
        digits += kDigits[static_cast<size_t>(byte & std::byte{15})];
    }
    return digits;
}

}  // namespace hanare::fabric
