// SPDX-License-Identifier: Apache-2.0
#include "store/uring_channel.hpp"

#include <cerrno>

#include "sys/clock.hpp"
#include "sys/file.hpp"
#include "sys/inject.hpp"

namespace hanare::store {

namespace {

// Requests are at least 4 KiB: more in flight than this gains nothing on any device we know.
constexpr uint32_t kRingEntries = 256;
// Entries are left for the event's poll, the watched descriptor's, and one that is watched no more.
constexpr size_t kRequestsMax = kRingEntries - 3;
// Other tags are addresses of requests.
constexpr uint64_t kEventTag = 0;
constexpr uint64_t kWatchedTagMin = 1;
constexpr uint64_t kWatchedTagMax = 4095;
// How long nothing is left to threads of the kernel's after it could not make one.
constexpr uint64_t kWithoutWorkersNs = 1'000'000'000;

sys::inject::Call call_of(const IoRequest& request) {
    return request.kind == IoKind::kRead ? sys::inject::Call::kRead : sys::inject::Call::kWrite;
}

}  // namespace

Result<std::unique_ptr<IoChannel>> UringChannel::open(StoreFile& file) {
    HANARE_TRY_ASSIGN(auto ring, sys::Uring::open(kRingEntries, file.descriptor.number()));
    HANARE_TRY_ASSIGN(auto event, sys::EventFd::open());
    return std::unique_ptr<IoChannel>(new UringChannel(file, std::move(ring), std::move(event)));
}

UringChannel::UringChannel(StoreFile& file, std::unique_ptr<sys::Uring> ring, sys::EventFd event)
    : FileChannel(file, kRequestsMax),
      ring_(std::move(ring)),
      event_(std::move(event)),
      watched_tag_(kWatchedTagMin) {
    add_to_store();
}

UringChannel::~UringChannel() {
    remove_from_store();
    while (!abandoned_ && in_ring_ > 0) {
        ring_->submit_and_wait(-1);
        collect();
    }
}

void UringChannel::abandon_in_child() noexcept {
    abandoned_ = true;
    ring_->abandon_in_child();
    event_.close();
}

void UringChannel::start(IoRequest& request) noexcept {
    int injected = 0;
    do {
        injected = sys::inject::next_errno(call_of(request));
    } while (injected > 0 && sys::is_transient(injected));
    const size_t rest = request.bytes - request.done_bytes;
    if (injected > 0) {
        complete(request, injected);
    } else if (sys::now_ns() < without_workers_until_ns_) {
        transfer_here(request);
    } else {
        queue_rest(request, injected == sys::inject::kShort ? sys::short_part(rest) : rest);
    }
}

void UringChannel::queue_rest(IoRequest& request, size_t bytes) noexcept {
    const auto tag = reinterpret_cast<uint64_t>(&request);
    const uint64_t offset = request.offset + request.done_bytes;
    std::byte* const memory = request.memory + request.done_bytes;
    ++in_ring_;
    if (request.kind == IoKind::kRead) {
        ring_->queue_read(offset, memory, bytes, tag);
    } else {
        ring_->queue_write(offset, memory, bytes, tag);
    }
}

void UringChannel::transferred(IoRequest& request, int32_t result) noexcept {
    --in_ring_;
    if (result > 0) request.done_bytes += static_cast<size_t>(result);
    if (request.done_bytes == request.bytes) {
        complete(request, 0);
    } else if (result == -ECANCELED || result == -EAGAIN) {
        without_workers_until_ns_ = sys::now_ns() + kWithoutWorkersNs;
        transfer_here(request);
    } else if (result > 0 || sys::is_transient(-result)) {
        start(request);
    } else {
        complete(request, result == 0 ? EIO : -result);
    }
}

// What the kernel cannot do at once it leaves to a thread that it makes for the process; where the
// limit of processes allows no more (ulimit -u), it gives the transfer up instead, every time.
void UringChannel::transfer_here(IoRequest& request) noexcept {
    const uint64_t offset = request.offset + request.done_bytes;
    std::byte* const memory = request.memory + request.done_bytes;
    const size_t rest = request.bytes - request.done_bytes;
    const int error = request.kind == IoKind::kRead ? sys::read_at(file(), offset, memory, rest)
                                                    : sys::write_at(file(), offset, memory, rest);
    if (error == 0) request.done_bytes = request.bytes;
    complete(request, error);
}

void UringChannel::collect() noexcept {
    sys::Uring::Completion completion;
    while (ring_->next_completion(completion)) {
        if (completion.tag == kEventTag) {
            event_watched_ = false;
            event_.clear();
        } else if (completion.tag <= kWatchedTagMax) {
            if (completion.tag != watched_tag_) continue;
            watched_polled_ = false;
            watched_ready_ = true;
        } else {
            transferred(*reinterpret_cast<IoRequest*>(completion.tag), completion.result);
        }
    }
    // What was started again must not wait for a flush that the caller has no reason to make.
    ring_->submit();
}

void UringChannel::queue_polls() noexcept {
    if (!event_watched_) {
        event_watched_ = true;
        ring_->queue_poll(event_.number(), kEventTag);
    }
    if (watched_ >= 0 && !watched_polled_) {
        watched_polled_ = true;
        ring_->queue_poll(watched_, watched_tag_);
    }
}

void UringChannel::watch(int descriptor) noexcept {
    watched_ = descriptor;
    watched_tag_ = watched_tag_ == kWatchedTagMax ? kWatchedTagMin : watched_tag_ + 1;
    watched_polled_ = false;
    watched_ready_ = descriptor >= 0;
}

// The poll is made again before the next wait; while there is always something to do instead, its
// answer comes with that of a transfer.
bool UringChannel::take_watched() noexcept {
    if (!watched_ready_) return false;
    watched_ready_ = false;
    queue_polls();
    return true;
}

void UringChannel::wait(int timeout_ms) noexcept {
    const Deadline deadline(timeout_ms);
    collect();
    while (!has_completed() && !watched_ready_) {
        const int remaining_ms = deadline.remaining_ms();
        if (remaining_ms == 0 || !wakeup_.begin_wait()) break;
        queue_polls();
        ring_->submit_and_wait(remaining_ms);
        const bool notified = wakeup_.end_wait();
        collect();
        if (notified) return;
    }
    wakeup_.end_wait();
}

bool UringChannel::begin_wait(sys::PollSet& set) noexcept {
    collect();
    return !has_completed() && set.add(ring_->number(), {.to_read = true});
}

void UringChannel::notify() noexcept {
    if (wakeup_.notify()) event_.post();
}

}  // namespace hanare::store
