// SPDX-License-Identifier: Apache-2.0
//
// The thread that moves slabs of positions between the file and the rings while others compute.  It
// reads ahead as far as the rings have room, and writes what has all steps of its pass; a pass may
// begin while the one before is still being written.  (research note, section 2)
//
// Each field, and each of its levels, is a lane; its slabs are numbered over all passes.  All
// conditions are about how far a lane's reads and writes have got without a gap.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "stencil/executor.hpp"
#include "stencil/plan.hpp"
#include "stencil/ring.hpp"
#include "stencil/storage.hpp"
#include "stencil/transfers.hpp"

namespace hanare::stencil {

class StreamIo {
public:
    struct Job {
        Storage& storage;
        const Geometry& geometry;
        const std::vector<FieldSpec>& fields;
        const Program& program;
        const Executor& executor;
        const std::vector<FieldRings>& rings;
        const Passes& passes;
        const Plan& plan;
    };

    static Result<std::unique_ptr<StreamIo>> start(const Job& job);
    // Gives up what is not finished.
    ~StreamIo();
    StreamIo(const StreamIo&) = delete;
    StreamIo& operator=(const StreamIo&) = delete;

    // Sleeps until chunk `chunk` has what it needs; false: there was an error.
    bool wait_for(int64_t chunk);
    // All before `chunks` are computed.
    void computed(int64_t chunks);
    // No passes from this number on.
    void limit_passes(uint64_t count);
    // Nothing more is started; finish() returns soon.
    void abandon();
    // Until everything is written, and committed where that is done by pass.
    Result<void> finish();

    uint64_t read_bytes() const { return read_bytes_; }
    uint64_t written_bytes() const { return written_bytes_; }
    // At least one write was begun.
    bool has_written() const { return has_written_; }
    // Whose results are in the file for good (ping-pong).
    uint64_t committed_passes() const { return committed_; }

private:
    struct Lane;
    struct Flight {
        size_t lane = 0;
        uint64_t slab = 0;  // over all passes
        bool writes = false;
        size_t bytes = 0;
    };

    explicit StreamIo(const Job& job);

    void make_lanes();
    void work();
    bool start_transfers();
    bool may_read(const Lane& lane, uint64_t slab) const;
    bool may_write(const Lane& lane, uint64_t slab) const;
    void begin(size_t lane, uint64_t slab, bool writes);
    void end(const Transfers::Completion& completion);
    bool commit_passes();
    void publish();
    bool has_for(int64_t chunk) const;
    bool is_written_to(const Lane& lane, int64_t position) const;
    bool ends_in_other(const Lane& lane, int64_t position) const;
    bool is_finished() const;
    void fail_with(const Error& error);

    // Of a slab: its pass and its first position there.
    uint64_t pass_of(uint64_t slab) const { return slab / slabs_; }
    int64_t begin_of(uint64_t slab) const;
    uint64_t slabs_up_to(int64_t position) const;

    const Job job_;
    const uint64_t slabs_;  // of a pass
    const bool is_ping_pong_;
    const uint32_t first_copy_;
    int64_t height_max_ = 0;
    std::vector<Lane> lanes_;
    std::unique_ptr<Transfers> transfers_;

    // Of the thread.
    std::vector<Flight> flights_;
    std::vector<size_t> free_flights_;
    size_t reads_in_flight_ = 0;
    size_t writes_in_flight_ = 0;
    size_t in_flight_max_ = 0;
    uint64_t read_bytes_ = 0;
    uint64_t written_bytes_ = 0;
    bool has_written_ = false;

    std::atomic<int64_t> computed_{0};
    std::atomic<uint64_t> pass_limit_;
    std::atomic<bool> is_abandoned_{false};
    std::atomic<uint32_t> ready_{0};  // chunks that have what they need; futex
    std::atomic<bool> has_failed_{false};
    std::atomic<uint64_t> committed_{0};
    std::mutex lock_;
    Result<void> result_;  // under lock_
    std::thread thread_;
};

}  // namespace hanare::stencil
