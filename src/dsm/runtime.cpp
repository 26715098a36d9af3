// SPDX-License-Identifier: Apache-2.0
//
// Starting and ending, and faults.
#include "dsm/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <ucontext.h>
#include <unistd.h>

#include "base/units.hpp"
#include "dsm/one_node.hpp"
#include "dsm/watch_report.hpp"
#include "hook/signals.hpp"
#include "job/word_wait.hpp"
#include "sys/process_namespace.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"
#include "sys/text_file.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::dsm {
namespace {

// Far from where the kernel puts anything by itself; tried one after the other.
constexpr uint64_t kFirstAddress = uint64_t{1} << 44;
constexpr uint64_t kAddressStep = uint64_t{1} << 40;
constexpr uint32_t kAddressesMax = 32;
constexpr uint32_t kSpinUs = 50;
// Positions of all tasks have to fit into a question.
constexpr uint32_t kTasksMax = (fabric::kMessageBytesMax - sizeof(Question)) / sizeof(uint64_t);

std::atomic<Runtime*> running{nullptr};

uint64_t machine_number() {
    const auto boot = sys::read_text_file("/proc/sys/kernel/random/boot_id");
    return boot ? std::hash<std::string>()(*boot) : 0;
}

size_t words_bytes() {
    return (sizeof(OneNodeWords) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::start(const Settings& settings) {
    std::unique_ptr<Runtime> runtime(new Runtime(settings));
    HANARE_TRY(runtime->join());
    const Introduction own = {.memory_bytes = settings.memory_bytes,
                              .machine = machine_number(),
                              .processes = sys::process_namespace(),
                              .process = static_cast<uint32_t>(getpid()),
                              .shares = settings.shares_machine,
                              .reports = !settings.report_path.empty()};
    HANARE_TRY_ASSIGN(const auto all, runtime->gather(own));
    for (size_t task = 0; task < all.size(); ++task) {
        if (all[task].memory_bytes == own.memory_bytes) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "shared memory of %llu bytes; task %zu wants %llu",
                    static_cast<unsigned long long>(own.memory_bytes), task,
                    static_cast<unsigned long long>(all[task].memory_bytes));
    }
    HANARE_TRY(runtime->choose_addresses(own.memory_bytes));
    if (runtime->rank() == 0) runtime->heap_ = std::make_unique<Heap>(own.memory_bytes);
    if (all[0].reports != 0) HANARE_TRY(runtime->begin_watch());
    running.store(runtime.get(), std::memory_order_release);
    HANARE_TRY(runtime->choose_protocol(all));
    // Nobody asks who does not know its protocol yet.
    HANARE_TRY(runtime->group_->barrier(job::deadline_after(settings.timeout_ms)));
    return runtime;
}

Result<void> Runtime::join() {
    HANARE_TRY_ASSIGN(job_, job::Job::join(settings_.timeout_ms));
    if (job_->size() > kTasksMax) {
        return fail(HANARE_STATUS_LIMIT, "%u tasks; shared memory is for %u at most", job_->size(),
                    kTasksMax);
    }
    const uint32_t spin_us = sys::allowed_cpus() / 2 >= job_->size() ? kSpinUs : 0;
    HANARE_TRY_ASSIGN(communicator_,
                      job::Communicator::open(*job_, {.spin_us = spin_us,
                                                      .timeout_ms = settings_.timeout_ms,
                                                      .uses_shared_memory = false,
                                                      .calls = this}));
    HANARE_TRY_ASSIGN(group_, job::Group::open(*communicator_));
    return {};
}

// Connections end first, so that nobody asks what is gone.
Runtime::~Runtime() {
    Runtime* self = this;
    running.compare_exchange_strong(self, nullptr);
    group_.reset();
    communicator_.reset();
}

Result<void> Runtime::finish() {
    HANARE_TRY(protocol_->barrier(UINT32_MAX - 1));
    if (watch_ != nullptr) HANARE_TRY(write_report());
    return group_->barrier(job::kNoDeadline);
}

// ---- the report

Result<void> Runtime::begin_watch() {
    HANARE_TRY_ASSIGN(watch_, Watch::make(segment_.blocks()));
    counters_.watch = watch_.get();
    if (rank() != 0) return {};
    HANARE_TRY_ASSIGN(report_, sys::OutputFile::open("HANARE_DSM_REPORT", settings_.report_path));
    return {};
}

Result<void> Runtime::write_report() {
    const WatchedTask task = {.rank = rank(),
                              .size = size(),
                              .segment = segment_,
                              .counters = counters_,
                              .heap = heap_.get()};
    HANARE_TRY_ASSIGN(const auto notes, gather_notes(*watch_, task, *group_, job::kNoDeadline));
    HANARE_TRY_ASSIGN(const auto regions, gather_regions(*watch_, task, *group_, job::kNoDeadline));
    if (!report_) return {};
    return report_->replace(watch_report(notes, regions, segment_));
}

// ---- agreeing

template <typename T>
Result<std::vector<T>> Runtime::gather(const T& own) {
    std::vector<T> all(size());
    HANARE_TRY(group_->allgather(std::as_bytes(std::span(&own, 1)),
                                 std::as_writable_bytes(std::span(all)),
                                 job::deadline_after(settings_.timeout_ms)));
    return all;
}

Result<bool> Runtime::all_agree(bool own) {
    HANARE_TRY_ASSIGN(const auto all, gather(static_cast<uint32_t>(own)));
    return std::ranges::all_of(all, [](uint32_t agrees) { return agrees != 0; });
}

Result<void> Runtime::choose_addresses(uint64_t bytes) {
    const uint64_t step = (bytes + kAddressStep - 1) / kAddressStep * kAddressStep;
    Error why;
    for (uint32_t i = 0; i < kAddressesMax; ++i) {
        auto tried =
            Segment::reserve(reinterpret_cast<std::byte*>(kFirstAddress + i * step), bytes);
        if (!tried) why = tried.error();
        HANARE_TRY_ASSIGN(const bool is_free, all_agree(tried.has_value()));
        if (!is_free) continue;
        segment_ = std::move(*tried);
        return {};
    }
    return fail(HANARE_STATUS_NO_MEMORY,
                "no %s of addresses are free in all tasks (HANARE_DSM_MEMORY): %s",
                format_size(bytes).c_str(), why.text);
}

Result<void> Runtime::choose_protocol(const std::vector<Introduction>& all) {
    const bool is_one_machine = std::ranges::all_of(all, [&](const Introduction& task) {
        return task.shares != 0 && task.machine != 0 && task.machine == all[0].machine &&
               task.processes != 0 && task.processes == all[0].processes;
    });
    if (is_one_machine) {
        HANARE_TRY_ASSIGN(const bool done, try_one_node(all));
        if (done) return {};
    }
    return use_home_protocol();
}

// The first task has the files, until the others have opened them by way of /proc.
Result<bool> Runtime::try_one_node(const std::vector<Introduction>& all) {
    sys::FileDescriptor memory;
    sys::FileDescriptor words;
    bool is_made = true;
    const auto make = [&](size_t bytes, sys::FileDescriptor& file) {
        if (rank() != 0) return;
        auto made = sys::create_shared_memory(bytes);
        is_made = is_made && made.has_value();
        if (made) file = std::move(*made);
    };
    make(segment_.bytes(), memory);
    make(words_bytes(), words);
    struct Files {
        int memory;
        int words;
    };
    HANARE_TRY_ASSIGN(const auto files, gather(Files{memory.number(), words.number()}));
    Result<sys::Mapping> shown_words = fail(HANARE_STATUS_SYSTEM, "not mapped");
    if (is_made) {
        const auto path_of = [&](int number) {
            return "/proc/" + std::to_string(all[0].process) + "/fd/" + std::to_string(number);
        };
        if (rank() != 0) memory = sys::open_shared_file(path_of(files[0].memory).c_str());
        shown_words = sys::map_shared_file(path_of(files[0].words).c_str(), words_bytes());
        is_made = shown_words.has_value() && memory.is_open();
    }
    HANARE_TRY_ASSIGN(const bool is_everywhere, all_agree(is_made));
    if (!is_everywhere) return false;
    HANARE_TRY(segment_.show(std::move(memory)));
    const bool may_spin = sys::allowed_cpus() >= size();
    protocol_ =
        std::make_unique<OneNode>(*communicator_, std::move(*shown_words), may_spin, counters_);
    return true;
}

Result<void> Runtime::use_home_protocol() {
    HANARE_TRY_ASSIGN(auto file, sys::create_shared_memory(segment_.bytes()));
    HANARE_TRY(segment_.show(std::move(file)));
    HANARE_TRY(claim_faults());
    HANARE_TRY_ASSIGN(auto home, HomeProtocol::make(*communicator_, segment_, counters_));
    HANARE_TRY_ASSIGN(const auto keys, gather(home->own_keys()));
    HANARE_TRY(home->complete(keys, job::deadline_after(settings_.timeout_ms)));
    home_.store(home.get(), std::memory_order_release);
    protocol_ = std::move(home);
    return {};
}

// ---- faults

Result<void> Runtime::claim_faults() {
    static const Result<void> claimed = hook::claim_signal(SIGBUS, receive_fault);
    return claimed;
}

bool Runtime::receive_fault(int, siginfo_t* info, void* context) noexcept {
    constexpr greg_t kWriteAccess = 2;  // of x86-64's page-fault error code
    Runtime* const runtime = running.load(std::memory_order_acquire);
    if (runtime == nullptr || info->si_code != BUS_ADRERR) return false;
    const auto* const address = static_cast<const std::byte*>(info->si_addr);
    if (!runtime->segment_.contains(address)) return false;
    const auto& at = *static_cast<const ucontext_t*>(context);
    const auto error = at.uc_mcontext.gregs[REG_ERR];
    return runtime->serve_fault(address, (error & kWriteAccess) != 0, at);
}

bool Runtime::serve_fault(const std::byte* address, bool write, const ucontext_t& at) noexcept {
    HomeProtocol* const home = home_.load(std::memory_order_acquire);
    if (home == nullptr) return false;
    const hanare_status status = home->resolve(address, write);
    if (status == HANARE_STATUS_OK) {
        if (watch_ != nullptr) {
            const auto& registers = at.uc_mcontext.gregs;
            watch_->note_fault(
                {.block = segment_.block_of(address),
                 .offset = static_cast<uint32_t>((address - segment_.base()) % kBlockBytes),
                 .write = write,
                 .instruction = static_cast<uint64_t>(registers[REG_RIP]),
                 .stack = reinterpret_cast<const uint64_t*>(registers[REG_RSP])});
        }
        return true;
    }
    telemetry::RawLine line;
    line.text("hanare: shared memory at ").hex(address).text(" cannot be ");
    line.text(write ? "written" : "read").text(": ");
    if (status == HANARE_STATUS_PEER_LOST && home->lost() != Peers::kNobody) {
        line.text("task ").decimal(home->lost()).text(" is no more");
    } else {
        line.text(hanare_status_text(status));
    }
    line.text("; SIGBUS follows");
    line.write_stderr();
    return false;
}

}  // namespace hanare::dsm
