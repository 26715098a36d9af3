// SPDX-License-Identifier: Apache-2.0
#include "stencil/stream.hpp"

#include <algorithm>

#include "stencil/team.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"

namespace hanare::stencil {

namespace {

int64_t round_up_to(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Stream::Stream(const Job& job)
    : job_(job),
      tiling_(job.geometry.lateral(), job.plan.tile_height, job.program.slope_max()),
      executor_(job.geometry, job.program, job.rings) {
    executor_.set_taps(job.taps);
    make_passes();
}

void Stream::make_passes() {
    const uint64_t whole = std::min(job_.plan.steps_per_pass, job_.steps);
    const auto make_order = [&](Order& order, uint64_t steps) {
        order.heights = job_.program.heights(steps);
        order.tiles = tiling_.order(order.heights, job_.plan.lag);
    };
    make_order(orders_[0], whole);
    if (job_.steps % whole != 0) make_order(orders_[1], job_.steps % whole);
    Passes::Options options;
    options.first_step = job_.first_step;
    options.steps = job_.steps;
    options.steps_per_pass = whole;
    options.heights = &orders_[0].heights;
    options.last_heights = &orders_[1].heights;
    // What the next one reads has been written long before.
    if (is_in_file()) {
        const int64_t drained = orders_[0].heights.back() + job_.plan.slab + 3 * job_.plan.chunk;
        options.spacing = round_up_to(std::max(job_.geometry.positions(), drained), job_.plan.slab);
    }
    passes_ = Passes(options);
    pass_limit_ = passes_.size();
    done_ = std::vector<std::atomic<uint64_t>>(2 * orders_[0].tiles.size());
}

Result<void> Stream::run(RunResult& result) {
    if (is_in_file()) {
        HANARE_TRY_ASSIGN(io_,
                          StreamIo::start({*job_.storage, job_.geometry, job_.fields, job_.program,
                                           executor_, job_.rings, passes_, job_.plan}));
    }
    chunk_.number = -1;
    result.has_changed_cells = !is_in_file();
    next_chunk();
    run_on(job_.plan.threads, job_.is_pinned, [this] { work(); });
    if (io_ != nullptr) {
        const uint64_t begin_ns = sys::now_ns();
        const Result<void> written = io_->finish();
        io_wait_ns_ += sys::now_ns() - begin_ns;
        if (!written) result_ = written;
        result.read_bytes = io_->read_bytes();
        result.written_bytes = io_->written_bytes();
        result.has_changed_cells = io_->has_written();
        if (!result_) passes_done_ = io_->committed_passes();
    }
    if (job_.taps != nullptr) {
        const Result<void> taken = job_.taps->finish();
        if (result_) result_ = taken;
    }
    result.io_wait_ns = io_wait_ns_;
    result.passes = passes_done_;
    result.steps = passes_.steps_of(passes_done_);
    return result_;
}

// Threads

void Stream::work() {
    Executor::Scratch scratch;
    for (;;) {
        const uint64_t ticket = next_tile_.fetch_add(1, std::memory_order_relaxed);
        if (!wait_for_tile(ticket)) return;
        const uint64_t number = ticket - chunk_.first_tile;
        compute(number, scratch);
        end_tile(number);
    }
}

// Tiles of the next chunk are there when all of this one's are done.
bool Stream::wait_for_tile(uint64_t ticket) {
    Patience patience;
    for (uint32_t looks = 0;; ++looks) {
        if (is_over_.load(std::memory_order_acquire)) return false;
        const uint32_t seen = published_.load(std::memory_order_acquire);
        if (tiles_ready_.load(std::memory_order_acquire) > ticket) return true;
        if (looks < 5000) {
            patience.wait();
        } else if (!is_over_.load(std::memory_order_acquire)) {
            sys::futex_wait(published_, seen);
        }
    }
}

void Stream::wait_for_done(uint64_t number) {
    Patience patience;
    while (done_[number].load(std::memory_order_acquire) != chunk_count_) patience.wait();
}

void Stream::compute(uint64_t number, Executor::Scratch& scratch) {
    uint64_t first = 0;
    Pass pass = passes_[chunk_.first_pass];
    if (const uint64_t count = order_of(pass).tiles.size(); number >= count) {
        first = count;
        pass = passes_[chunk_.first_pass + 1];
    }
    const Tile& tile = order_of(pass).tiles[number - first];
    const auto own = static_cast<uint32_t>(number - first);
    if (tile.left != own) wait_for_done(first + tile.left);
    if (tile.right != own) wait_for_done(first + tile.right);
    compute_tile(pass, tile, scratch);
}

void Stream::compute_tile(const Pass& pass, const Tile& tile, Executor::Scratch& scratch) const {
    if (tile.substeps_begin >= tile.substeps_end) return;
    const std::vector<int64_t>& heights = *pass.heights;
    const int64_t positions = job_.geometry.positions();
    const int64_t lowest = heights[tile.substeps_begin];
    const int64_t highest = heights[tile.substeps_end - 1];
    const int64_t begin = std::max(chunk_.front_begin, pass.base + lowest);
    const int64_t end = std::min(chunk_.front_end, pass.base + positions + highest);
    for (int64_t front = begin; front < end; ++front) {
        for (uint32_t substep = tile.substeps_begin; substep < tile.substeps_end; ++substep) {
            const int64_t position = front - heights[substep] - pass.base;
            if (position < 0 || position >= positions) continue;
            const auto parts = tiling_.parts(tile, heights[substep]);
            for (size_t i = 0; i < parts.size(); ++i) {
                if (parts[i].is_empty()) continue;
                executor_.update(pass, substep, position, parts[i], scratch,
                                 tiling_.part_number(tile, i));
            }
        }
    }
}

void Stream::end_tile(uint64_t number) {
    done_[number].store(chunk_count_, std::memory_order_release);
    if (tiles_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) next_chunk();
}

// Between chunks, by the thread that has done the last tile: nobody else reads or writes.

void Stream::next_chunk() {
    if (chunk_count_ > 0) {
        const Result<void> ended = end_chunk();
        if (!ended) return stop(ended);
    }
    do {
        const bool is_there = is_in_file() ? set_up_in_file() : set_up_in_memory();
        if (!is_there) return stop(result_);
    } while (chunk_.tiles == 0);
    publish();
}

Result<void> Stream::end_chunk() {
    if (job_.taps != nullptr) {
        HANARE_TRY(job_.taps->finish());
        for (uint64_t i = 0; i < chunk_.passes; ++i) {
            HANARE_TRY(job_.taps->end_chunk(passes_[chunk_.first_pass + i], chunk_.front_end));
        }
    }
    const Pass first = passes_[chunk_.first_pass];
    if (chunk_.front_end >= first.base + job_.geometry.positions() + first.height()) {
        passes_done_ = first.number + 1;
        if (!is_in_file()) {
            if (job_.taps != nullptr) HANARE_TRY(job_.taps->finish());
            end_pass_in_memory(first);
        }
    }
    if (io_ != nullptr) io_->computed(chunk_.number + 1);
    report();
    return {};
}

void Stream::end_pass_in_memory(const Pass& pass) {
    for (uint32_t field = 0; field < job_.fields.size(); ++field) {
        auto& rings = job_.rings[field].rings;
        if (executor_.ring_after(field, pass.steps) != 0) std::swap(rings[0], rings[1]);
    }
}

void Stream::report() {
    if (job_.progress == nullptr || passes_done_ >= pass_limit_) return;
    const uint64_t done = passes_.steps_of(passes_done_);
    double steps = static_cast<double>(passes_[chunk_.first_pass].first_step - job_.first_step);
    for (uint64_t i = 0; i < chunk_.passes; ++i) {
        const Pass pass = passes_[chunk_.first_pass + i];
        const auto all = static_cast<double>(job_.geometry.positions() + pass.height());
        const auto fronts = static_cast<double>(chunk_.front_end - pass.base);
        steps += std::clamp(fronts / all, 0.0, 1.0) * static_cast<double>(pass.steps);
    }
    const double fraction = steps / static_cast<double>(job_.steps);
    if (job_.progress->tell(done, std::min(fraction, 1.0), io_wait_ns_)) return;
    // What has begun ends; in place it could not be given up any more.
    pass_limit_ = std::min(pass_limit_, chunk_.first_pass + std::max<uint64_t>(chunk_.passes, 1));
    if (io_ != nullptr) io_->limit_passes(pass_limit_);
}

bool Stream::set_up_in_memory() {
    uint64_t pass = chunk_.first_pass;
    int64_t begin = chunk_.front_end;
    if (chunk_.number >= 0 && passes_done_ > pass) {
        ++pass;
        begin = 0;
    }
    if (pass >= pass_limit_) return false;
    const int64_t end = job_.geometry.positions() + passes_[pass].height();
    chunk_.number += 1;
    chunk_.front_begin = begin;
    chunk_.front_end = std::min(begin + job_.plan.chunk, end);
    chunk_.first_pass = pass;
    chunk_.passes = 1;
    chunk_.tiles = order_of(passes_[pass]).tiles.size();
    return true;
}

bool Stream::set_up_in_file() {
    chunk_.number += 1;
    chunk_.front_begin = chunk_.number * job_.plan.chunk;
    chunk_.front_end = chunk_.front_begin + job_.plan.chunk;
    uint64_t pass = chunk_.first_pass;
    while (pass < pass_limit_ &&
           passes_[pass].base + job_.geometry.positions() + passes_[pass].height() <=
               chunk_.front_begin) {
        ++pass;
    }
    if (pass >= pass_limit_) return false;
    chunk_.first_pass = pass;
    chunk_.passes = 0;
    chunk_.tiles = 0;
    while (pass < pass_limit_ && passes_[pass].base < chunk_.front_end) {
        chunk_.tiles += order_of(passes_[pass]).tiles.size();
        ++chunk_.passes;
        ++pass;
    }
    if (chunk_.tiles == 0) {  // between passes of a short grid
        io_->computed(chunk_.number + 1);
        return true;
    }
    const uint64_t begin_ns = sys::now_ns();
    const bool is_ready = io_->wait_for(chunk_.number);
    io_wait_ns_ += sys::now_ns() - begin_ns;
    return is_ready;
}

void Stream::publish() {
    if (job_.taps != nullptr) job_.taps->begin_chunk(chunk_.front_begin);
    ++chunk_count_;
    chunk_.first_tile = tiles_ready_.load(std::memory_order_relaxed);
    tiles_left_.store(chunk_.tiles, std::memory_order_relaxed);
    tiles_ready_.store(chunk_.first_tile + chunk_.tiles, std::memory_order_release);
    published_.fetch_add(1, std::memory_order_release);
    sys::futex_wake_all(published_);
}

void Stream::stop(const Result<void>& result) {
    if (!result) {
        result_ = result;
        if (io_ != nullptr) io_->abandon();
    }
    is_over_.store(true, std::memory_order_release);
    published_.fetch_add(1, std::memory_order_release);
    sys::futex_wake_all(published_);
}

}  // namespace hanare::stencil
