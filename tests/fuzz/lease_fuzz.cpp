// SPDX-License-Identifier: Apache-2.0
//
// What a memory server answers, of any content: what a client believes of it has to be possible.
//
// The first byte says what was asked, and whether version and count are put right.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "lease/ask.hpp"

namespace hanare::lease {
namespace {

// The way to a server that answers every question with the same bytes.
class FixedAnswer : public fabric::Link {
public:
    explicit FixedAnswer(std::span<const std::byte> answer) : answer_(answer) {}

    void post(fabric::Operation& call) noexcept override {
        HANARE_ASSERT(call.kind == fabric::Kind::kCall && call.source.size() == sizeof(Question));
        const size_t bytes = std::min(answer_.size(), call.destination.size());
        if (bytes != 0) std::memcpy(call.destination.data(), answer_.data(), bytes);
        call.note_value(bytes);
        call.finish();
    }
    bool test(fabric::Operation& call) noexcept override { return call.is_done(); }
    hanare_status wait(fabric::Operation& call) noexcept override { return call.status(); }
    hanare_status carry_out(fabric::Operation& call) noexcept override {
        post(call);
        return call.status();
    }
    void end() noexcept override {}
    bool is_lost() const noexcept override { return false; }

private:
    const std::span<const std::byte> answer_;
};

void mend(std::span<std::byte> bytes, Ask what) {
    if (bytes.size() < sizeof(Answer)) return;
    Answer answer;
    std::memcpy(&answer, bytes.data(), sizeof answer);
    answer.version = kMessageVersion;
    const size_t rest = bytes.size() - sizeof answer;
    const size_t each = what == Ask::kStatus                          ? sizeof(StatusRow)
                        : what == Ask::kGrow || what == Ask::kExtents ? sizeof(Extent)
                                                                      : 0;
    answer.count = each == 0 ? 0 : static_cast<uint32_t>(rest / each);
    std::memcpy(bytes.data(), &answer, sizeof answer);
}

void check(const Reply& reply, Ask what, hanare_status status) {
    if (status != HANARE_STATUS_OK) {
        HANARE_ASSERT(reply.extents.empty() && reply.rows.empty() && reply.answer.server == 0);
        return;
    }
    HANARE_ASSERT(reply.answer.version == kMessageVersion);
    HANARE_ASSERT(reply.answer.count == reply.extents.size() + reply.rows.size());
    HANARE_ASSERT(reply.extents.empty() || what == Ask::kGrow || what == Ask::kExtents);
    HANARE_ASSERT(reply.rows.empty() || what == Ask::kStatus);
    for (const Extent& extent : reply.extents) {
        HANARE_ASSERT(extent.bytes >= kExtentAlignmentBytes);
    }
    for (const StatusRow& row : reply.rows) {
        for (const char c : client_of(row)) HANARE_ASSERT(c >= ' ' && c <= '~');
    }
}

}  // namespace
}  // namespace hanare::lease

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    using namespace hanare::lease;
    if (bytes == 0) return 0;
    const auto what = static_cast<Ask>(1 + (data[0] & 7));
    std::byte copy[hanare::fabric::kMessageBytesMax];
    const size_t count = std::min(bytes - 1, sizeof copy);
    if (count != 0) std::memcpy(copy, data + 1, count);
    const std::span answer(copy, count);
    if ((data[0] & 8) != 0) mend(answer, what);
    FixedAnswer link(answer);
    Reply reply;
    const hanare_status status = ask(link, {.what = what}, UINT64_MAX, reply);
    check(reply, what, status);
    return 0;
}
