// SPDX-License-Identifier: Apache-2.0
#include "dsm/home_protocol.hpp"

#include <algorithm>
#include <cstring>

#include "job/word_wait.hpp"
#include "sys/clock.hpp"

namespace hanare::dsm {

Result<std::unique_ptr<HomeProtocol>> HomeProtocol::make(job::Communicator& communicator,
                                                         Segment& segment, Counters& counters) {
    HANARE_TRY_ASSIGN(auto notices, Notices::make(communicator.rank(), communicator.size()));
    HANARE_TRY_ASSIGN(auto mail, Mail::make(communicator.size()));
    HANARE_TRY_ASSIGN(auto changed, RunList::make(HomeMemory::kChangedRunsMax));
    HANARE_TRY_ASSIGN(auto learnt, RunList::make(kLearntRunsMax));
    std::unique_ptr<HomeProtocol> made(new HomeProtocol(communicator, segment, counters,
                                                        std::move(notices), std::move(mail),
                                                        std::move(changed), std::move(learnt)));
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
                           Notices notices, Mail mail, RunList changed, RunList learnt)
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
           .acquire = [this](uint32_t from,
                             const std::vector<uint64_t>& known) { return acquire(from, known); },
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
      message_(kMailBarrierBytes) {}

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
    changed_.clear();
    const hanare_status status = memory_->release(changed_);
    notices_.append(changed_.runs());
    return status;
}

hanare_status HomeProtocol::acquire(uint32_t from, std::span<const uint64_t> known) {
    const std::lock_guard guard(learning_);
    if (!notices_.may_be_known(known)) return HANARE_STATUS_CORRUPT;
    const hanare_status status = read_logs(from, known);
    return status == HANARE_STATUS_OK ? heed(known) : status;
}

void HomeProtocol::note_runs(std::span<const uint64_t> known, RunList& runs) const noexcept {
    for (uint32_t task = 0; task < peers_.size(); ++task) {
        const uint64_t begin = notices_.position(task);
        if (known[task] <= begin) continue;
        if (known[task] - begin > Notices::kRangeBytesMax) {
            runs.add(kAllBlocks);
        } else {
            read_runs(notices_.pieces(task, begin, known[task] - begin), runs);
        }
    }
}

// What this task's logs have up to there counts from now on: first the copies go.
hanare_status HomeProtocol::heed(std::span<const uint64_t> known) noexcept {
    learnt_.clear();
    note_runs(known, learnt_);
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

// ---- barriers

Result<void> HomeProtocol::barrier(uint32_t id) {
    const uint64_t begun_ns = sys::now_ns();
    const hanare_status released = release();
    if (released != HANARE_STATUS_OK) return failed("barrier", released);
    ++barriers_;
    Counters::add(counters_.barriers);
    bool is_wrong = false;
    for (uint32_t round = 0; (uint64_t{1} << round) < peers_.size(); ++round) {
        HANARE_TRY(pass_round(round, id, is_wrong));
    }
    notices_.copy_positions(last_barrier_);
    const hanare_status status = memory_->refresh();
    Counters::add(counters_.wait_ns, sys::now_ns() - begun_ns);
    if (status != HANARE_STATUS_OK) return failed("barrier", status);
    if (!is_wrong) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "barrier %u: other tasks are at another one", id);
}

// Other threads of this task may release and acquire while it waits.
Result<void> HomeProtocol::pass_round(uint32_t round, uint32_t id, bool& is_wrong) {
    const uint32_t tasks = peers_.size();
    const uint32_t step = (1u << round) % tasks;
    const uint32_t to = (peers_.rank() + step) % tasks;
    const uint32_t from = (peers_.rank() + tasks - step) % tasks;
    const hanare_status sent = send_message(to, round, make_message(id, is_wrong));
    if (sent != HANARE_STATUS_OK) return failed("barrier", sent);
    HANARE_TRY(await_message(from, round));
    const std::byte* const place = mail_.barrier(barriers_, round);
    BarrierHead head;
    std::memcpy(&head, place, sizeof head);
    is_wrong |= head.id != id || head.is_wrong != 0 || head.number != barriers_;
    std::memcpy(said_.data(), place + sizeof head, tasks * sizeof(Said));
    std::ranges::transform(said_, known_.begin(), &Said::position);
    const size_t head_bytes = sizeof head + tasks * sizeof(Said);
    const std::span<const std::byte> logs(place + head_bytes, kMailBarrierBytes - head_bytes);
    const std::lock_guard guard(learning_);
    if (!notices_.may_be_known(known_)) return failed("barrier", HANARE_STATUS_CORRUPT);
    const bool has_come = head.has_logs != 0 && notices_.take_in(said_, logs);
    hanare_status status = has_come ? HANARE_STATUS_OK : read_logs(from, known_);
    if (status == HANARE_STATUS_OK) status = heed(known_);
    if (status != HANARE_STATUS_OK) return failed("barrier", status);
    return {};
}

// Other threads may append meanwhile, and so overwrite what is copied here.
std::span<const std::byte> HomeProtocol::make_message(uint32_t id, bool is_wrong) noexcept {
    const std::lock_guard guard(learning_);
    const uint32_t tasks = peers_.size();
    const size_t head_bytes = sizeof(BarrierHead) + tasks * sizeof(Said);
    size_t bytes = head_bytes;
    for (uint32_t task = 0; task < tasks; ++task) {
        said_[task] = {notices_.position(task), last_barrier_[task]};
        bytes += std::min(said_[task].position - said_[task].begin, uint64_t{kMailBarrierBytes});
    }
    const bool has_logs = bytes <= kMailBarrierBytes;
    const BarrierHead head = {
        .number = barriers_, .id = id, .is_wrong = is_wrong, .has_logs = has_logs};
    std::memcpy(message_.data(), &head, sizeof head);
    std::memcpy(message_.data() + sizeof head, said_.data(), tasks * sizeof(Said));
    std::byte* at = message_.data() + head_bytes;
    for (uint32_t task = 0; has_logs && task < tasks; ++task) {
        const auto [position, begin] = said_[task];
        const auto pieces = notices_.pieces(task, begin, position - begin);
        for (const auto& piece : {pieces.first, pieces.second}) {
            at = std::ranges::copy(piece, at).out;
        }
    }
    return std::span(message_).first(has_logs ? bytes : head_bytes);
}

// The words lie behind the messages, so that both requests go at once.
hanare_status HomeProtocol::send_message(uint32_t to, uint32_t round,
                                         std::span<const std::byte> message) {
    const uint32_t tasks = peers_.size();
    fabric::Operation put;
    put.kind = fabric::Kind::kPut;
    put.capability = peers_.keys(to).mail;
    put.offset = Mail::barrier_offset(tasks, barriers_, round);
    put.source = message;
    peers_.prepare(put);
    fabric::Operation notice;
    notice.kind = fabric::Kind::kFetch;
    notice.capability = put.capability;
    notice.offset = Mail::word_offset(tasks, round);
    notice.width = sizeof(uint32_t);
    notice.operand = 1;
    job::make_waking(notice);
    peers_.prepare(notice);
    Counters::add(counters_.barrier_messages);
    Counters::add(counters_.barrier_bytes, message.size());
    peers_.post_apart(to, put);
    peers_.post_apart(to, notice);
    const hanare_status put_status = peers_.wait(to, put);
    const hanare_status status = peers_.wait(to, notice);
    return put_status != HANARE_STATUS_OK ? put_status : status;
}

// Whose loss ends the wait: anybody's, since who is awaited may wait for that one, or have given
// up.
void HomeProtocol::add_others(uint32_t first, std::vector<uint32_t>& tasks) const {
    for (uint32_t i = 0; i < peers_.size(); ++i) {
        const uint32_t task = (first + i) % peers_.size();
        if (task != peers_.rank()) tasks.push_back(task);
    }
}

Result<void> HomeProtocol::await_message(uint32_t from, uint32_t round) {
    std::atomic<uint32_t>& word = mail_.word(round);
    const auto has_come = [&] {
        return static_cast<int32_t>(word.load(std::memory_order_acquire) - barriers_) >= 0;
    };
    const job::Failure failure = lookout_.wait(
        {.word = word, .has_come = has_come, .awaited = [&](std::vector<uint32_t>& tasks) {
             add_others(from, tasks);
         }});
    if (failure.is_none()) return {};
    peers_.note_lost(failure.rank);
    return failed("barrier", failure.status);
}

}  // namespace hanare::dsm
