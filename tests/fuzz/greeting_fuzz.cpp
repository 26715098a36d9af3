// SPDX-License-Identifier: Apache-2.0
//
// What processes of one machine say before they share memory (fabric/local_greeting.hpp): requests
// of any content to a target, answers of any content to a source.  Nobody gets a region without its
// key.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "fabric/local_greeting.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/local_socket.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::fabric {
namespace {

enum Mode : uint8_t { kToSource = 1, kMagic = 2, kKey = 4, kDescriptors = 8 };

void fuzz_target(std::span<const uint8_t> input, uint8_t mode) {
    static std::vector<std::byte> memory(4096);
    ExposedRegions regions;
    const Capability key = regions.capability(regions.expose(memory, kRead).value(), kRead).value();
    LocalRequest request;
    std::memcpy(&request, input.data(), std::min(input.size(), sizeof request));
    if ((mode & kMagic) != 0) request.magic = LocalRequest::kMagic;
    if ((mode & kKey) != 0) request.capability.key = key.key;
    int ends[2];
    HANARE_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    LocalGreeting greeting(sys::FileDescriptor(ends[0]), regions);
    const sys::FileDescriptor peer(ends[1]);
    const size_t bytes = std::min(sizeof request, input.size());
    const size_t first = bytes / 3;
    const auto* const at = reinterpret_cast<const std::byte*>(&request);
    sys::send_message(peer.number(), {at, first});
    LocalGreeting::Outcome outcome = greeting.go_on();
    sys::send_message(peer.number(), {at + first, bytes - first});
    if (outcome == LocalGreeting::Outcome::kWaits) outcome = greeting.go_on();
    if (outcome != LocalGreeting::Outcome::kOver) return;
    LocalAnswer answer;
    const ptrdiff_t got =
        sys::receive_message(peer.number(), std::as_writable_bytes(std::span(&answer, 1)));
    const bool has_key =
        request.capability.region == key.region && request.capability.epoch == key.epoch &&
        request.capability.rights == key.rights && request.capability.key == key.key;
    if (got == sizeof answer) HANARE_ASSERT((answer.status == HANARE_STATUS_OK) == has_key);
}

void fuzz_source(std::span<const uint8_t> input, uint8_t mode) {
    static const std::string address = "@hanare-fuzz-" + std::to_string(getpid());
    static const sys::FileDescriptor listener = sys::listen_local(address).value();
    static const sys::FileDescriptor file = sys::create_shared_memory(4096).value();
    RegionRequest request;
    HANARE_ASSERT(request.begin(address, {}) == 0);
    const sys::FileDescriptor peer = sys::accept_local(listener);
    LocalAnswer answer;
    std::memcpy(&answer, input.data(), std::min(input.size(), sizeof answer));
    if ((mode & kMagic) != 0) answer.magic = LocalRequest::kMagic;
    const std::array<int, 2> files = {file.number(), file.number()};
    const size_t bytes = std::min(sizeof answer, input.size());
    sys::send_message(peer.number(), std::as_bytes(std::span(&answer, 1)).first(bytes),
                      std::span(files).first((mode & kDescriptors) != 0 ? 1 + (mode >> 7) : 0));
    if (bytes == 0) return;
    HANARE_ASSERT(request.is_answered());
    const bool is_good = bytes == sizeof answer && answer.magic == LocalRequest::kMagic;
    HANARE_ASSERT(request.status() == (is_good ? answer.status : HANARE_STATUS_PEER_LOST));
}

}  // namespace
}  // namespace hanare::fabric

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes == 0) return 0;
    const std::span<const uint8_t> input(data + 1, bytes - 1);
    if ((data[0] & hanare::fabric::kToSource) != 0) {
        hanare::fabric::fuzz_source(input, data[0]);
    } else {
        hanare::fabric::fuzz_target(input, data[0]);
    }
    return 0;
}
