// SPDX-License-Identifier: Apache-2.0
#include "compose/composed_channel.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "telemetry/log.hpp"

namespace hanare::compose {

using store::IoKind;
using store::IoRequest;

Result<std::unique_ptr<store::IoChannel>> ComposedChannel::open(ComposedStore& store) {
    HANARE_TRY_ASSIGN(sys::EventFd notice, sys::EventFd::open());
    HANARE_TRY_ASSIGN(auto parity, sys::Mapping::reserve(kParityBytes, kOsPageBytes));
    std::unique_ptr<ComposedChannel> channel(
        new ComposedChannel(store, std::move(notice), std::move(parity)));
    for (uint32_t number = 0; number < store.members().count(); ++number) {
        HANARE_TRY_ASSIGN(auto one, store.members()[number].store().open_channel());
        channel->channels_.push_back(std::move(one));
    }
    if (!store.healer().add_listener(*channel)) {
        return fail(HANARE_STATUS_LIMIT, "a store of several has too many channels");
    }
    return channel;
}

ComposedChannel::ComposedChannel(ComposedStore& store, sys::EventFd notice, sys::Mapping parity)
    : store_(store),
      notice_(std::move(notice)),
      jobs_(kJobs),
      parts_(kParts),
      free_part_count_(kParts),
      parity_memory_(std::move(parity)) {
    channels_.reserve(Members::kMembersMax);
    for (Job& job : jobs_) free_jobs_.push(job);
    for (Part& part : parts_) free_parts_.push(part);
    const Layout& layout = store_.layout();
    if (layout.kind != Kind::kParity) return;
    for (size_t at = 0; at < kParityBytes; at += layout.strip_bytes) {
        parities_.push_back(parity_memory_.address() + at);
    }
}

ComposedChannel::~ComposedChannel() { store_.healer().remove_listener(*this); }

void ComposedChannel::group_opened() noexcept { notify(); }

// Of members that have come later.  False: the system refuses, and those of the group are waited
// for.
bool ComposedChannel::has_channels_for(const Group& group) noexcept {
    if (open_channels()) return true;
    for (uint32_t role = 0; role < store_.layout().total; ++role) {
        const auto place = group.place(role);
        if (place && place->member >= channels_.size()) return false;
    }
    return true;
}

bool ComposedChannel::open_channels() noexcept {
    while (channels_.size() < store_.members().count()) {
        auto one = store_.members()[static_cast<uint32_t>(channels_.size())].store().open_channel();
        if (!one) {
            HANARE_LOG_ONCE(telemetry::LogLevel::kWarn, "%s", one.error().text);
            return false;
        }
        channels_.push_back(std::move(*one));
    }
    return true;
}

bool ComposedChannel::has_parts_for(const IoRequest& request) const noexcept {
    const PieceCounts most = most_pieces(store_.layout(), request);
    return free_part_count_ >= most.pieces && parities_.size() >= most.parities;
}

bool ComposedChannel::submit(IoRequest& request) noexcept {
    const bool is_full = bytes_in_flight_ + request.bytes > kInFlightBytesMax ||
                         free_jobs_.empty() || !has_parts_for(request);
    if (is_full && jobs_in_flight_ != 0) return false;
    Job& job = *free_jobs_.pop();
    job = {};
    job.request = &request;
    job.group = store_.group_at(request.offset);
    request.next = nullptr;
    request.done_bytes = 0;
    ++jobs_in_flight_;
    bytes_in_flight_ += request.bytes;
    if (held_.empty() && job.group.try_enter()) {
        begin(job);
    } else {
        held_.push(job);
    }
    return true;
}

void ComposedChannel::begin(Job& job) noexcept {
    const Layout& layout = store_.layout();
    const IoRequest& request = *job.request;
    const uint64_t within = request.offset % layout.group_bytes();
    HANARE_ASSERT(within + request.bytes <= layout.group_bytes());
    const Roles roles = store_.io().roles_of(job.group);
    if (request.kind == IoKind::kWrite) job.group.note_written();
    // One more for itself, so that it does not end before all are on their way.
    job.waiting = 1;
    if (has_channels_for(job.group) && has_plain_pieces(layout, roles, request) &&
        has_parts_for(request)) {
        const auto add = [&](auto... piece) { add_part(job, piece...); };
        const auto take_parity = [&] {
            std::byte* const parity = parities_.back();
            parities_.pop_back();
            return parity;
        };
        for_each_piece(layout, roles, request, add, take_parity);
    } else {
        carry_out_here(job);
    }
    if (--job.waiting == 0) finish(job);
}

// It is waited for, with all that redundancy can do.
void ComposedChannel::carry_out_here(Job& job) noexcept {
    store_.io().carry_out(job.group, *job.request);
    job.is_settled = true;
}

void ComposedChannel::add_part(Job& job, uint32_t role, uint64_t offset, std::byte* memory,
                               size_t bytes, std::byte* parity) noexcept {
    const Place place = *job.group.place(role);
    Part& part = *free_parts_.pop();
    --free_part_count_;
    static_cast<IoRequest&>(part) = {};
    part.kind = job.request->kind;
    part.offset = place.offset + offset;
    part.memory = memory;
    part.bytes = bytes;
    part.job = &job;
    part.parity = parity;
    part.member = place.member;
    ++job.waiting;
    pending_[place.member].push(part);
    start_parts(place.member);
}

void ComposedChannel::start_parts(uint32_t member) noexcept {
    PartQueue& queue = pending_[member];
    while (!queue.empty() && channels_[member]->submit(*queue.first)) queue.pop();
}

void ComposedChannel::finish_part(Part& part) noexcept {
    Job& job = *part.job;
    if (part.status != HANARE_STATUS_OK) {
        job.request->status = part.status;
        job.has_failed = true;
        // Who finds out asks others first, and they may have it.
        if (part.status == HANARE_STATUS_CORRUPT) {
            store_.io().note(store_.members()[part.member], part.status);
        }
    }
    if (part.parity != nullptr) parities_.push_back(part.parity);
    free_parts_.push(part);
    ++free_part_count_;
    if (--job.waiting == 0) finish(job);
}

// All of its parts are done.  What one member has lost others have, or it is tried in the way that
// finds out.
void ComposedChannel::finish(Job& job) noexcept {
    if (job.has_failed && store_.layout().spares() != 0) carry_out_here(job);
    if (!job.is_settled && !job.has_failed) job.request->status = HANARE_STATUS_OK;
    complete(job);
}

void ComposedChannel::complete(Job& job) noexcept {
    IoRequest& request = *job.request;
    job.group.leave();
    if (request.status == HANARE_STATUS_OK) request.done_bytes = request.bytes;
    bytes_in_flight_ -= request.bytes;
    completed_.push(request);
    free_jobs_.push(job);
}

void ComposedChannel::turn() noexcept {
    while (!held_.empty() && held_.first->group.try_enter()) begin(*held_.pop());
    for (uint32_t member = 0; member < channels_.size(); ++member) {
        while (IoRequest* const done = channels_[member]->next_completed()) {
            finish_part(*static_cast<Part*>(done));
        }
        start_parts(member);
    }
}

IoRequest* ComposedChannel::next_completed() noexcept {
    if (completed_.empty()) turn();
    IoRequest* const request = completed_.pop();
    if (request != nullptr) {
        request->next = nullptr;
        --jobs_in_flight_;
    }
    return request;
}

bool ComposedChannel::has_completed() const noexcept {
    if (!completed_.empty()) return true;
    return std::ranges::any_of(channels_, [](const auto& each) { return each->has_completed(); });
}

void ComposedChannel::flush() noexcept {
    for (const auto& channel : channels_) channel->flush();
}

bool ComposedChannel::begin_wait(sys::PollSet& set) noexcept {
    turn();
    bool waits = completed_.empty() && !is_notified_.load();
    for (const auto& channel : channels_) {
        channel->flush();
        // All of them, since all have an end_wait().
        if (!channel->begin_wait(set)) waits = false;
    }
    if (!set.add(notice_.number(), {.to_read = true})) waits = false;
    if (watched_ >= 0 && !set.add(watched_, {.to_read = true})) waits = false;
    return waits;
}

void ComposedChannel::end_wait() noexcept {
    for (const auto& channel : channels_) channel->end_wait();
    is_notified_.store(false);
    notice_.clear();
}

void ComposedChannel::wait(int timeout_ms) noexcept {
    sys::PollSet set;
    if (begin_wait(set)) {
        const bool looks = jobs_in_flight_ != 0 && (timeout_ms < 0 || timeout_ms > kLookMs);
        set.wait(looks ? kLookMs : timeout_ms);
    }
    end_wait();
}

void ComposedChannel::notify() noexcept {
    if (!is_notified_.exchange(true)) notice_.post();
}

bool ComposedChannel::take_watched() noexcept {
    return watched_ >= 0 && sys::wait_until_readable(-1, watched_, 0).second;
}

}  // namespace hanare::compose
