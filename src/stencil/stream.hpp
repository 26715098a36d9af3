// SPDX-License-Identifier: Apache-2.0
//
// A run by time-skewed streaming: chunks of fronts one after the other, within a chunk the tiles of
// the passes that it touches, each by one thread as soon as the two below it are done (decision
// 42). The same in memory, where a pass begins when the one before has ended, and on a file, where
// passes follow each other without a gap and StreamIo moves the planes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "stencil/executor.hpp"
#include "stencil/plan.hpp"
#include "stencil/run_progress.hpp"
#include "stencil/storage.hpp"
#include "stencil/stream_io.hpp"
#include "stencil/taps.hpp"
#include "stencil/tiles.hpp"

namespace hanare::stencil {

struct RunResult {
    uint64_t steps = 0;  // that are finished
    uint64_t passes = 0;
    uint64_t read_bytes = 0;
    uint64_t written_bytes = 0;
    uint64_t redundant_updates = 0;
    uint64_t io_wait_ns = 0;
    bool has_changed_cells = false;  // of what was there before: in memory, in place
};

class Stream {
public:
    struct Job {
        const Geometry& geometry;
        const std::vector<FieldSpec>& fields;
        const Program& program;
        std::vector<FieldRings>& rings;  // in memory, exchanged after passes of odd writes
        const Plan& plan;
        Storage* storage = nullptr;  // NULL: in memory
        Taps* taps = nullptr;
        RunProgress* progress = nullptr;
        uint64_t first_step = 0;
        uint64_t steps = 0;
        bool is_pinned = false;
    };

    explicit Stream(const Job& job);

    // RunResult is set in any case: in memory, and on a ping-pong file, to what is whole.
    Result<void> run(RunResult& result);

private:
    // What the threads work on.
    struct Chunk {
        int64_t number = 0;  // on a file; in memory within its pass
        int64_t front_begin = 0;
        int64_t front_end = 0;
        uint64_t first_pass = 0;
        uint64_t passes = 0;      // 1 or 2, or none
        uint64_t first_tile = 0;  // over all chunks
        uint64_t tiles = 0;
    };
    struct Order {
        std::vector<int64_t> heights;
        std::vector<Tile> tiles;
    };

    void make_passes();
    const Order& order_of(const Pass& pass) const {
        return pass.heights == &orders_[0].heights ? orders_[0] : orders_[1];
    }
    bool is_in_file() const { return job_.storage != nullptr; }

    void work();
    bool wait_for_tile(uint64_t ticket);
    void compute(uint64_t number, Executor::Scratch& scratch);
    void compute_tile(const Pass& pass, const Tile& tile, Executor::Scratch& scratch) const;
    void end_tile(uint64_t number);
    void wait_for_done(uint64_t number);

    void next_chunk();
    Result<void> end_chunk();
    bool set_up_in_memory();
    bool set_up_in_file();
    void end_pass_in_memory(const Pass& pass);
    void publish();
    void stop(const Result<void>& result);
    void report();

    const Job job_;
    const Tiling tiling_;
    Executor executor_;
    std::array<Order, 2> orders_;  // of whole passes, and of the last one
    Passes passes_;
    uint64_t pass_limit_ = 0;
    std::unique_ptr<StreamIo> io_;

    Chunk chunk_;
    uint64_t passes_done_ = 0;
    uint64_t io_wait_ns_ = 0;
    Result<void> result_;
    std::vector<std::atomic<uint64_t>>
        done_;  // number of the chunk (from 1) that a tile was done in
    uint64_t chunk_count_ = 0;

    std::atomic<uint64_t> next_tile_{0};    // that nobody has taken
    std::atomic<uint64_t> tiles_ready_{0};  // that may be computed: all before
    std::atomic<uint64_t> tiles_left_{0};   // of the chunk
    std::atomic<uint32_t> published_{0};    // futex
    std::atomic<bool> is_over_{false};
};

}  // namespace hanare::stencil
