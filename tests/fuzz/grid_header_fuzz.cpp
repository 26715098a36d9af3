// SPDX-License-Identifier: Apache-2.0
//
// The header of a grid's file, of any content: what is believed of it has to be possible, and is
// written again as it was.
//
// The first byte says whether magic, version and checksum are put right.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "stencil/file_header.hpp"

namespace hanare::stencil {
namespace {

using Page = std::array<std::byte, kHeaderPageBytes>;

void check(const FileHeader& header) {
    HANARE_ASSERT(!header.fields.empty() && header.fields.size() <= 64);
    for (const FieldSpec& field : header.fields) {
        HANARE_ASSERT(field.name.size() < 32);
        HANARE_ASSERT(field.kind >= HANARE_FIELD_STATE && field.kind <= HANARE_FIELD_CONSTANT);
    }
    HANARE_ASSERT(header.copy == 0 || header.durability == HANARE_DURABILITY_PING_PONG);
    HANARE_ASSERT(header.copy <= 1);
    const auto geometry = Geometry::make(header.shape);
    if (!geometry) return;
    // All offsets that follow from it fit: both copies of both levels of all fields.
    HANARE_ASSERT(geometry->stored_bytes() < UINT64_MAX / 256);
    HANARE_ASSERT(geometry->stored_bytes() % 4096 == 0);
    HANARE_ASSERT(geometry->stored_bytes() >= geometry->cell_count() * header.shape.element_bytes);
    HANARE_ASSERT(geometry->cell_offset(0, 0) >= 0);
    HANARE_ASSERT(geometry->positions() >= 1 && geometry->group() >= 1);
}

}  // namespace
}  // namespace hanare::stencil

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    using namespace hanare::stencil;
    if (bytes == 0) return 0;
    Page page = {};
    const size_t count = std::min(bytes - 1, page.size());
    if (count != 0) std::memcpy(page.data(), data + 1, count);
    const size_t told = (data[0] & 2) != 0 ? page.size() : count;
    if ((data[0] & 1) != 0) make_plausible(page);
    const auto header = decode({page.data(), told});
    if (!header) {
        HANARE_ASSERT(header.error().status == HANARE_STATUS_CORRUPT ||
                      header.error().status == HANARE_STATUS_NOT_SUPPORTED);
        return 0;
    }
    check(*header);
    Page again = {};
    encode(*header, again);
    const auto second = decode(again);
    HANARE_ASSERT(second.has_value());
    Page third = {};
    encode(*second, third);
    HANARE_ASSERT(again == third);
    return 0;
}
