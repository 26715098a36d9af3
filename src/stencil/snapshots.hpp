// SPDX-License-Identifier: Apache-2.0
//
// Snapshots of a run, written to a file (.npy, .h5) or given to a function, plane by plane by a
// thread of their own while the run goes on.  The file is allocated before anything is computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "hanare/stencil.h"
#include "stencil/geometry.hpp"
#include "sys/file.hpp"

namespace hanare::stencil {

struct SnapshotOptions {
    uint64_t every = 0;  // 0: none
    uint32_t field = 0;
    std::string path;  // empty: no file
    hanare_grid_snapshot_function function = nullptr;
    void* user = nullptr;
};

// Of a run that takes the grid from step `first` to `last`.
struct SnapshotSteps {
    uint64_t every = 0;
    uint64_t before = 0;  // multiples of `every` up to `first`
    uint64_t count = 0;

    static SnapshotSteps of_run(uint64_t every, uint64_t first, uint64_t last) {
        if (every == 0) return {};
        return {every, first / every, last / every - first / every};
    }
    uint64_t step(uint64_t number) const { return (before + 1 + number) * every; }
    uint64_t number(uint64_t step) const { return step / every - before - 1; }
};

class SnapshotWriter {
public:
    // One plane that is ready, in memory that stays as it is until wait() returns.
    struct Plane {
        uint64_t step = 0;
        int64_t plane = 0;
        const std::byte* cells = nullptr;
    };

    // BUSY: the file exists; STORE_FULL; STORE_UNAVAILABLE; INVALID_ARGUMENT: its name has no
    // ending that is known.
    static Result<std::unique_ptr<SnapshotWriter>> open(const SnapshotOptions& options,
                                                        const Geometry& geometry,
                                                        const SnapshotSteps& steps);
    ~SnapshotWriter();
    SnapshotWriter(const SnapshotWriter&) = delete;
    SnapshotWriter& operator=(const SnapshotWriter&) = delete;

    void put(const Plane& plane);
    // Until everything that was put is written.  The first error that there was.
    Result<void> wait();
    uint64_t bytes() const { return bytes_; }
    // The file stays when this ends; without it, or a plane that was put, it is removed.
    void keep() { is_kept_ = true; }

private:
    SnapshotWriter(const SnapshotOptions& options, const Geometry& geometry,
                   const SnapshotSteps& steps);

    Result<void> create_file();
    Result<void> write(const Plane& plane);
    void work();

    const SnapshotOptions options_;
    const Geometry& geometry_;
    const SnapshotSteps steps_;
    sys::FileDescriptor file_;
    uint64_t data_offset_ = 0;
    uint64_t bytes_ = 0;
    bool is_kept_ = false;  // of who calls put()

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<Plane> planes_;  // under lock_
    bool is_writing_ = false;   // under lock_
    bool is_over_ = false;      // under lock_
    Result<void> result_;       // under lock_
    std::thread thread_;
};

}  // namespace hanare::stencil
