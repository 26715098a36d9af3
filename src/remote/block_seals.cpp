// SPDX-License-Identifier: Apache-2.0
#include "remote/block_seals.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/fetch_ahead.hpp"
#include "base/units.hpp"
#include "sys/random.hpp"

namespace hanare::remote {
namespace {

using fabric::AesGcm;

constexpr uint64_t kStoreBytesMax = uint64_t{1} << 62;

class RandomKey {
public:
    RandomKey() = default;
    RandomKey(const RandomKey&) = delete;
    RandomKey& operator=(const RandomKey&) = delete;
    ~RandomKey() { explicit_bzero(bytes.data(), bytes.size()); }

    std::array<std::byte, AesGcm::kKeyBytes> bytes = {};
};

// What is authenticated of a unit besides its content.
struct Associated {
    uint64_t offset;
    uint64_t version;
};

// The deterministic construction (SP 800-38D, section 8.2.1): an invocation field of 64 bits, and a
// fixed field of zeros, since all who have the key take their numbers from one source.
std::array<std::byte, AesGcm::kNonceBytes> nonce_of(uint64_t version) {
    std::array<std::byte, AesGcm::kNonceBytes> nonce = {};
    std::memcpy(nonce.data() + nonce.size() - sizeof version, &version, sizeof version);
    return nonce;
}

}  // namespace

Result<std::unique_ptr<BlockSeals>> BlockSeals::make(uint64_t store_bytes_max, uint32_t unit_bytes,
                                                     uint64_t first_version_range) {
    if (!is_power_of_two(unit_bytes) || unit_bytes < kUnitBytesMin || unit_bytes > kUnitBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "units of %u bytes cannot be sealed: powers of two from %u to %u are possible",
                    unit_bytes, kUnitBytesMin, kUnitBytesMax);
    }
    if (store_bytes_max == 0 || store_bytes_max > kStoreBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "a store of %s cannot be sealed: 1 byte to %s are possible",
                    format_size(store_bytes_max).c_str(), format_size(kStoreBytesMax).c_str());
    }
    RandomKey key;
    HANARE_TRY(sys::fill_random(key.bytes));
    HANARE_TRY_ASSIGN(AesGcm cipher, AesGcm::make(key.bytes));
    HANARE_TRY_ASSIGN(auto versions, sys::UniqueNumbers::make(first_version_range));
    const uint64_t units = round_up(store_bytes_max, unit_bytes) / unit_bytes;
    HANARE_TRY_ASSIGN(auto table, sys::SparseMemory::reserve(units * kBytesPerUnit));
    return std::unique_ptr<BlockSeals>(
        new BlockSeals(std::move(cipher), std::move(versions), std::move(table), unit_bytes));
}

BlockSeals::BlockSeals(AesGcm cipher, sys::UniqueNumbers versions, sys::SparseMemory table,
                       uint32_t unit_bytes) noexcept
    : cipher_(std::move(cipher)),
      versions_(std::move(versions)),
      table_(std::move(table)),
      unit_bytes_(unit_bytes) {}

bool BlockSeals::seal(uint64_t offset, const std::byte* plain, std::byte* sealed,
                      size_t bytes) noexcept {
    const std::span<Seal> seals = seals_of(offset, bytes);
    if (seals.empty()) return true;
    uint64_t version = versions_.take(seals.size());
    if (version == 0) return false;
    const std::byte* const last = plain + bytes - unit_bytes_;
    for (Seal& seal : seals) {
        if (plain != last) fetch_ahead(plain + unit_bytes_, unit_bytes_);
        const Associated associated{.offset = offset, .version = version};
        cipher_.seal(nonce_of(version), std::as_bytes(std::span(&associated, 1)), plain, sealed,
                     unit_bytes_, seal.tag.data());
        seal.version = version++;
        offset += unit_bytes_;
        plain += unit_bytes_;
        sealed += unit_bytes_;
    }
    return true;
}

bool BlockSeals::open(uint64_t offset, std::byte* data, size_t bytes) const noexcept {
    std::byte* unit = data;
    const std::byte* const end = data + bytes;
    for (const Seal& seal : seals_of(offset, bytes)) {
        if (unit + unit_bytes_ != end) fetch_ahead(unit + unit_bytes_, unit_bytes_);
        if (seal.version == 0) {
            std::memset(unit, 0, unit_bytes_);
        } else {
            const Associated associated{.offset = offset, .version = seal.version};
            if (!cipher_.open(nonce_of(seal.version), std::as_bytes(std::span(&associated, 1)),
                              unit, unit, unit_bytes_, seal.tag.data())) {
                std::memset(data, 0, bytes);
                return false;
            }
        }
        offset += unit_bytes_;
        unit += unit_bytes_;
    }
    return true;
}

void BlockSeals::release(uint64_t offset, uint64_t bytes) noexcept {
    const std::span<Seal> seals = seals_of(offset, bytes);
    table_.clear(reinterpret_cast<std::byte*>(seals.data()), seals.size_bytes());
}

std::span<BlockSeals::Seal> BlockSeals::seals_of(uint64_t offset, uint64_t bytes) const noexcept {
    const uint64_t units = table_.bytes() / sizeof(Seal);
    const uint64_t first = offset / unit_bytes_;
    const uint64_t count = bytes / unit_bytes_;
    HANARE_ASSERT(offset % unit_bytes_ == 0 && bytes % unit_bytes_ == 0);
    HANARE_ASSERT(first <= units && count <= units - first);
    return {reinterpret_cast<Seal*>(table_.address()) + first, count};
}

}  // namespace hanare::remote
