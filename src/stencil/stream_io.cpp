// SPDX-License-Identifier: Apache-2.0
#include "stencil/stream_io.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/units.hpp"
#include "sys/futex.hpp"
#include "sys/signal.hpp"

namespace hanare::stencil {

namespace {

constexpr size_t kBytesInFlight = 24 * kMiB;  // each way: what a fast disk takes to be busy
constexpr size_t kInFlightMin = 2;

// How far a sequence has got without a gap.
class Progress {
public:
    uint64_t started() const { return started_; }
    uint64_t done() const { return done_; }
    uint64_t start() {
        ended_.push_back(false);
        return started_++;
    }
    void end(uint64_t number) {
        ended_[number - done_] = true;
        while (!ended_.empty() && ended_.front()) {
            ended_.pop_front();
            ++done_;
        }
    }

private:
    uint64_t started_ = 0;
    uint64_t done_ = 0;
    std::deque<bool> ended_;
};

}  // namespace

struct StreamIo::Lane {
    uint32_t field = 0;
    uint32_t level = 0;
    bool is_written = false;
    Progress reads;
    Progress writes;
};

StreamIo::StreamIo(const Job& job)
    : job_(job),
      slabs_(static_cast<uint64_t>((job.geometry.positions() + job.plan.slab - 1) / job.plan.slab)),
      is_ping_pong_(job.storage.header().durability == HANARE_DURABILITY_PING_PONG),
      first_copy_(job.storage.header().copy),
      pass_limit_(job.passes.size()) {
    height_max_ = job.passes[0].height();
    make_lanes();
    const size_t slab_bytes = static_cast<size_t>(job.plan.slab) * job.geometry.position_bytes();
    in_flight_max_ =
        std::clamp(kBytesInFlight / slab_bytes, kInFlightMin, Transfers::kInFlightMax / 2);
    flights_.resize(Transfers::kInFlightMax);
    for (size_t i = 0; i < flights_.size(); ++i) free_flights_.push_back(i);
}

void StreamIo::make_lanes() {
    for (uint32_t field = 0; field < job_.fields.size(); ++field) {
        const hanare_field_kind kind = job_.fields[field].kind;
        const bool is_kept = is_ping_pong_ && kind != HANARE_FIELD_CONSTANT;
        if (!job_.program.is_used(field) && !is_kept) continue;
        for (uint32_t level = 0; level < (kind == HANARE_FIELD_TWO_LEVELS ? 2u : 1u); ++level) {
            Lane lane;
            lane.field = field;
            lane.level = level;
            lane.is_written = is_kept || job_.program.writes_per_step(field) > 0;
            lanes_.push_back(std::move(lane));
        }
    }
}

Result<std::unique_ptr<StreamIo>> StreamIo::start(const Job& job) {
    std::unique_ptr<StreamIo> io(new StreamIo(job));
    HANARE_TRY_ASSIGN(io->transfers_, Transfers::make(job.storage));
    const sys::SignalBlock block;  // the thread inherits it
    try {
        io->thread_ = std::thread([self = io.get()] { self->work(); });
    } catch (const std::system_error& error) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, error.code().value(),
                          "cannot start a thread for the grid's file");
    }
    return io;
}

StreamIo::~StreamIo() {
    if (!thread_.joinable()) return;
    is_abandoned_ = true;
    transfers_->wake();
    thread_.join();
}

int64_t StreamIo::begin_of(uint64_t slab) const {
    return static_cast<int64_t>(slab % slabs_) * job_.plan.slab;
}

// How many slabs begin at or before a position (counted over all passes).
uint64_t StreamIo::slabs_up_to(int64_t position) const {
    const uint64_t pass = job_.passes.begun_at(position);
    if (pass == 0) return 0;
    const int64_t within = position - job_.passes[pass - 1].base;
    const auto begun = static_cast<uint64_t>(within / job_.plan.slab) + 1;
    return (pass - 1) * slabs_ + std::min(begun, slabs_);
}

bool StreamIo::is_written_to(const Lane& lane, int64_t position) const {
    return !lane.is_written || lane.writes.done() >= slabs_up_to(position);
}

bool StreamIo::may_read(const Lane& lane, uint64_t slab) const {
    const uint64_t pass = pass_of(slab);
    if (pass >= pass_limit_.load(std::memory_order_relaxed)) return false;
    // What the ring held there is not needed any more: computed, and written.
    const int64_t last = job_.passes[pass].base + begin_of(slab) + job_.plan.slab - 1;
    const int64_t before = last - job_.rings[lane.field].rings[lane.level].length;
    const int64_t unused_below = computed_.load(std::memory_order_acquire) * job_.plan.chunk -
                                 height_max_ - job_.geometry.radius();
    if (before >= unused_below) return false;
    for (const Lane& other : lanes_) {
        if (other.field == lane.field && !is_written_to(other, before)) return false;
    }
    // The file has what the pass before has made of it.
    return pass == 0 || !lane.is_written || lane.writes.done() + slabs_ > slab;
}

bool StreamIo::may_write(const Lane& lane, uint64_t slab) const {
    if (!lane.is_written) return false;
    const uint64_t pass = pass_of(slab);
    if (pass >= job_.passes.size()) return false;
    // A pass overwrites what the one before it began with: the state before, until that is
    // committed.
    if (is_ping_pong_ && pass > committed_.load(std::memory_order_relaxed)) return false;
    const int64_t last = std::min(begin_of(slab) + job_.plan.slab, job_.geometry.positions()) - 1;
    return job_.passes[pass].base + last + job_.passes[pass].height() <
           computed_.load(std::memory_order_acquire) * job_.plan.chunk;
}

bool StreamIo::start_transfers() {
    bool has_started = false;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < lanes_.size(); ++i) {
            Lane& lane = lanes_[i];
            if (writes_in_flight_ < in_flight_max_ && may_write(lane, lane.writes.started())) {
                begin(i, lane.writes.start(), true);
                again = has_started = true;
            }
            if (reads_in_flight_ < in_flight_max_ && may_read(lane, lane.reads.started())) {
                begin(i, lane.reads.start(), false);
                again = has_started = true;
            }
        }
    }
    return has_started;
}

void StreamIo::begin(size_t number, uint64_t slab, bool writes) {
    const Lane& lane = lanes_[number];
    const Pass pass = job_.passes[pass_of(slab)];
    const int64_t first = begin_of(slab);
    const int64_t count = std::min(job_.plan.slab, job_.geometry.stored_positions() - first);
    const size_t position_bytes = job_.geometry.position_bytes();
    size_t ring = lane.level;
    if (writes && job_.program.is_doubled(lane.field)) {
        const size_t newest = job_.executor.ring_after(lane.field, pass.steps);
        ring = lane.level == 0 ? newest : 1 - newest;
    }
    uint32_t copy = 0;
    if (is_ping_pong_ && job_.fields[lane.field].kind != HANARE_FIELD_CONSTANT) {
        copy = static_cast<uint32_t>((first_copy_ + pass_of(slab) + (writes ? 1 : 0)) % 2);
    }
    Transfer transfer;
    transfer.writes = writes;
    transfer.offset = job_.storage.region(lane.field, lane.level, copy) +
                      static_cast<uint64_t>(first) * position_bytes;
    transfer.memory = job_.rings[lane.field].rings[ring].at(pass.base + first);
    transfer.bytes = static_cast<size_t>(count) * position_bytes;
    transfer.tag = free_flights_.back();
    free_flights_.pop_back();
    flights_[transfer.tag] = {number, slab, writes, transfer.bytes};
    ++(writes ? writes_in_flight_ : reads_in_flight_);
    has_written_ |= writes;
    transfers_->start(transfer);
}

void StreamIo::end(const Transfers::Completion& completion) {
    const Flight flight = flights_[completion.tag];
    free_flights_.push_back(completion.tag);
    --(flight.writes ? writes_in_flight_ : reads_in_flight_);
    if (completion.error != 0) {
        fail_with(fail_errno(transfer_status(completion.error), completion.error,
                             "cannot %s the grid's file", flight.writes ? "write" : "read")
                      .error());
        return;
    }
    Lane& lane = lanes_[flight.lane];
    (flight.writes ? lane.writes : lane.reads).end(flight.slab);
    (flight.writes ? written_bytes_ : read_bytes_) += flight.bytes;
}

bool StreamIo::commit_passes() {
    if (!is_ping_pong_) return false;
    const uint64_t pass = committed_.load(std::memory_order_relaxed);
    if (pass >= job_.passes.size()) return false;
    for (const Lane& lane : lanes_) {
        if (lane.is_written && lane.writes.done() < (pass + 1) * slabs_) return false;
    }
    const Pass whole = job_.passes[pass];
    const auto copy = static_cast<uint32_t>((first_copy_ + pass + 1) % 2);
    const Result<void> committed = job_.storage.commit(whole.first_step + whole.steps, copy, false);
    if (!committed) {
        fail_with(committed.error());
        return false;
    }
    committed_.store(pass + 1);
    return true;
}

// Whether the pass that has the position is written from the field's other ring.
bool StreamIo::ends_in_other(const Lane& lane, int64_t position) const {
    if (!lane.is_written || !job_.program.is_doubled(lane.field)) return false;
    const uint64_t begun = slabs_up_to(position);
    if (begun == 0) return false;
    const Pass pass = job_.passes[pass_of(begun - 1)];
    return (job_.executor.ring_after(lane.field, pass.steps) == 1) == (lane.level == 0);
}

bool StreamIo::has_for(int64_t chunk) const {
    const int64_t last = (chunk + 1) * job_.plan.chunk - 1;
    const uint64_t limit = pass_limit_.load(std::memory_order_relaxed) * slabs_;
    for (const Lane& lane : lanes_) {
        if (lane.reads.done() < std::min(slabs_up_to(last), limit)) return false;
        const FieldRings& rings = job_.rings[lane.field];
        const int64_t before = last - rings.rings[1].length;
        if (ends_in_other(lane, before) && !is_written_to(lane, before)) return false;
    }
    return true;
}

void StreamIo::publish() {
    const uint32_t before = ready_.load(std::memory_order_relaxed);
    uint32_t ready = before;
    while (static_cast<int64_t>(ready) <= computed_.load(std::memory_order_acquire) &&
           has_for(ready)) {
        ++ready;
    }
    if (ready == before) return;
    ready_.store(ready, std::memory_order_release);
    sys::futex_wake_all(ready_);
}

bool StreamIo::is_finished() const {
    const uint64_t limit = pass_limit_.load(std::memory_order_acquire);
    if (is_ping_pong_ && committed_.load(std::memory_order_relaxed) < limit) return false;
    const Pass last = job_.passes[limit - 1];
    const int64_t fronts = last.base + job_.geometry.positions() + last.height();
    if (computed_.load(std::memory_order_acquire) * job_.plan.chunk < fronts) return false;
    return std::ranges::all_of(lanes_, [&](const Lane& lane) {
        return !lane.is_written || lane.writes.done() >= limit * slabs_;
    });
}

void StreamIo::fail_with(const Error& error) {
    {
        const std::lock_guard guard(lock_);
        if (result_) result_ = std::unexpected(error);
    }
    has_failed_ = true;
    ready_.store(UINT32_MAX);
    sys::futex_wake_all(ready_);
}

void StreamIo::work() {
    for (;;) {
        const bool is_over = has_failed_ || is_abandoned_;
        const size_t in_flight = reads_in_flight_ + writes_in_flight_;
        if (is_over ? in_flight == 0 : is_finished() && in_flight == 0) return;
        const bool has_started = !is_over && start_transfers();
        Transfers::Completion completion;
        bool may_sleep = !has_started;
        while (transfers_->collect(completion, may_sleep)) {
            end(completion);
            may_sleep = false;
        }
        if (has_failed_) continue;
        while (commit_passes()) {
        }
        publish();
    }
}

bool StreamIo::wait_for(int64_t chunk) {
    for (;;) {
        const uint32_t ready = ready_.load(std::memory_order_acquire);
        if (has_failed_) return false;
        if (static_cast<int64_t>(ready) > chunk) return true;
        sys::futex_wait(ready_, ready);
    }
}

void StreamIo::computed(int64_t chunks) {
    computed_.store(chunks, std::memory_order_release);
    transfers_->wake();
}

void StreamIo::limit_passes(uint64_t count) {
    pass_limit_.store(count, std::memory_order_release);
    transfers_->wake();
}

void StreamIo::abandon() {
    is_abandoned_ = true;
    transfers_->wake();
}

Result<void> StreamIo::finish() {
    transfers_->wake();
    thread_.join();
    const std::lock_guard guard(lock_);
    return result_;
}

}  // namespace hanare::stencil
