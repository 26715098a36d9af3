// SPDX-License-Identifier: Apache-2.0
#include "dsm/home_protocol.hpp"

#include <algorithm>
#include <cstring>

namespace hanare::dsm {

Result<std::unique_ptr<HomeProtocol>> HomeProtocol::make(job::Communicator& communicator,
                                                         Segment& segment, Counters& counters) {
    HANARE_TRY_ASSIGN(auto notices, Notices::make(communicator.rank(), communicator.size()));
    HANARE_TRY_ASSIGN(auto mail, Mail::make(communicator.size()));
    HANARE_TRY_ASSIGN(auto changed, RunList::make(HomeMemory::kChangedRunsMax));
    HANARE_TRY_ASSIGN(auto learnt, RunList::make(kLearntRunsMax));
    HANARE_TRY_ASSIGN(
        auto updates_room,
        sys::SparseMemory::reserve(communicator.size() * update_bytes_max(communicator.size())));
    std::unique_ptr<HomeProtocol> made(
        new HomeProtocol(communicator, segment, counters, std::move(notices), std::move(mail),
                         std::move(changed), std::move(learnt), std::move(updates_room)));
    HANARE_TRY_ASSIGN(made->memory_, HomeMemory::make(segment, made->peers_, counters));
    job::Exposures& exposures = communicator.exposures();
    const auto expose = [&](std::span<std::byte> memory,
                            fabric::Rights rights) -> Result<fabric::Capability> {
        HANARE_TRY_ASSIGN(const uint32_t region, exposures.expose(memory, rights));
        return exposures.capability(region, rights);
    };
    HANARE_TRY_ASSIGN(made->own_keys_.memory,
                      expose({segment.alias(0), segment.bytes()}, fabric::kRead));
    HANARE_TRY_ASSIGN(
        made->own_keys_.mail,
        expose(made->mail_.memory(), fabric::kRead | fabric::kWrite | fabric::kAtomic));
    HANARE_TRY_ASSIGN(made->own_keys_.notices, expose(made->notices_.memory(), fabric::kRead));
    return made;
}

HomeProtocol::HomeProtocol(job::Communicator& communicator, Segment& segment, Counters& counters,
                           Notices notices, Mail mail, RunList changed, RunList learnt,
                           sys::SparseMemory updates_room)
    : communicator_(communicator),
      lookout_(communicator),
      segment_(segment),
      counters_(counters),
      peers_(communicator.rank(), communicator.size(), counters),
      notices_(std::move(notices)),
      mail_(std::move(mail)),
      locks_(
          peers_, counters,
          {.release = [this] { return release(); },
           .tell = [this](std::span<const uint64_t> told, std::span<std::byte> room,
                          bool waits) { return tell(told, room, waits); },
           .acquire = [this](uint32_t from, std::span<const uint64_t> told,
                             std::span<const std::byte> text) { return acquire(from, told, text); },
           .positions =
               [this] {
                   std::vector<uint64_t> positions(peers_.size());
                   notices_.copy_positions(positions);
                   return positions;
               },
           .fetch =
               [this](std::span<const uint32_t> blocks) { memory_->fetch_before_missed(blocks); },
           .misses = [this]() -> const RecentMisses& { return memory_->misses(); },
           .find_lost = [this](uint32_t first) { return find_lost(first); }}),
      changed_(std::move(changed)),
      learnt_(std::move(learnt)),
      last_barrier_(communicator.size()),
      said_(communicator.size()),
      known_(communicator.size()),
      message_(kMailBarrierBytes),
      updates_room_(std::move(updates_room)),
      updates_(communicator.size()),
      come_(kUpdatesAtOnce) {}

Result<void> HomeProtocol::complete(const std::vector<PeerKeys>& keys, uint64_t deadline_ns) {
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        HANARE_TRY_ASSIGN(const auto* const way, communicator_.way_to(task, deadline_ns));
        peers_.set(task, way->link.get(), keys[task]);
    }
    return {};
}

std::unexpected<Error> HomeProtocol::failed(const char* what, hanare_status status) const {
    if (status == HANARE_STATUS_PEER_LOST && peers_.lost() != Peers::kNobody) {
        return fail(status, "%s: task %u is no more", what, peers_.lost());
    }
    return fail(status, "%s: %s", what, hanare_status_text(status));
}

bool HomeProtocol::find_lost(uint32_t first) {
    std::vector<uint32_t> others;
    add_others(first, others);
    for (const uint32_t task : others) {
        if (!lookout_.is_lost(task)) continue;
        peers_.note_lost(task);
        return true;
    }
    return false;
}

// ---- releasing, and learning what others have released

hanare_status HomeProtocol::release() {
    const std::lock_guard guard(learning_);
    if (peers_.failure() != HANARE_STATUS_OK) return peers_.failure();
    changed_.clear();
    const hanare_status status = memory_->release(changed_);
    notices_.append(changed_.runs());
    return peers_.note_failure(status);
}

// Positions, and what lies before each behind the one that was told, if all that has room.  Other
// threads may append meanwhile, and so overwrite what is copied here.
size_t HomeProtocol::tell(std::span<const uint64_t> told, std::span<std::byte> room, bool waits) {
    std::unique_lock guard(learning_, std::defer_lock);
    if (waits) {
        guard.lock();
    } else {
        static_cast<void>(guard.try_lock());
    }
    std::vector<uint64_t> positions(peers_.size());
    notices_.copy_positions(positions);
    std::memcpy(room.data(), positions.data(), positions.size() * sizeof(uint64_t));
    size_t bytes = positions.size() * sizeof(uint64_t);
    const auto lacked = [&](uint32_t task) {
        return positions[task] - std::min(told[task], positions[task]);
    };
    uint64_t all = 0;
    for (uint32_t task = 0; task < told.size(); ++task) {
        all += std::min<uint64_t>(lacked(task), room.size());
    }
    if (!guard.owns_lock() || all > room.size() - bytes) return bytes;
    for (uint32_t task = 0; task < told.size(); ++task) {
        const auto pieces = notices_.pieces(task, positions[task] - lacked(task), lacked(task));
        for (const auto& piece : {pieces.first, pieces.second}) {
            std::ranges::copy(piece, room.begin() + static_cast<ptrdiff_t>(bytes));
            bytes += piece.size();
        }
    }
    return bytes;
}

hanare_status HomeProtocol::acquire(uint32_t from, std::span<const uint64_t> told,
                                    std::span<const std::byte> text) {
    return peers_.note_failure(learn(from, told, text));
}

hanare_status HomeProtocol::learn(uint32_t from, std::span<const uint64_t> told,
                                  std::span<const std::byte> text) {
    std::vector<uint64_t> known(peers_.size());
    const size_t known_bytes = known.size() * sizeof(uint64_t);
    if (text.size() < known_bytes) return HANARE_STATUS_CORRUPT;
    std::memcpy(known.data(), text.data(), known_bytes);
    std::vector<Said> said(told.size());
    for (uint32_t task = 0; task < told.size(); ++task) {
        said[task] = {known[task], std::min(told[task], known[task])};
    }
    const auto logs = text.subspan(known_bytes);
    const std::lock_guard guard(learning_);
    if (!notices_.may_be_known(known)) return HANARE_STATUS_CORRUPT;
    const bool has_come = !logs.empty() && notices_.take_in(said, logs);
    const hanare_status status = has_come ? HANARE_STATUS_OK : read_logs(from, known);
    return status == HANARE_STATUS_OK ? heed(known) : status;
}

// What the task has said between these positions.
void HomeProtocol::note_runs_between(uint32_t task, uint64_t begin, uint64_t end,
                                     RunList& runs) const noexcept {
    if (end <= begin) return;
    if (end - begin > Notices::kRangeBytesMax) {
        runs.add(kAllBlocks);
    } else {
        read_runs(notices_.pieces(task, begin, end - begin), runs);
    }
}

// What this task's logs have up to there counts from now on: first the copies go.
hanare_status HomeProtocol::heed(std::span<const uint64_t> known) noexcept {
    learnt_.clear();
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        note_runs_between(task, notices_.position(task), known[task], learnt_);
    }
    learnt_.make_disjoint();
    const hanare_status status = memory_->invalidate(learnt_.runs());
    if (status != HANARE_STATUS_OK) return status;
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        if (known[task] > notices_.position(task)) notices_.extend(task, known[task]);
    }
    return HANARE_STATUS_OK;
}

// Into this task's logs, as far as they reach.
hanare_status HomeProtocol::read_logs(uint32_t from, std::span<const uint64_t> known) noexcept {
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        if (known[task] <= notices_.position(task)) continue;
        const hanare_status status = read_log(from, task, known[task]);
        if (status != HANARE_STATUS_OK) return status;
    }
    return HANARE_STATUS_OK;
}

// Up to the position.  That task may go on and write where this one reads: what was lost is all
// blocks then.
hanare_status HomeProtocol::read_log(uint32_t from, uint32_t task, uint64_t position) noexcept {
    // Who asks this task later may lack less.
    const uint64_t bytes = std::min(position - notices_.position(task), Notices::kRangeBytesMax);
    const uint64_t begin = position - bytes;
    notices_.prepare(task, position);
    const auto pieces = notices_.pieces(task, begin, bytes);
    uint64_t prepared = 0;
    const std::span<std::byte> parts[] = {pieces.first, pieces.second,
                                          std::as_writable_bytes(std::span(&prepared, 1))};
    const uint64_t offsets[] = {static_cast<uint64_t>(parts[0].data() - notices_.memory().data()),
                                static_cast<uint64_t>(parts[1].data() - notices_.memory().data()),
                                notices_.prepared_offset() + task * sizeof prepared};
    fabric::Operation reads[3];
    for (int i = 0; i < 3; ++i) {
        reads[i].kind = fabric::Kind::kGet;
        reads[i].capability = peers_.keys(from).notices;
        reads[i].offset = offsets[i];
        reads[i].destination = parts[i];
        peers_.prepare(reads[i]);
        if (!parts[i].empty()) peers_.post(from, reads[i]);
    }
    hanare_status first = HANARE_STATUS_OK;
    for (int i = 0; i < 3; ++i) {
        if (parts[i].empty()) continue;
        const hanare_status status = peers_.wait(from, reads[i]);
        if (first == HANARE_STATUS_OK) first = status;
    }
    if (first == HANARE_STATUS_OK && Notices::was_overwritten(begin, prepared)) {
        notices_.fill_with_all(task, begin, bytes);
    }
    return first;
}

}  // namespace hanare::dsm
