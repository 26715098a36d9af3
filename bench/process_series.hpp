// SPDX-License-Identifier: Apache-2.0
//
// What this process uses over time: processors, bytes from and to storage.  Looked at by a thread
// of its own.  Used by one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace hanare::bench {

// From the begin of what is measured, and what has been used since then.
struct ProcessMoment {
    double seconds = 0;
    double user_s = 0;  // of all threads
    double system_s = 0;
    uint64_t read_bytes = 0;  // that storage was asked for
    uint64_t written_bytes = 0;
};

class ProcessSeries {
public:
    explicit ProcessSeries(uint64_t every_ns);
    ~ProcessSeries();
    ProcessSeries(const ProcessSeries&) = delete;
    ProcessSeries& operator=(const ProcessSeries&) = delete;

    // The first moment is all zeros, the last one is now.
    std::vector<ProcessMoment> end();

private:
    ProcessMoment since_begin() const;
    void look();

    const uint64_t every_ns_;
    ProcessMoment begin_;
    std::vector<ProcessMoment> moments_;  // the thread's, until it has ended
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

}  // namespace hanare::bench
