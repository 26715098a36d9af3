// SPDX-License-Identifier: Apache-2.0
#include "dsm/peers.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "sys/clock.hpp"

namespace hanare::dsm {

void QuestionText::append(const void* data, size_t bytes) noexcept {
    HANARE_ASSERT(bytes <= room());
    if (bytes != 0) std::memcpy(bytes_ + used_, data, bytes);
    used_ += bytes;
}

void Peers::prepare(fabric::Operation& operation) const noexcept {
    operation.deadline_ns = sys::now_ns() + uint64_t{kAnswerMs} * 1'000'000;
}

void Peers::post(uint32_t rank, fabric::Operation& operation) noexcept {
    Counters::add(counters_.messages);
    const bool brings_data = operation.kind == fabric::Kind::kGet;
    Counters::add(counters_.message_bytes,
                  brings_data ? operation.destination.size() : operation.source.size());
    links_[rank]->post(operation);
}

hanare_status Peers::wait(uint32_t rank, fabric::Operation& operation) noexcept {
    links_[rank]->wait(operation);
    const hanare_status status = operation.status();
    if (status != HANARE_STATUS_PEER_LOST && status != HANARE_STATUS_TIMEOUT) return status;
    note_lost(rank);
    return HANARE_STATUS_PEER_LOST;
}

hanare_status Peers::ask(uint32_t rank, std::span<const std::byte> question,
                         std::span<std::byte> answer, size_t* bytes) noexcept {
    fabric::Operation call;
    call.kind = fabric::Kind::kCall;
    call.source = question;
    call.destination = answer;
    prepare(call);
    post(rank, call);
    const hanare_status status = wait(rank, call);
    if (bytes != nullptr) *bytes = status == HANARE_STATUS_OK ? call.value() : 0;
    return status;
}

}  // namespace hanare::dsm
