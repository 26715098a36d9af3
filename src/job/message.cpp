// SPDX-License-Identifier: Apache-2.0
#include "job/message.hpp"

#include <bit>
#include <cstring>

#include "fabric/crc32c.hpp"

namespace hanare::job {
namespace {

static_assert(std::endian::native == std::endian::little);

uint32_t check_of(MessageHeader header, std::span<const std::byte> data) noexcept {
    header.check = 0;
    const uint32_t first =
        fabric::crc32c(0, reinterpret_cast<const std::byte*>(&header), sizeof header);
    return fabric::crc32c(first, data.data(), data.size());
}

// Whether the data may be as long as that.
bool has_good_length(MessageKind kind, size_t bytes) noexcept {
    switch (kind) {
        case MessageKind::kJoin:
        case MessageKind::kAgent: return bytes == sizeof(uint64_t);
        case MessageKind::kPublish:
        case MessageKind::kAnswer: return bytes <= kMessageDataMax;
        case MessageKind::kWelcome:
        case MessageKind::kAsk:
        case MessageKind::kEnded:
        case MessageKind::kSignal: return bytes == 0;
    }
    return false;  // nobody knows this kind
}

}  // namespace

void append(std::vector<std::byte>& bytes, const Message& message) {
    MessageHeader header = {.version = kMessageVersion,
                            .kind = static_cast<uint8_t>(message.kind),
                            .bytes = static_cast<uint16_t>(message.data.size()),
                            .rank = message.rank,
                            .value = message.value,
                            .check = 0};
    header.check = check_of(header, message.data);
    const auto* const begin = reinterpret_cast<const std::byte*>(&header);
    bytes.insert(bytes.end(), begin, begin + sizeof header);
    bytes.insert(bytes.end(), message.data.begin(), message.data.end());
}

Parsed parse(std::span<const std::byte> bytes, Message& message, size_t& used) {
    MessageHeader header;
    // What is wrong shows as soon as it is there.
    if (!bytes.empty() && bytes[0] != std::byte{kMessageVersion}) return Parsed::kNonsense;
    if (bytes.size() < sizeof header) return Parsed::kIncomplete;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto kind = static_cast<MessageKind>(header.kind);
    if (!has_good_length(kind, header.bytes)) return Parsed::kNonsense;
    if (bytes.size() < sizeof header + header.bytes) return Parsed::kIncomplete;
    const auto data = bytes.subspan(sizeof header, header.bytes);
    if (header.check != check_of(header, data)) return Parsed::kNonsense;
    message = {kind, header.rank, header.value, {data.begin(), data.end()}};
    used = sizeof header + header.bytes;
    return Parsed::kMessage;
}

std::vector<std::byte> data_of(uint64_t job_number) {
    std::vector<std::byte> data(sizeof job_number);
    std::memcpy(data.data(), &job_number, sizeof job_number);
    return data;
}

}  // namespace hanare::job
