// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_greeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// What is one-sided takes microseconds; what is not, as long as the target likes.
constexpr uint64_t kPatience_ns = 500 * kNsPerMs;
constexpr uint32_t kPause_us = 100;

// Over the base link.
template <typename Part>
hanare_status get_over(Link& base, const Capability& card, uint64_t offset, Part& part,
                       uint64_t deadline_ns) noexcept {
    Operation get;
    get.kind = Kind::kGet;
    get.capability = card;
    get.offset = offset;
    get.destination = std::as_writable_bytes(std::span(&part, 1));
    get.deadline_ns = deadline_ns;
    return base.carry_out(get);
}

hanare_status count_over(Link& base, const Capability& card, uint64_t offset, uint64_t deadline_ns,
                         uint64_t* before = nullptr) noexcept {
    Operation add;
    add.kind = Kind::kFetch;
    add.capability = card;
    add.offset = offset;
    add.width = sizeof(uint32_t);
    add.operand = 1;
    add.wakes = true;
    add.deadline_ns = deadline_ns;
    const hanare_status status = base.carry_out(add);
    if (before != nullptr) *before = add.value();
    return status;
}

std::unexpected<Error> failed(hanare_status status, const char* what) {
    return fail(status, "UCX: over the base link: %s", what);
}

Result<UcxCard::Header> read_header(Link& base, const Capability& card, uint64_t deadline_ns) {
    UcxCard::Header header;
    const hanare_status status =
        get_over(base, card, offsetof(UcxCard, header), header, deadline_ns);
    if (status != HANARE_STATUS_OK) return failed(status, "the target's card is not to be had");
    if (header.magic != UcxCard::kMagic || header.version != UcxCard::kVersion ||
        header.check != check_of(header) || header.address_bytes == 0 ||
        header.address_bytes > UcxCard::kAddressBytesMax ||
        header.card.key_bytes > UcxCard::Entry::kKeyBytesMax) {
        return fail(HANARE_STATUS_CORRUPT,
                    "UCX: what should be the target's card is none of "
                    "version %u",
                    UcxCard::kVersion);
    }
    return header;
}

// One connection on its way.
class Greeting {
public:
    Greeting(const UcxContext& context, Link& base, const Capability& card, uint64_t deadline_ns)
        : context_(context), base_(base), card_(card), deadline_ns_(deadline_ns) {}
    ~Greeting() {
        if (connection_.endpoint != nullptr) connection_.endpoint->forget(connection_.card.key);
    }
    Greeting(const Greeting&) = delete;
    Greeting& operator=(const Greeting&) = delete;

    Result<UcxConnection> connect();

private:
    Result<void> reach();
    Result<void> let_target_help();
    template <typename Try>
    Result<bool> is_one_sided(Try&& try_it);
    hanare_status try_to_get() noexcept;
    hanare_status try_puts_and_gets() noexcept;
    hanare_status try_fetch_ops() noexcept;
    UcxEndpoint::Place scratch() const noexcept {
        return {connection_.card.address + offsetof(UcxCard, scratch), connection_.card.key};
    }

    const UcxContext& context_;
    Link& base_;
    const Capability card_;
    const uint64_t deadline_ns_;
    UcxCard::Header header_;
    UcxConnection connection_;
    uint64_t number_ = 0;  // of the source
    std::array<std::byte, sizeof(UcxCard::scratch)> tried_{};
};

Result<UcxConnection> Greeting::connect() {
    HANARE_TRY_ASSIGN(header_, read_header(base_, card_, deadline_ns_));
    HANARE_TRY(reach());
    // Which it cannot tell any more afterwards.
    const std::string transports = connection_.endpoint->transports();
    HANARE_TRY_ASSIGN(const bool is_good, is_one_sided([this] { return try_puts_and_gets(); }));
    if (!is_good) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "UCX: by %.80s puts and gets wait for the target to call UCX (emulated "
                    "one-sided operations): refused",
                    transports.c_str());
    }
    HANARE_TRY_ASSIGN(connection_.has_fetch_ops, is_one_sided([this] { return try_fetch_ops(); }));
    if (connection_.endpoint->is_closed()) HANARE_TRY(reach());
    return std::move(connection_);
}

// Makes the endpoint, and sees that it gets through, however that is.
Result<void> Greeting::reach() {
    if (connection_.endpoint != nullptr) connection_.endpoint->forget(connection_.card.key);
    connection_.card.key = nullptr;
    HANARE_TRY_ASSIGN(
        connection_.endpoint,
        UcxEndpoint::connect(context_, std::span(header_.address).first(header_.address_bytes)));
    connection_.card.address = header_.card.address;
    connection_.card.key = connection_.endpoint->understand(
        std::span<const std::byte>(header_.card.key).first(header_.card.key_bytes));
    if (connection_.card.key == nullptr) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "UCX: by %.100s the target's memory is not to be reached",
                    connection_.endpoint->transports().c_str());
    }
    return let_target_help();
}

Result<void> Greeting::let_target_help() {
    hanare_status status =
        count_over(base_, card_, offsetof(UcxCard, wanted), deadline_ns_, &number_);
    if (status != HANARE_STATUS_OK) return failed(status, "the target is not asked to connect");
    const std::string transports = connection_.endpoint->transports();
    const hanare_status reached = try_to_get();
    status = count_over(base_, card_, offsetof(UcxCard, served), deadline_ns_);
    if (reached != HANARE_STATUS_OK) {
        return fail(reached, "UCX: the target is not reached by %.100s: %.60s", transports.c_str(),
                    connection_.endpoint->failure());
    }
    if (status != HANARE_STATUS_OK) return failed(status, "the target is not told");
    return {};
}

hanare_status Greeting::try_to_get() noexcept {
    const sys::SignalBlock no_signals;
    return connection_.endpoint->get(scratch(), std::span(tried_), deadline_ns_);
}

// Tries it while the target does not call UCX: nobody else could do it then.
template <typename Try>
Result<bool> Greeting::is_one_sided(Try&& try_it) {
    while (sys::now_ns() < deadline_ns_) {
        uint64_t before = 0;
        uint64_t after = 0;
        const auto calls = [&](uint64_t& count) {
            return get_over(base_, card_, offsetof(UcxCard, calls), count, deadline_ns_);
        };
        hanare_status status = calls(before);
        if (status != HANARE_STATUS_OK) return failed(status, "whether the target calls UCX");
        const hanare_status tried = try_it();
        if (tried == HANARE_STATUS_TIMEOUT) return false;
        if (tried != HANARE_STATUS_OK) {
            return fail(tried, "UCX: the target is lost: %.80s", connection_.endpoint->failure());
        }
        status = calls(after);
        if (status != HANARE_STATUS_OK) return failed(status, "whether the target calls UCX");
        if (before == after && before % 2 == 0) return true;
        // For another source.
        sys::yield_for_us(kPause_us);
    }
    return fail(HANARE_STATUS_TIMEOUT, "UCX: the target is busy with other sources");
}

hanare_status Greeting::try_puts_and_gets() noexcept {
    const sys::SignalBlock no_signals;
    UcxEndpoint& endpoint = *connection_.endpoint;
    const uint64_t end_ns = sys::now_ns() + kPatience_ns;
    hanare_status status = endpoint.put(scratch(), std::span(tried_), end_ns);
    if (status == HANARE_STATUS_OK) status = endpoint.get(scratch(), std::span(tried_), end_ns);
    if (status != HANARE_STATUS_OK) return status;
    // It is the memory that the target means.
    status = endpoint.get(connection_.card, std::as_writable_bytes(std::span(&header_, 1)), end_ns);
    if (status != HANARE_STATUS_OK) return status;
    return header_.check == check_of(header_) ? status : HANARE_STATUS_CORRUPT;
}

// What a fetch-op should find, made by those before it.
struct Step {
    FetchRequest request;
    uint64_t before;
};

// Also that they do what they should, which libraries have failed to.
hanare_status Greeting::try_fetch_ops() noexcept {
    const sys::SignalBlock no_signals;
    const uint64_t end_ns = sys::now_ns() + kPatience_ns;
    UcxEndpoint::Place word = scratch();
    word.address += number_ % UcxCard::kScratchWords * sizeof(uint64_t);
    uint64_t before = 0;
    for (const uint8_t width : {uint8_t{4}, uint8_t{8}}) {
        const std::array<Step, 5> steps = {
            {{{.op = FetchOp::kSwap, .width = width, .operand = 5}, 0},
             {{.op = FetchOp::kAdd, .width = width, .operand = 7}, 5},
             {{.op = FetchOp::kCompareSwap, .width = width, .operand = 9, .compare = 12}, 12},
             {{.op = FetchOp::kCompareSwap, .width = width, .operand = 8, .compare = 12}, 9},
             {{.op = FetchOp::kSwap, .width = width, .operand = 0}, 9}}};
        for (const Step& step : steps) {
            const hanare_status status =
                connection_.endpoint->fetch(word, step.request, before, end_ns);
            // UCX may also say at once that it cannot.
            if (status == HANARE_STATUS_PEER_LOST && !base_.is_lost()) {
                return HANARE_STATUS_TIMEOUT;
            }
            if (status != HANARE_STATUS_OK) return status;
            if (&step != &steps.front() && before != step.before) return HANARE_STATUS_TIMEOUT;
        }
    }
    return HANARE_STATUS_OK;
}

}  // namespace

Result<UcxConnection> connect_by_ucx(const UcxContext& context, Link& base, const Capability& card,
                                     int timeout_ms) {
    const uint64_t end_ns = sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    return Greeting(context, base, card, end_ns).connect();
}

hanare_status ask_for_region(Link& base, const Capability& card, const Capability& capability,
                             uint64_t deadline_ns, UcxCard::Entry& entry) noexcept {
    if (capability.region >= UcxCard::kEntries) return HANARE_STATUS_NOT_FOUND;
    const uint64_t offset = offsetof(UcxCard, entries) + capability.region * sizeof(UcxCard::Entry);
    const hanare_status status = get_over(base, card, offset, entry, deadline_ns);
    if (status != HANARE_STATUS_OK) return status;
    if (entry.epoch == 0) return HANARE_STATUS_NOT_FOUND;
    if (entry.check != check_of(entry) || entry.key_bytes > UcxCard::Entry::kKeyBytesMax) {
        return HANARE_STATUS_CORRUPT;
    }
    return entry.epoch == capability.epoch ? HANARE_STATUS_OK : HANARE_STATUS_NOT_FOUND;
}

}  // namespace hanare::fabric

#endif
