// SPDX-License-Identifier: Apache-2.0
//
// Runtime: a task's part in the shared memory of its job: how the tasks agree on addresses and on a
// protocol, the heap, and variables that are copied to all.  There is one in a process, at most.
//
// start() and finish() are called by all tasks; the rest by any thread, but for barrier().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <ucontext.h>
#include <vector>

#include "base/result.hpp"
#include "dsm/counters.hpp"
#include "dsm/heap.hpp"
#include "dsm/home_protocol.hpp"
#include "dsm/protocol.hpp"
#include "dsm/segment.hpp"
#include "dsm/waits.hpp"
#include "dsm/watch.hpp"
#include "fabric/call_handler.hpp"
#include "job/communicator.hpp"
#include "job/group.hpp"
#include "job/job.hpp"
#include "sys/output_file.hpp"

namespace hanare::dsm {

class Runtime final : private fabric::CallHandler {
public:
    struct Settings {
        uint64_t memory_bytes = 0;
        // Whether tasks of one machine have their memory in common.
        bool shares_machine = true;
        int timeout_ms = 30'000;
        // Where task 0 writes a report at the end (watch_report.hpp); empty: none.
        std::string report_path;
    };
    static Result<std::unique_ptr<Runtime>> start(const Settings& settings);
    ~Runtime() override;
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;
    // Waits for the other tasks.
    Result<void> finish();

    // FORKED in a child.
    Result<void> check_process() const { return communicator_->check_process(); }
    uint32_t rank() const noexcept { return communicator_->rank(); }
    uint32_t size() const noexcept { return communicator_->size(); }
    const Counters& counters() const noexcept { return counters_; }

    Result<std::byte*> allocate(uint64_t bytes);
    Result<void> free(const void* address);
    Result<void> distribute(const void* address, size_t bytes);
    Result<void> barrier(uint32_t id) { return protocol_->barrier(id); }
    Result<void> lock(uint32_t number);
    Result<void> unlock(uint32_t number);
    Waits& waits() noexcept { return protocol_->waits(); }

private:
    // What tasks tell each other first.
    struct Introduction {
        uint64_t memory_bytes = 0;
        uint64_t machine = 0;
        uint64_t processes = 0;  // the namespace in which `process` counts
        uint32_t process = 0;
        uint32_t shares = 0;
        uint32_t reports = 0;
    };
    // A range of the heap, and how much of its beginning may have been used before.
    struct Range {
        uint64_t offset = 0;
        uint64_t used_bytes = 0;
    };

    explicit Runtime(const Settings& settings) : settings_(settings) {}

    Result<void> join();
    template <typename T>
    Result<std::vector<T>> gather(const T& own);
    Result<bool> all_agree(bool own);
    Result<void> choose_addresses(uint64_t bytes);
    Result<void> choose_protocol(const std::vector<Introduction>& all);
    Result<bool> try_one_node(const std::vector<Introduction>& all);
    Result<void> use_home_protocol();
    Result<void> claim_faults();
    static bool receive_fault(int signal_number, siginfo_t* info, void* context) noexcept;
    bool serve_fault(const std::byte* address, bool write, const ucontext_t& at) noexcept;
    Result<void> begin_watch();
    Result<void> write_report();

    Result<Range> ask_heap(uint64_t bytes);
    hanare_status allocate_here(uint64_t bytes, Range& range);
    Result<void> tell_variable(uint32_t task, const void* question, size_t bytes);

    hanare_status answer_call(uint64_t caller, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override;
    hanare_status answer(const Question& question, std::span<const std::byte> rest,
                         std::span<std::byte> room, size_t& bytes);
    void caller_left(uint64_t) noexcept override {}

    const Settings settings_;
    Counters counters_;
    std::unique_ptr<Watch> watch_;
    std::optional<sys::OutputFile> report_;  // of task 0
    std::unique_ptr<job::Job> job_;
    job::Communicator::Handle communicator_;
    job::Group::Handle group_;
    Segment segment_;
    std::unique_ptr<Protocol> protocol_;
    // The same, if it is that; for the thread that serves.
    std::atomic<HomeProtocol*> home_{nullptr};

    std::unique_ptr<Heap> heap_;     // of task 0
    std::atomic<uint64_t> high_{0};  // of task 0: beyond it nothing was ever allocated
};

}  // namespace hanare::dsm
