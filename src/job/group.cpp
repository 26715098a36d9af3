// SPDX-License-Identifier: Apache-2.0
#include "job/group.hpp"

#include <cstring>

#include "sys/clock.hpp"

namespace hanare::job {
namespace {

// Of a window that could not be opened everywhere.
constexpr uint64_t kRemove_ns = 5000 * kNsPerMs;

}  // namespace

void Group::End::operator()(Group* group) const noexcept {
    if (group->communicator_.check_process()) delete group;
}

Result<Group::Handle> Group::open(Communicator& communicator) {
    HANARE_TRY(communicator.check_process());
    return Handle(new Group(communicator));
}

Group::Group(Communicator& communicator)
    : communicator_(communicator),
      lookout_(communicator),
      slots_(communicator.control().words()),
      collectives_(communicator, lookout_, slots_) {
    if (communicator.size() > 1) courier_.emplace(communicator, slots_, lookout_, windows_);
}

Group::~Group() { communicator_.end_links(); }

// ---- windows

Result<uint32_t> Group::open_window(uint32_t region, uint64_t deadline_ns) {
    HANARE_TRY(communicator_.check_process());
    Exposures& exposures = communicator_.exposures();
    const auto own = exposures.capability(region, fabric::kWrite);
    if (!own) return refuse_window(own.error());
    const auto memory = exposures.hold(region);
    if (!memory) return refuse_window(memory.error());
    auto window = std::make_shared<Window>();
    window->keys.resize(communicator_.size());
    window->memory = *memory;
    window->region = region;
    const Result<void> done = [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(
            window->number,
            collectives_.allgather(std::as_bytes(std::span(&*own, 1)),
                                   std::as_writable_bytes(std::span(window->keys)), deadline_ns));
        windows_.add(window);
        // Who has returned may begin with a multicast at once: then all must know the window.
        return collectives_.barrier(deadline_ns);
    }();
    if (done) return window->number;
    // Its own deadline may be over, while somebody's multicast still uses the window.
    const bool is_removed =
        window->number == 0 || windows_.remove(window->number, sys::now_ns() + kRemove_ns);
    if (is_removed) exposures.release(region);
    return std::unexpected(done.error());
}

// The others open theirs, or try to.
std::unexpected<Error> Group::refuse_window(const Error& why) {
    collectives_.refuse_allgather(why.status);
    return std::unexpected(why);
}

Result<void> Group::close_window(uint32_t number, uint64_t deadline_ns, bool& is_closed) {
    is_closed = false;
    HANARE_TRY(communicator_.check_process());
    Windows::Use window = windows_.use(number);
    if (window == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "no such window");
    const uint32_t region = window->region;
    Result<void> all_came;
    // Nobody else would call a second one, if the first passed and a multicast was in the way.
    if (!windows_.have_all_come(number)) {
        all_came = collectives_.barrier(deadline_ns);
        if (all_came) {
            windows_.note_all_came(number);
        } else if (all_came.error().status != HANARE_STATUS_PEER_LOST) {
            return all_came;
        }
    }
    window.reset();
    HANARE_TRY(windows_.remove(number, deadline_ns));
    communicator_.exposures().release(region);
    is_closed = true;
    return all_came;
}

// ---- multicast

Result<void> Group::check(const Multicast& multicast) const {
    HANARE_TRY(communicator_.check_process());
    if (multicast.arity >= 1 && multicast.arity <= Distribution::kArityMax) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "multicast: arity %u; allowed are 1 to %u",
                multicast.arity, Distribution::kArityMax);
}

Result<Group::Counts> Group::multicast_put(const Multicast& multicast) {
    HANARE_TRY(check(multicast));
    const TimedLock::Guard guard(multicast_lock_, multicast.deadline_ns);
    if (!guard) {
        return fail(HANARE_STATUS_TIMEOUT, "multicast: another thread's takes too long");
    }
    Windows::Use window = windows_.use(multicast.window);
    if (window == nullptr) return fail(HANARE_STATUS_NOT_FOUND, "multicast: no such window");
    const uint32_t own = communicator_.rank();
    const uint32_t size = communicator_.size();
    Failure failure = {put_here(*window, multicast), own};
    // Nobody passes on what the root puts everywhere.
    const uint32_t arity = multicast.is_flat ? size : multicast.arity;
    Distribution distribution(communicator_, slots_,
                              {.window = std::move(window),
                               .root = own,
                               .arity = arity,
                               .offset = multicast.offset,
                               .data = multicast.data,
                               .deadline_ns = multicast.deadline_ns},
                              Tree(size, arity, own).place_of(own).children);
    distribution.send();
    await(distribution);
    if (failure.is_none()) failure = distribution.failure();
    if (failure.is_none()) return distribution.counts();
    return fail(failure.status, "multicast of %zu bytes: task %u: %s", multicast.data.size(),
                failure.rank, hanare_status_text(failure.status));
}

hanare_status Group::put_here(const Window& window, const Multicast& multicast) {
    fabric::ExposedRegions::Access access;
    const std::span<const std::byte> data = multicast.data;
    const hanare_status status = communicator_.exposures().regions().enter(
        window.keys[communicator_.rank()], fabric::kWrite, multicast.offset, data.size(), access);
    if (status != HANARE_STATUS_OK || data.empty()) return status;
    // It may lie there already.
    if (access.address() != data.data()) std::memmove(access.address(), data.data(), data.size());
    return status;
}

void Group::await(Distribution& distribution) {
    while (!distribution.is_over()) {
        const Failure failure = lookout_.wait(
            {.word = distribution.bits(),
             .has_come = [&] { return distribution.is_over(); },
             .awaited = [&](std::vector<uint32_t>& ranks) { distribution.awaited(ranks); },
             .heeds_loss = false,
             .deadline_ns = distribution.plan().deadline_ns});
        if (failure.is_none()) return;
        if (failure.status == HANARE_STATUS_PEER_LOST) {
            distribution.give_up(failure.rank, failure.status);
        } else {
            distribution.give_up_all(failure.status);
        }
    }
}

}  // namespace hanare::job
