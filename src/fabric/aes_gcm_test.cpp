// SPDX-License-Identifier: Apache-2.0
#include "fabric/aes_gcm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "base/prng.hpp"

namespace hanare::fabric {
namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view digits) {
    Bytes bytes;
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(16 * value(digits[i]) + value(digits[i + 1])));
    }
    return bytes;
}

struct Vector {
    std::string_view key, nonce, plain, associated, sealed, tag;
};

constexpr std::string_view kZeroKey =
    "0000000000000000000000000000000000000000000000000000000000000000";
constexpr std::string_view kKey =
    "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
constexpr std::string_view kPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
constexpr std::string_view kSealed =
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";

// The Galois/Counter Mode of Operation (McGrew, Viega), appendix B, test cases 13 to 16.
constexpr Vector kVectors[] = {
    {kZeroKey, "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {kZeroKey, "000000000000000000000000", "00000000000000000000000000000000", "",
     "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    {kKey, "cafebabefacedbaddecaf888", kPlain, "", kSealed, "b094dac5d93471bdec1a502270e3cc6c"},
    {kKey, "cafebabefacedbaddecaf888", kPlain.substr(0, 120),
     "feedfacedeadbeeffeedfacedeadbeefabaddad2", kSealed.substr(0, 120),
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

AesGcm cipher_of(std::string_view key) {
    std::array<std::byte, AesGcm::kKeyBytes> bytes;
    std::ranges::copy(from_hex(key), bytes.begin());
    return AesGcm::make(bytes).value();
}

std::array<std::byte, AesGcm::kNonceBytes> nonce_of(std::string_view digits) {
    std::array<std::byte, AesGcm::kNonceBytes> bytes;
    std::ranges::copy(from_hex(digits), bytes.begin());
    return bytes;
}

TEST(AesGcm, PublishedVectors) {
    for (const Vector& vector : kVectors) {
        const AesGcm cipher = cipher_of(vector.key);
        const auto nonce = nonce_of(vector.nonce);
        const Bytes plain = from_hex(vector.plain);
        const Bytes associated = from_hex(vector.associated);
        Bytes sealed(plain.size());
        Bytes tag(AesGcm::kTagBytes);
        cipher.seal(nonce, associated, plain.data(), sealed.data(), plain.size(), tag.data());
        EXPECT_TRUE(sealed == from_hex(vector.sealed));
        EXPECT_TRUE(tag == from_hex(vector.tag));
        // In place.
        EXPECT_TRUE(cipher.open(nonce, associated, sealed.data(), sealed.data(), sealed.size(),
                                tag.data()));
        EXPECT_TRUE(sealed == plain);
    }
}

TEST(AesGcm, EveryBitCounts) {
    const Vector& vector = kVectors[3];
    const AesGcm cipher = cipher_of(vector.key);
    struct Message {
        std::array<std::byte, AesGcm::kNonceBytes> nonce;
        Bytes associated, sealed, tag;
    };
    const Message message{nonce_of(vector.nonce), from_hex(vector.associated),
                          from_hex(vector.sealed), from_hex(vector.tag)};
    const auto opens = [&](const Message& changed) {
        Bytes plain(changed.sealed.size());
        return cipher.open(changed.nonce, changed.associated, changed.sealed.data(), plain.data(),
                           plain.size(), changed.tag.data());
    };
    ASSERT_TRUE(opens(message));
    const auto flips = [&](auto part) {
        for (size_t bit = 0; bit < 8 * part(message).size(); ++bit) {
            Message changed = message;
            part(changed)[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
            EXPECT_FALSE(opens(changed)) << bit;
        }
    };
    flips([](auto& of) -> auto& { return of.nonce; });
    flips([](auto& of) -> auto& { return of.associated; });
    flips([](auto& of) -> auto& { return of.sealed; });
    flips([](auto& of) -> auto& { return of.tag; });
}

TEST(AesGcm, PiecesAreTheSameMessage) {
    Prng prng(3);
    const AesGcm cipher = cipher_of(kKey);
    for (uint64_t round = 0; round < 200; ++round) {
        Bytes plain(prng.below(5000));
        for (std::byte& byte : plain) byte = static_cast<std::byte>(prng.next());
        const Bytes associated(prng.below(40), std::byte{7});
        std::array<std::byte, AesGcm::kNonceBytes> nonce = {};
        nonce[0] = static_cast<std::byte>(round);
        Bytes sealed(plain.size());
        Bytes in_pieces(plain.size());
        Bytes tag(AesGcm::kTagBytes);
        Bytes tag_in_pieces(AesGcm::kTagBytes);
        cipher.seal(nonce, associated, plain.data(), sealed.data(), plain.size(), tag.data());
        AesGcm::Context context;
        cipher.begin(context, nonce, associated);
        for (size_t at = 0; at < plain.size();) {
            const size_t bytes = std::min<size_t>(prng.below(700), plain.size() - at);
            cipher.seal_piece(context, plain.data() + at, in_pieces.data() + at, bytes);
            at += bytes;
        }
        cipher.end_sealing(context, tag_in_pieces.data());
        ASSERT_TRUE(sealed == in_pieces);
        ASSERT_TRUE(tag == tag_in_pieces);
    }
}

TEST(AesGcm, ThreadsUseOneAtOnce) {
    const AesGcm cipher = cipher_of(kKey);
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            Prng prng(t);
            Bytes plain(4096);
            for (std::byte& byte : plain) byte = static_cast<std::byte>(prng.next());
            std::array<std::byte, AesGcm::kNonceBytes> nonce = {};
            nonce[0] = static_cast<std::byte>(t);
            Bytes expected(plain.size());
            Bytes tag(AesGcm::kTagBytes);
            cipher.seal(nonce, {}, plain.data(), expected.data(), plain.size(), tag.data());
            for (int round = 0; round < 1000; ++round) {
                Bytes data = plain;
                cipher.seal(nonce, {}, data.data(), data.data(), data.size(), tag.data());
                if (data != expected) ++wrong;
                const bool opened =
                    cipher.open(nonce, {}, data.data(), data.data(), data.size(), tag.data());
                if (!opened || data != plain) ++wrong;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace hanare::fabric
