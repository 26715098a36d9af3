// SPDX-License-Identifier: Apache-2.0
#include "lease/ask.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::lease {
namespace {

// What follows an answer.
enum class List { kNone, kExtents, kRows };

List list_of(Ask what) noexcept {
    switch (what) {
        case Ask::kGrow:
        case Ask::kExtents: return List::kExtents;
        case Ask::kStatus: return List::kRows;
        default: return List::kNone;
    }
}

size_t entry_bytes(List list) noexcept {
    switch (list) {
        case List::kNone: return 0;
        case List::kExtents: return sizeof(Extent);
        case List::kRows: return sizeof(StatusRow);
    }
    return 0;
}

bool is_possible(const Extent& extent) noexcept {
    return extent.bytes != 0 && extent.bytes % kExtentAlignmentBytes == 0;
}

// Nothing that a terminal would obey.
bool is_possible(const StatusRow& row) noexcept {
    const auto is_shown = [](std::string_view name) {
        return std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
    };
    return is_shown(client_of(row)) && is_shown(tenant_of(row));
}

template <typename Entry>
std::span<const Entry> entries_at(const std::byte* first, size_t count) noexcept {
    return {reinterpret_cast<const Entry*>(first), count};
}

}  // namespace

hanare_status Reply::parse(Ask what, size_t bytes) noexcept {
    // The version comes first in every one.
    if (bytes < sizeof answer.version) return HANARE_STATUS_CORRUPT;
    Answer head;
    std::memcpy(&head.version, bytes_.data(), sizeof head.version);
    if (head.version != kMessageVersion) return HANARE_STATUS_NOT_SUPPORTED;
    if (bytes < sizeof head || bytes > bytes_.size()) return HANARE_STATUS_CORRUPT;
    std::memcpy(&head, bytes_.data(), sizeof head);

    const List list = list_of(what);
    if (bytes - sizeof head != head.count * entry_bytes(list)) return HANARE_STATUS_CORRUPT;
    if (list == List::kNone && head.count != 0) return HANARE_STATUS_CORRUPT;
    const std::byte* const first = bytes_.data() + sizeof head;
    const auto found_extents = entries_at<Extent>(first, list == List::kExtents ? head.count : 0);
    const auto found_rows = entries_at<StatusRow>(first, list == List::kRows ? head.count : 0);
    const auto is_right = [](const auto& entry) { return is_possible(entry); };
    if (!std::ranges::all_of(found_extents, is_right) ||
        !std::ranges::all_of(found_rows, is_right)) {
        return HANARE_STATUS_CORRUPT;
    }
    answer = head;
    extents = found_extents;
    rows = found_rows;
    return HANARE_STATUS_OK;
}

hanare_status ask(fabric::Link& link, const Question& question, uint64_t deadline_ns,
                  Reply& reply) noexcept {
    reply.answer = {};
    reply.extents = {};
    reply.rows = {};
    fabric::Operation call;
    call.kind = fabric::Kind::kCall;
    call.deadline_ns = deadline_ns;
    call.source = std::as_bytes(std::span(&question, 1));
    call.destination = reply.bytes_;
    const hanare_status status = link.carry_out(call);
    if (status != HANARE_STATUS_OK) return status;
    return reply.parse(question.what, call.value());
}

void PendingQuestion::post(fabric::Link& link, const Question& question) noexcept {
    question_ = question;
    fabric::Operation& call = call_.emplace();
    call.kind = fabric::Kind::kCall;
    call.source = std::as_bytes(std::span(&question_, 1));
    call.destination = bytes_;
    link.post(call);
}

hanare_status PendingQuestion::take(Reply& reply) noexcept {
    const hanare_status status = call_->status();
    const uint64_t bytes = call_->value();
    call_.reset();
    if (status != HANARE_STATUS_OK) return status;
    reply.bytes_ = bytes_;
    return reply.parse(question_.what, bytes);
}

std::string_view client_of(const StatusRow& row) noexcept {
    return {row.client, strnlen(row.client, sizeof row.client)};
}

std::string_view tenant_of(const StatusRow& row) noexcept {
    return {row.tenant, strnlen(row.tenant, sizeof row.tenant)};
}

}  // namespace hanare::lease
