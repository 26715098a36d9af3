// SPDX-License-Identifier: Apache-2.0
#include "job/card.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "job/job.hpp"

namespace hanare::job {
namespace {

constexpr uint32_t kMagic = 0x6472'4148;  // "HArd"
constexpr uint16_t kVersion = 2;

// Little-endian, as everything that tasks tell each other; host and local
// address follow.
struct Head {
    uint32_t magic = kMagic;
    uint16_t version = kVersion;
    uint16_t port = 0;
    uint32_t host_bytes = 0;
    uint32_t local_bytes = 0;
    ControlKeys control;
    fabric::Capability ucx;
};
static_assert(sizeof(Head) == 16 + 4 * sizeof(fabric::Capability));

}  // namespace

Result<std::vector<std::byte>> Card::bytes() const {
    const std::string text = host + local_address;
    if (host.empty() || sizeof(Head) + text.size() > Job::kCardBytesMax) {
        return fail(HANARE_STATUS_LIMIT, "addresses of %zu characters; allowed are 1 to %zu",
                    text.size(), Job::kCardBytesMax - sizeof(Head));
    }
    const Head head = {.port = port,
                       .host_bytes = static_cast<uint32_t>(host.size()),
                       .local_bytes = static_cast<uint32_t>(local_address.size()),
                       .control = control,
                       .ucx = ucx};
    std::vector<std::byte> bytes(sizeof head + text.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, text.data(), text.size());
    return bytes;
}

Result<Card> Card::parse(std::span<const std::byte> bytes) {
    const auto no_card = [&] {
        return fail(HANARE_STATUS_CORRUPT, "a task's card of %zu bytes is no card", bytes.size());
    };
    Head head;
    // Those of all versions begin so.
    constexpr size_t kBeginningBytes = offsetof(Head, port);
    if (bytes.size() < kBeginningBytes) return no_card();
    std::memcpy(&head, bytes.data(), std::min(bytes.size(), sizeof head));
    if (head.magic != kMagic) return no_card();
    if (head.version != kVersion) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "a task's card has version %u, this library knows %u: all "
                    "tasks of a job need "
                    "the same one",
                    head.version, kVersion);
    }
    const uint64_t text_bytes = uint64_t{head.host_bytes} + head.local_bytes;
    if (bytes.size() < sizeof head || text_bytes != bytes.size() - sizeof head) return no_card();
    Card card;
    card.port = head.port;
    card.control = head.control;
    card.ucx = head.ucx;
    const auto* const text = reinterpret_cast<const char*>(bytes.data() + sizeof head);
    card.host.assign(text, head.host_bytes);
    card.local_address.assign(text + head.host_bytes, head.local_bytes);
    return card;
}

}  // namespace hanare::job
