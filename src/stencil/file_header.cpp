// SPDX-License-Identifier: Apache-2.0
#include "stencil/file_header.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::stencil {

namespace {

constexpr char kMagic[8] = {'H', 'A', 'N', 'A', 'G', 'R', 'I', 'D'};
constexpr uint32_t kVersion = 1;
constexpr size_t kFieldsMax = 64;
constexpr size_t kNameBytes = 32;

// As in the file, little-endian like the machines that this runs on.
struct RawField {
    char name[kNameBytes];
    uint32_t kind;
    uint32_t reserved;
};
struct RawHeader {
    char magic[8];
    uint32_t version;
    uint32_t dimensions;
    uint64_t sequence;
    uint64_t step;
    uint64_t file_bytes;
    uint64_t cells[3];
    uint32_t boundary[3];
    uint32_t element_bytes;
    uint32_t radius;
    uint32_t field_count;
    uint32_t durability;
    uint32_t copy;
    uint32_t is_running;
    uint32_t reserved;
    RawField fields[kFieldsMax];
    uint64_t checksum;  // of all before
};
static_assert(sizeof(RawHeader) <= kHeaderPageBytes);

// FNV-1a, 64 bits: against cut-off pages and foreign files, not against anybody.
uint64_t checksum_of(const RawHeader& raw) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&raw);
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(RawHeader, checksum); ++i) {
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    }
    return sum;
}

// What Geometry::make does not look at.
bool makes_sense(const RawHeader& raw) {
    const bool has_element =
        raw.element_bytes == sizeof(double) || raw.element_bytes == sizeof(float);
    const bool is_known = raw.durability == HANARE_DURABILITY_IN_PLACE ||
                          raw.durability == HANARE_DURABILITY_PING_PONG;
    const bool has_boundaries = std::ranges::all_of(
        raw.boundary, [](uint32_t boundary) { return boundary <= HANARE_BOUNDARY_PERIODIC; });
    if (!has_element || !is_known || !has_boundaries || raw.copy > 1 || raw.is_running > 1)
        return false;
    // In place there is one copy.
    if (raw.durability == HANARE_DURABILITY_IN_PLACE && raw.copy != 0) return false;
    if (raw.field_count < 1 || raw.field_count > kFieldsMax) return false;
    return std::all_of(raw.fields, raw.fields + raw.field_count,
                       [](const RawField& field) { return field.kind <= HANARE_FIELD_CONSTANT; });
}

}  // namespace

void encode(const FileHeader& header, std::span<std::byte> page) {
    RawHeader raw = {};
    std::memcpy(raw.magic, kMagic, sizeof kMagic);
    raw.version = kVersion;
    raw.dimensions = header.shape.dimensions;
    raw.sequence = header.sequence;
    raw.step = header.step;
    raw.file_bytes = header.file_bytes;
    for (size_t axis = 0; axis < 3; ++axis) {
        raw.cells[axis] = header.shape.cells[axis];
        raw.boundary[axis] = static_cast<uint32_t>(header.shape.boundary[axis]);
    }
    raw.element_bytes = header.shape.element_bytes;
    raw.radius = header.shape.radius;
    raw.field_count = static_cast<uint32_t>(header.fields.size());
    raw.durability = static_cast<uint32_t>(header.durability);
    raw.copy = header.copy;
    raw.is_running = header.is_running ? 1 : 0;
    for (size_t i = 0; i < header.fields.size(); ++i) {
        const FieldSpec& field = header.fields[i];
        std::memcpy(raw.fields[i].name, field.name.data(),
                    std::min(field.name.size(), kNameBytes - 1));
        raw.fields[i].kind = static_cast<uint32_t>(field.kind);
    }
    raw.checksum = checksum_of(raw);
    std::memset(page.data(), 0, page.size());
    std::memcpy(page.data(), &raw, sizeof raw);
}

void make_plausible(std::span<std::byte> page) {
    RawHeader raw = {};
    std::memcpy(&raw, page.data(), sizeof raw);
    std::memcpy(raw.magic, kMagic, sizeof kMagic);
    raw.version = kVersion;
    raw.checksum = checksum_of(raw);
    std::memcpy(page.data(), &raw, sizeof raw);
}

Result<FileHeader> decode(std::span<const std::byte> page) {
    RawHeader raw = {};
    if (page.size() < sizeof raw) return fail(HANARE_STATUS_CORRUPT, "too short for a grid");
    std::memcpy(&raw, page.data(), sizeof raw);
    if (std::memcmp(raw.magic, kMagic, sizeof kMagic) != 0) {
        return fail(HANARE_STATUS_CORRUPT, "not the file of a grid");
    }
    if (raw.version != kVersion) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "a grid of version %u; known is %u", raw.version,
                    kVersion);
    }
    if (raw.checksum != checksum_of(raw) || !makes_sense(raw)) {
        return fail(HANARE_STATUS_CORRUPT, "the header of the grid is damaged");
    }
    FileHeader header;
    header.shape.dimensions = raw.dimensions;
    header.shape.element_bytes = raw.element_bytes;
    header.shape.radius = raw.radius;
    for (size_t axis = 0; axis < 3; ++axis) {
        header.shape.cells[axis] = raw.cells[axis];
        header.shape.boundary[axis] = static_cast<hanare_boundary>(raw.boundary[axis]);
    }
    header.durability = static_cast<hanare_durability>(raw.durability);
    header.sequence = raw.sequence;
    header.step = raw.step;
    header.copy = raw.copy;
    header.is_running = raw.is_running != 0;
    header.file_bytes = raw.file_bytes;
    for (size_t i = 0; i < raw.field_count; ++i) {
        raw.fields[i].name[kNameBytes - 1] = '\0';
        header.fields.push_back(
            {raw.fields[i].name, static_cast<hanare_field_kind>(raw.fields[i].kind)});
    }
    return header;
}

}  // namespace hanare::stencil
