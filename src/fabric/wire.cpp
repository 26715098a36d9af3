// SPDX-License-Identifier: Apache-2.0
#include "fabric/wire.hpp"

#include "fabric/crc32c.hpp"

namespace hanare::fabric {
namespace {

template <typename Header>
uint32_t check_of(Header header) noexcept {
    header.check = 0;
    return crc32c(0, reinterpret_cast<const std::byte*>(&header), sizeof header);
}

}  // namespace

template <typename Header>
void seal(Header& header) noexcept {
    header.check = check_of(header);
}

template <typename Header>
bool is_sealed(const Header& header) noexcept {
    return header.version == kWireVersion && header.check == check_of(header);
}

template void seal(RequestHeader&) noexcept;
template void seal(AnswerHeader&) noexcept;
template bool is_sealed(const RequestHeader&) noexcept;
template bool is_sealed(const AnswerHeader&) noexcept;

bool is_known_status(int16_t status) noexcept {
    switch (status) {
#define HANARE_CASE(name, value, text) case value:
        HANARE_STATUS_MAP(HANARE_CASE)
#undef HANARE_CASE
        return true;
        default: return false;
    }
}

bool is_plausible(const RequestHeader& header) noexcept {
    if (header.bytes > kRequestBytesMax) return false;
    switch (header.kind) {
        case Kind::kPut:
        case Kind::kGet: return true;
        case Kind::kPush:
        case Kind::kPop:
        case Kind::kSignal: return header.bytes <= kMessageBytesMax && header.offset == 0;
        case Kind::kCall:
            return header.bytes <= kMessageBytesMax && header.operand <= kMessageBytesMax &&
                   header.offset == 0;
        case Kind::kFetch:
            return is_fetch(header.fetch_op, header.width & ~kWakes) &&
                   header.bytes == (header.width & ~kWakes);
    }
    return false;
}

}  // namespace hanare::fabric
