// SPDX-License-Identifier: Apache-2.0
//
// One question to a memory server, and its answer, which is believed only as far as it was checked:
// the server may be anybody who knows the secret.
//
// Any thread; async-signal-safe, nothing allocates: a fault may need more memory of a server.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fabric/link.hpp"
#include "lease/messages.hpp"

namespace hanare::lease {

// Of 2 KiB; the spans lie in it, so that it stays where it is.
class Reply {
public:
    Reply() = default;
    Reply(const Reply&) = delete;
    Reply& operator=(const Reply&) = delete;

    Answer answer;
    std::span<const Extent> extents;  // of kGrow and kExtents
    std::span<const StatusRow> rows;  // of kStatus

private:
    friend class PendingQuestion;
    friend hanare_status ask(fabric::Link& link, const Question& question, uint64_t deadline_ns,
                             Reply& reply) noexcept;

    hanare_status parse(Ask what, size_t bytes) noexcept;

    alignas(8) std::array<std::byte, fabric::kMessageBytesMax> bytes_;
};

// The server's status (messages.hpp) or the link's.  Besides: NOT_SUPPORTED: this peer is no memory
// server, or speaks another version; CORRUPT: it answers with nonsense.  Only with OK is there
// anything in `reply`.
hanare_status ask(fabric::Link& link, const Question& question, uint64_t deadline_ns,
                  Reply& reply) noexcept;

// A question whose answer is not waited for.  By one thread; while it is posted it stays where it
// is.
class PendingQuestion {
public:
    bool is_posted() const noexcept { return call_.has_value(); }
    void post(fabric::Link& link, const Question& question) noexcept;
    // Of one that is posted to this link, which may have ended.  Never waits.
    bool is_answered(fabric::Link& link) noexcept { return link.test(*call_); }
    // Of one that is answered, as ask(); then another may be posted.
    hanare_status take(Reply& reply) noexcept;

private:
    Question question_;
    std::optional<fabric::Operation> call_;
    alignas(8) std::array<std::byte, fabric::kMessageBytesMax> bytes_;
};

// The name for people, which ask() has found to be of printable ASCII.
std::string_view client_of(const StatusRow& row) noexcept;
std::string_view tenant_of(const StatusRow& row) noexcept;

}  // namespace hanare::lease
