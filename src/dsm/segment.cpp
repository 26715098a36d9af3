// SPDX-License-Identifier: Apache-2.0
#include "dsm/segment.hpp"

#include <utility>

#include "base/units.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::dsm {

Result<Segment> Segment::reserve(std::byte* address, size_t bytes) {
    Segment segment;
    HANARE_TRY_ASSIGN(segment.program_, sys::Mapping::reserve_at(address, bytes));
    HANARE_TRY_ASSIGN(segment.alias_, sys::Mapping::reserve(bytes, kOsPageBytes));
    return segment;
}

// Children have neither: what they wrote, all would see.
Result<void> Segment::show(sys::FileDescriptor file) {
    HANARE_TRY(sys::map_shared(program_, file));
    HANARE_TRY(sys::map_shared(alias_, file));
    HANARE_TRY(program_.hide_from_children());
    HANARE_TRY(alias_.hide_from_children());
    file_ = std::move(file);
    return {};
}

}  // namespace hanare::dsm
