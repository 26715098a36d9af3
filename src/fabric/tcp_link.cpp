// SPDX-License-Identifier: Apache-2.0
#include "fabric/tcp_link.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/assert.hpp"
#include "fabric/handshake.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

// Requests that go to the kernel together, and answers that a thread takes before it looks whether
// its own was among them.
constexpr uint64_t kBatchMax = 8;
constexpr int kAnswersMax = 64;
constexpr int kRoundsMax = 4;

// Who sleeps on the socket has signals blocked, since a handler may need the link; for so long at
// most.
constexpr int kSliceMs = 20;

// How often who waits looks whether the peer's machine answers.
constexpr uint64_t kLook_ns = 1000 * kNsPerMs;

uint64_t requests_for(uint64_t bytes) noexcept {
    return std::max<uint64_t>(1, (bytes + kRequestBytesMax - 1) / kRequestBytesMax);
}

// The rest of `part` behind its first `*skipped` bytes, of which it takes what it has.
sys::Part behind(sys::Part part, size_t* skipped) noexcept {
    const size_t cut = std::min(part.bytes, *skipped);
    *skipped -= cut;
    return {part.address + cut, part.bytes - cut};
}

int ms_until(uint64_t deadline_ns) noexcept {
    if (deadline_ns == Operation::kNoDeadline) return -1;
    const uint64_t now = sys::now_ns();
    const uint64_t left_ns = deadline_ns > now ? deadline_ns - now : 0;
    return static_cast<int>(std::min<uint64_t>(left_ns / kNsPerMs + 1, INT_MAX));
}

}  // namespace

Result<std::unique_ptr<TcpLink>> TcpLink::over(Connected connected, uint32_t spin_us) {
    auto transport = std::make_unique<Transport>(std::move(connected.socket));
    if (connected.keys) {
        HANARE_TRY(transport->seal_with(*connected.keys, Handshake::Side::kSource,
                                        Transport::Opening::kStraight, connected.protection));
    }
    return make(std::move(transport), spin_us);
}

Result<std::unique_ptr<TcpLink>> TcpLink::make(std::unique_ptr<Transport> transport,
                                               uint32_t spin_us) {
    HANARE_TRY_ASSIGN(sys::EventFd nudge, sys::EventFd::open());
    return std::unique_ptr<TcpLink>(new TcpLink(std::move(transport), spin_us, std::move(nudge)));
}

TcpLink::TcpLink(std::unique_ptr<Transport> transport, uint32_t spin_us, sys::EventFd nudge)
    : transport_(std::move(transport)),
      spin_ns_(uint64_t{spin_us} * 1000),
      early_(std::make_unique_for_overwrite<std::byte[]>(kEarlyBytes + 2 * kRequestBytesMax)),
      nudge_(std::move(nudge)) {}

TcpLink::~TcpLink() { end(); }

// ---- sending

void TcpLink::post(Operation& operation) noexcept {
    const sys::SignalBlock no_signals;
    start(operation);
}

void TcpLink::add(Operation& operation) noexcept { queue(operation); }

void TcpLink::send_added() noexcept {
    {
        const sys::LockGuard guard(send_lock_);
        pump();
    }
    note_pumped();
}

// With signals blocked, as everything that takes a lock here: a handler may need this link for far
// memory.
void TcpLink::start(Operation& operation) noexcept {
    if (queue(operation)) {
        const sys::LockGuard guard(send_lock_);
        pump();
    }
    note_pumped();
}

void TcpLink::note_pumped() noexcept {
    if (has_new_room_.load()) try_to_pump();
    if (is_broken_.load()) tell_sleepers();
}

// False: it has failed.
bool TcpLink::queue(Operation& operation) noexcept {
    HANARE_ASSERT(operation.unanswered_ == 0 && !operation.is_done());  // each is posted once
    // What can be known here is not left to the target, which would take it for nonsense.
    hanare_status status = check(operation);
    {
        const sys::LockGuard guard(send_lock_);
        if (is_lost()) status = HANARE_STATUS_PEER_LOST;
        if (status == HANARE_STATUS_OK) {
            operation.unanswered_ = requests_for(operation.bytes());
            (first_ == nullptr ? first_ : last_->next_) = &operation;
            last_ = &operation;
            has_unsent_.store(true);
        }
    }
    if (status == HANARE_STATUS_OK) return true;
    operation.note_failure(status);
    operation.finish();
    return false;
}

// The next request of the first operation; false when there is none or it has to wait.
bool TcpLink::make_request() noexcept {
    if (first_ == nullptr || made_ - answered_.load(std::memory_order_acquire) == kRequestsMax) {
        return false;
    }
    Operation& operation = *first_;
    const uint64_t begin = operation.requested_bytes_;
    const auto bytes =
        static_cast<uint32_t>(std::min<uint64_t>(operation.bytes() - begin, kRequestBytesMax));
    const uint64_t in_flight = bytes_in_flight_.load(std::memory_order_relaxed);
    if (in_flight != 0 && in_flight + bytes > kBytesInFlightMax) return false;

    Request& made = request(made_);
    made.operation = &operation;
    made.begin = begin;
    made.header = {};
    made.header.kind = operation.kind;
    made.header.bytes = bytes;
    made.header.sequence = static_cast<uint32_t>(made_);
    made.header.capability = operation.capability;
    made.header.capability.unused = 0;
    made.header.offset = operation.offset + begin;
    if (operation.kind == Kind::kFetch) {
        made.header.fetch_op = operation.fetch_op;
        made.header.width = static_cast<uint8_t>(operation.width | (operation.wakes ? kWakes : 0));
        made.header.operand = operation.operand;
        made.header.compare = operation.compare;
    }
    if (operation.kind == Kind::kCall) {
        made.header.operand = std::min<uint64_t>(operation.destination.size(), kMessageBytesMax);
    }
    seal(made.header);
    bytes_in_flight_.fetch_add(made.cost(), std::memory_order_relaxed);
    ++made_;
    operation.requested_bytes_ += bytes;
    if (operation.requested_bytes_ == operation.bytes()) first_ = operation.next_;
    return true;
}

// What was made, as far as it goes in one call; as send_parts().
ptrdiff_t TcpLink::send_some() noexcept {
    std::array<sys::Part, 2 * kBatchMax> parts;
    size_t count = 0;
    size_t skipped = sent_bytes_;
    const uint64_t sent = sent_.load(std::memory_order_relaxed);
    const uint64_t batch_end = std::min(made_, sent + kBatchMax);
    bool ends_in_data = false;
    for (uint64_t number = sent; number < batch_end && !ends_in_data; ++number) {
        Request& next = request(number);
        parts[count++] =
            behind({reinterpret_cast<std::byte*>(&next.header), sizeof next.header}, &skipped);
        if (const uint32_t carried = carried_bytes(next.header); carried != 0) {
            // Sending does not write.
            auto* const data = const_cast<std::byte*>(next.operation->source.data() + next.begin);
            parts[count++] = behind({data, carried}, &skipped);
            ends_in_data = transport_->leaves_data() && is_data(next.header.kind, carried);
        }
    }
    const auto all = std::span(parts).first(count);
    return ends_in_data ? transport_->send_with_data(all) : transport_->send(all);
}

void TcpLink::note_sent(size_t bytes) noexcept {
    moved_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    sent_bytes_ += bytes;
    uint64_t sent = sent_.load(std::memory_order_relaxed);
    for (; sent < made_; ++sent) {
        const RequestHeader& header = request(sent).header;
        const size_t whole = sizeof header + carried_bytes(header);
        if (sent_bytes_ < whole) break;
        sent_bytes_ -= whole;
    }
    sent_.store(sent);
    // Its answer may have come with another's, before it was known to be sent.
    if (has_early_.load() || transport_->has_received()) tell_sleepers();
}

void TcpLink::pump() noexcept {
    if (is_lost()) return;
    for (;;) {
        while (make_request()) {
        }
        const bool is_all_taken = sent_.load(std::memory_order_relaxed) == made_;
        const ptrdiff_t moved = is_all_taken ? transport_->flush() : send_some();
        if (moved == -EAGAIN) {
            // Who sleeps on the socket does not wait to write yet.
            if (!is_full_.exchange(true) && has_leader_.load()) nudge_.post();
            break;
        }
        is_full_.store(false);
        if (moved < 0) {
            is_broken_.store(true);
            break;
        }
        if (is_all_taken) break;
        note_sent(static_cast<size_t>(moved));
    }
    has_unsent_.store(first_ != nullptr || sent_.load(std::memory_order_relaxed) != made_ ||
                      is_full_.load());
}

// Whoever makes room while another thread pumps leaves it to that one.
void TcpLink::try_to_pump() noexcept {
    has_new_room_.store(true);
    while (has_new_room_.load() && send_lock_.try_lock()) {
        has_new_room_.store(false);
        pump();
        send_lock_.unlock();
    }
}

// ---- receiving

// Where the data of a successful answer belongs.
std::span<std::byte> TcpLink::destination_of(const Request& request) noexcept {
    const size_t bytes = brought_bytes_max(request.header);
    if (bytes == 0) return {};
    if (request.operation == nullptr) {
        return {early_.get() + kEarlyBytes + kRequestBytesMax, bytes};
    }
    return request.operation->destination.subspan(request.begin, bytes);
}

// Goes on with the oldest request's answer.  False: nothing has come, or it is of no more use.
bool TcpLink::receive() noexcept {
    const uint64_t number = answered_.load(std::memory_order_relaxed);
    if (number == sent_.load()) {
        receive_early();
        // It may be known to be sent by now; who has sent it did not see what came.
        return has_early_.load() && number != sent_.load();
    }
    const std::span<std::byte> wanted =
        destination_of(request(number)).subspan(incoming_.data_bytes);
    const std::array<sys::Part, 3> parts = {
        {{reinterpret_cast<std::byte*>(&incoming_.header) + incoming_.header_bytes,
          sizeof incoming_.header - incoming_.header_bytes},
         {wanted.data(), wanted.size()},
         {early_.get(), kEarlyBytes}}};
    const bool is_early = early_begin_ != early_end_;
    const ptrdiff_t moved =
        is_early ? take_early(std::span(parts).first(2)) : transport_->receive(parts);
    if (moved == -EAGAIN) return false;
    const bool is_good = moved > 0 && accept(static_cast<size_t>(moved), wanted, is_early);
    has_early_.store(early_begin_ != early_end_);
    if (!is_good) is_broken_.store(true);
    return is_good;
}

// Nothing is known to be sent that has no answer.  What comes now answers what another thread is
// about to send, or says that the peer has closed.
void TcpLink::receive_early() noexcept {
    if (early_begin_ != early_end_ || !has_unsent_.load()) return;
    const sys::Part part = {early_.get(), kEarlyBytes};
    const ptrdiff_t moved = transport_->receive({&part, 1});
    if (moved == -EAGAIN) return;
    if (moved <= 0) {
        is_broken_.store(true);
        return;
    }
    early_begin_ = 0;
    early_end_ = static_cast<size_t>(moved);
    has_early_.store(true);
}

ptrdiff_t TcpLink::take_early(std::span<const sys::Part> parts) noexcept {
    size_t taken = 0;
    for (const sys::Part& part : parts) {
        const size_t bytes = std::min(part.bytes, early_end_ - early_begin_);
        if (bytes == 0) continue;
        std::memcpy(part.address, early_.get() + early_begin_, bytes);
        early_begin_ += bytes;
        taken += bytes;
    }
    return static_cast<ptrdiff_t>(taken);
}

// `bytes` have come: first the rest of the header, then as much as there is place for in
// `destination`, the rest lies in early_.  False: not an answer.
bool TcpLink::accept(size_t bytes, std::span<std::byte> destination, bool was_early) noexcept {
    moved_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    const uint64_t number = answered_.load(std::memory_order_relaxed);
    const size_t of_header = std::min(bytes, sizeof incoming_.header - incoming_.header_bytes);
    incoming_.header_bytes += of_header;
    bytes -= of_header;
    if (incoming_.header_bytes < sizeof incoming_.header) return true;
    if (of_header != 0) {
        if (!is_answer_to(request(number), number)) return false;
        const AnswerHeader& header = incoming_.header;
        if (transport_->leaves_data() && is_data(header.kind, header.bytes)) {
            // Nothing else is in the frame.
            const bool is_last = bytes == 0 && (!was_early || early_begin_ == early_end_);
            return is_last && transport_->expect_data(header.bytes);
        }
    }

    // Where less came than was hoped for, what lies there belongs to the answers behind.
    const size_t placed = std::min(bytes, destination.size());
    const size_t own = std::min<size_t>(placed, incoming_.header.bytes - incoming_.data_bytes);
    const size_t excess = placed - own;
    const size_t behind_placed = bytes - placed;
    incoming_.data_bytes += own;
    if (was_early) {
        early_begin_ -= excess;
    } else {
        if (excess != 0) {
            std::memmove(early_.get() + excess, early_.get(), behind_placed);
            std::memcpy(early_.get(), destination.data() + own, excess);
        }
        early_begin_ = 0;
        early_end_ = excess + behind_placed;
    }
    if (incoming_.data_bytes == incoming_.header.bytes) finish_request();
    return true;
}

bool TcpLink::is_answer_to(const Request& request, uint64_t number) const noexcept {
    const AnswerHeader& header = incoming_.header;
    if (!is_sealed(header) || header.kind != request.header.kind ||
        header.sequence != static_cast<uint32_t>(number) || !is_known_status(header.status)) {
        return false;
    }
    if (header.status != HANARE_STATUS_OK) return header.bytes == 0;
    switch (header.kind) {
        case Kind::kGet: return header.bytes == request.header.bytes;
        case Kind::kPop:
        case Kind::kCall:
            return header.bytes == header.value &&
                   header.bytes <= brought_bytes_max(request.header);
        default: return header.bytes == 0;
    }
}

void TcpLink::finish_request() noexcept {
    const uint64_t number = answered_.load(std::memory_order_relaxed);
    const Request& answered = request(number);
    Operation* const operation = answered.operation;
    const AnswerHeader header = incoming_.header;
    incoming_ = {};
    bytes_in_flight_.fetch_sub(answered.cost(), std::memory_order_relaxed);
    answered_.store(number + 1);
    if (operation == nullptr) return;
    operation->note_failure(static_cast<hanare_status>(header.status));
    operation->note_value(header.value);
    if (--operation->unanswered_ == 0) operation->finish();
}

// Whether something has come.
bool TcpLink::try_to_receive() noexcept {
    if (!receive_lock_.try_lock()) return false;
    int answers = 0;
    while (answers < kAnswersMax && receive()) ++answers;
    receive_lock_.unlock();
    if (answers == 0) return false;
    tell_sleepers();
    return true;
}

// ---- waiting

// Sends and receives what goes without waiting, for all operations; whether this one is done.
bool TcpLink::turn(const Operation& operation) noexcept {
    bool goes_on = true;
    for (int round = 0; round < kRoundsMax && goes_on && !operation.is_done(); ++round) {
        goes_on = try_to_receive();
        // What was received makes room.
        if (has_unsent_.load()) try_to_pump();
    }
    if (is_broken_.load()) end();
    return operation.is_done();
}

bool TcpLink::test(Operation& operation) noexcept {
    if (operation.is_done()) return true;
    const sys::SignalBlock no_signals;
    return look(operation);
}

bool TcpLink::look(Operation& operation) noexcept {
    if (operation.is_done() || turn(operation)) return true;
    const uint64_t now = sys::now_ns();
    look_after_peer(now);
    if (now >= operation.deadline_ns) cancel(operation);
    return operation.is_done();
}

// Looks for a while whether it is done.
void TcpLink::spin(Operation& operation) noexcept {
    const uint64_t begin_ns = sys::now_ns();
    for (uint64_t now = begin_ns; !turn(operation); now = sys::now_ns()) {
        look_after_peer(now);
        if (now >= operation.deadline_ns) return cancel(operation);
        if (now - begin_ns >= spin_ns_) return;
        __builtin_ia32_pause();
    }
}

hanare_status TcpLink::wait(Operation& operation) noexcept {
    while (!operation.is_done()) {
        {
            const sys::SignalBlock no_signals;
            spin(operation);
        }
        if (!operation.is_done()) sleep(operation, operation.deadline_ns);
    }
    return operation.status();
}

bool TcpLink::wait_until(Operation& operation, uint64_t until_ns) noexcept {
    while (!operation.is_done()) {
        {
            const sys::SignalBlock no_signals;
            spin(operation);
        }
        if (operation.is_done() || sys::now_ns() >= until_ns) break;
        sleep(operation, std::min(until_ns, operation.deadline_ns));
    }
    return operation.is_done();
}

hanare_status TcpLink::carry_out(Operation& operation) noexcept {
    {
        const sys::SignalBlock no_signals;
        start(operation);
        spin(operation);
    }
    return wait(operation);
}

// Until something has happened that may concern the operation, or that time, or for a while.
void TcpLink::sleep(const Operation& operation, uint64_t until_ns) noexcept {
    const int timeout_ms = ms_until(until_ns);
    followers_.fetch_add(1);
    const uint32_t seen = turns_.load();
    if (!operation.is_done() && !has_something_to_do()) {
        const sys::SignalBlock no_signals;
        if (!has_leader_.exchange(true)) {
            lead(operation, timeout_ms < 0 ? kSliceMs : std::min(timeout_ms, kSliceMs));
            has_leader_.store(false);
            tell_sleepers();
            followers_.fetch_sub(1);
            return;
        }
    }
    if (!operation.is_done() && !has_something_to_do()) {
        sys::futex_wait(turns_, seen, timeout_ms);
    }
    followers_.fetch_sub(1);
}

void TcpLink::lead(const Operation& operation, int timeout_ms) noexcept {
    nudge_.clear();
    if (operation.is_done() || has_something_to_do()) return;
    // What has come too early will not be read now.
    const bool reads = !has_early_.load();
    transport_->wait({.to_read = reads, .to_write = is_full_.load()}, timeout_ms, nudge_.number());
}

void TcpLink::await(int other, int timeout_ms) noexcept {
    const sys::SignalBlock no_signals;
    if (is_lost()) {
        // Its socket would show that for ever.
        sys::wait_until_readable(other, -1, timeout_ms);
        return;
    }
    if (has_something_to_do()) return;
    const bool reads = !has_early_.load();
    transport_->wait({.to_read = reads, .to_write = is_full_.load()}, timeout_ms, other);
    look_for_end();
}

bool TcpLink::begin_wait(sys::PollSet& set) noexcept {
    const sys::SignalBlock no_signals;
    if (!is_lost()) look_for_end();
    if (is_lost()) return true;
    if (has_something_to_do()) return false;
    const bool reads = !has_early_.load();
    return transport_->begin_wait(set, {.to_read = reads, .to_write = is_full_.load()});
}

void TcpLink::end_wait() noexcept {
    const sys::SignalBlock no_signals;
    if (!is_lost()) transport_->end_wait();
}

// Where nothing is under way, all that can come is the end, or nonsense.
void TcpLink::look_for_end() noexcept {
    {
        const sys::LockGuard guard(receive_lock_);
        if (has_unsent_.load() || answered_.load() != sent_.load() || has_early_.load()) return;
        const sys::Part part = {early_.get(), kEarlyBytes};
        if (transport_->receive({&part, 1}) == -EAGAIN) return;
    }
    end();
}

// Without any event that would end a sleep.
bool TcpLink::has_something_to_do() const noexcept {
    if (is_broken_.load()) return true;
    const bool awaits_answers = answered_.load() != sent_.load();
    if (awaits_answers) return has_early_.load() || transport_->has_received();
    return has_unsent_.load() && !is_full_.load();
}

void TcpLink::tell_sleepers() noexcept {
    turns_.fetch_add(1);
    if (has_leader_.load()) nudge_.post();
    if (followers_.load() != 0) sys::futex_wake_all(turns_);
}

// ---- failing

void TcpLink::look_after_peer(uint64_t now_ns) noexcept {
    uint64_t looked = looked_ns_.load(std::memory_order_relaxed);
    if (now_ns - looked < kLook_ns || !looked_ns_.compare_exchange_strong(looked, now_ns)) return;
    if (transport_->delivery() == sys::Delivery::kUnanswered) is_broken_.store(true);
}

// Nobody is interested in its answers any more, and no request is made for it.
void TcpLink::drop(Operation& operation, hanare_status status) noexcept {
    Operation* before = nullptr;
    for (Operation* each = first_; each != nullptr; each = each->next_) {
        if (each == &operation) {
            (before == nullptr ? first_ : before->next_) = operation.next_;
            if (last_ == &operation) last_ = before;
            break;
        }
        before = each;
    }
    const uint64_t sent = sent_.load(std::memory_order_relaxed);
    for (uint64_t number = answered_.load(std::memory_order_relaxed); number < made_; ++number) {
        Request& made = request(number);
        if (made.operation != &operation) continue;
        made.operation = nullptr;
        if (number < sent) continue;
        // What was not sent becomes a request for nothing, with the same number.
        bytes_in_flight_.fetch_sub(made.cost(), std::memory_order_relaxed);
        made.header = {};
        made.header.kind = Kind::kGet;
        made.header.sequence = static_cast<uint32_t>(number);
        seal(made.header);
    }
    operation.note_failure(status);
    operation.finish();
}

void TcpLink::cancel(Operation& operation) noexcept {
    {
        const sys::LockGuard sending(send_lock_);
        const sys::LockGuard receiving(receive_lock_);
        if (operation.is_done()) return;
        const uint64_t sent = sent_.load(std::memory_order_relaxed);
        // Half of a request cannot be taken back.
        const bool is_cut =
            sent != made_ && sent_bytes_ != 0 && request(sent).operation == &operation;
        drop(operation, HANARE_STATUS_TIMEOUT);
        if (is_cut) lose();
    }
    tell_sleepers();
}

void TcpLink::lose() noexcept {
    if (is_lost()) return;
    lost_.store(true, std::memory_order_release);
    sys::shut_down(transport_->descriptor());
    while (first_ != nullptr) drop(*first_, HANARE_STATUS_PEER_LOST);
    for (uint64_t number = answered_.load(std::memory_order_relaxed); number < made_; ++number) {
        if (Operation* const operation = request(number).operation; operation != nullptr) {
            drop(*operation, HANARE_STATUS_PEER_LOST);
        }
    }
    answered_.store(made_);
    sent_.store(made_);
    early_begin_ = early_end_ = 0;
    has_early_.store(false);
    has_unsent_.store(false);
}

void TcpLink::end() noexcept {
    {
        const sys::SignalBlock no_signals;
        const sys::LockGuard sending(send_lock_);
        const sys::LockGuard receiving(receive_lock_);
        lose();
    }
    tell_sleepers();
}

}  // namespace hanare::fabric
