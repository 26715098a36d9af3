// SPDX-License-Identifier: Apache-2.0
#include "fabric/frame_cipher.hpp"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"

namespace hanare::fabric {
namespace {

std::vector<std::byte> from_hex(std::string_view digits) {
    std::vector<std::byte> bytes;
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(16 * value(digits[i]) + value(digits[i + 1])));
    }
    return bytes;
}

DirectionKey key_of(std::string_view key, std::string_view nonce) {
    DirectionKey made;
    std::ranges::copy(from_hex(key), made.key.begin());
    std::ranges::copy(from_hex(nonce), made.nonce.begin());
    return made;
}

std::vector<std::byte> seal(FrameCipher& cipher, std::span<const std::byte> plain,
                            std::span<const std::byte> associated) {
    std::vector<std::byte> sealed(plain.size() + FrameCipher::kTagBytes);
    cipher.begin(associated);
    cipher.seal(plain.data(), sealed.data(), plain.size());
    cipher.end_sealing(sealed.data() + plain.size());
    return sealed;
}

bool opens(FrameCipher& cipher, std::span<const std::byte> sealed,
           std::span<const std::byte> associated, std::vector<std::byte>& plain) {
    plain.resize(sealed.size() - FrameCipher::kTagBytes);
    cipher.begin(associated);
    cipher.open(sealed.data(), plain.data(), plain.size());
    return cipher.end_opening(sealed.data() + plain.size());
}

constexpr std::string_view kKey =
    "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
constexpr std::string_view kNonce = "cafebabefacedbaddecaf888";

// The Galois/Counter Mode of Operation (McGrew, Viega), appendix B, test cases 13 to 16.
TEST(FrameCipher, PublishedVectors) {
    struct Vector {
        std::string_view key, nonce, plain, associated, sealed;
    };
    constexpr std::string_view kZeros =
        "0000000000000000000000000000000000000000000000000000000000000000";
    constexpr std::string_view kPlain =
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    const Vector vectors[] = {
        {kZeros, "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
        {kZeros, "000000000000000000000000", "00000000000000000000000000000000", "",
         "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
        {kKey, kNonce, kPlain, "",
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
         "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
         "b094dac5d93471bdec1a502270e3cc6c"},
        {kKey, kNonce, kPlain.substr(0, 120), "feedfacedeadbeeffeedfacedeadbeefabaddad2",
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
         "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
         "76fc6ece0f4e1768cddf8853bb2d551b"},
    };
    for (const Vector& vector : vectors) {
        FrameCipher sealer = FrameCipher::make(key_of(vector.key, vector.nonce)).value();
        FrameCipher opener = FrameCipher::make(key_of(vector.key, vector.nonce)).value();
        const auto associated = from_hex(vector.associated);
        const auto sealed = seal(sealer, from_hex(vector.plain), associated);
        EXPECT_TRUE(sealed == from_hex(vector.sealed));
        std::vector<std::byte> plain;
        EXPECT_TRUE(opens(opener, sealed, associated, plain));
        EXPECT_TRUE(plain == from_hex(vector.plain));
    }
}

TEST(FrameCipher, PiecesOfAnySize) {
    Prng prng(9);
    FrameCipher sealer = FrameCipher::make(key_of(kKey, kNonce)).value();
    FrameCipher opener = FrameCipher::make(key_of(kKey, kNonce)).value();
    for (int round = 0; round < 300; ++round) {
        std::vector<std::byte> plain(prng.below(5000));
        for (std::byte& byte : plain) byte = static_cast<std::byte>(prng.next());
        const auto sealed = seal(sealer, plain, {});
        std::vector<std::byte> opened(plain.size());
        opener.begin({});
        for (size_t at = 0; at < plain.size();) {
            const size_t bytes = std::min<size_t>(1 + prng.below(700), plain.size() - at);
            opener.open(sealed.data() + at, opened.data() + at, bytes);
            at += bytes;
        }
        ASSERT_TRUE(opener.end_opening(sealed.data() + plain.size()));
        ASSERT_TRUE(opened == plain);
    }
}

TEST(FrameCipher, WhatWasChangedDoesNotOpen) {
    const auto plain = from_hex("00112233445566778899aabbccddeeff0011");
    const auto associated = from_hex("12000000");
    FrameCipher sealer = FrameCipher::make(key_of(kKey, kNonce)).value();
    const auto sealed = seal(sealer, plain, associated);
    std::vector<std::byte> opened;
    for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
        FrameCipher opener = FrameCipher::make(key_of(kKey, kNonce)).value();
        auto changed = sealed;
        changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        EXPECT_FALSE(opens(opener, changed, associated, opened)) << bit;
    }
    FrameCipher opener = FrameCipher::make(key_of(kKey, kNonce)).value();
    EXPECT_FALSE(opens(opener, sealed, from_hex("13000000"), opened));
}

TEST(FrameCipher, RepeatedAndLeftOutFramesDoNotOpen) {
    const auto plain = from_hex("00112233");
    FrameCipher sealer = FrameCipher::make(key_of(kKey, kNonce)).value();
    const auto first = seal(sealer, plain, {});
    const auto second = seal(sealer, plain, {});
    EXPECT_FALSE(first == second);
    std::vector<std::byte> opened;
    FrameCipher opener = FrameCipher::make(key_of(kKey, kNonce)).value();
    EXPECT_TRUE(opens(opener, first, {}, opened));
    EXPECT_FALSE(opens(opener, first, {}, opened));
    FrameCipher other = FrameCipher::make(key_of(kKey, kNonce)).value();
    EXPECT_FALSE(opens(other, second, {}, opened));
}

}  // namespace
}  // namespace hanare::fabric
