// SPDX-License-Identifier: Apache-2.0
//
// hanare_dsm_*: arguments, and calls into dsm::Runtime.
#include "hanare/dsm.h"

#include <atomic>
#include <memory>

#include "base/units.hpp"
#include "capi/arguments.hpp"
#include "capi/comm.hpp"
#include "capi/guard.hpp"
#include "dsm/runtime.hpp"
#include "job/environment.hpp"

struct hanare_dsm {
    std::unique_ptr<hanare::dsm::Runtime> runtime;
};

namespace hanare::capi {
namespace {

constexpr uint64_t kMemoryBytes = 64 * kGiB;
constexpr int kStartMs = 30'000;
constexpr const char* kMemoryVariable = "HANARE_DSM_MEMORY";
constexpr const char* kSharedVariable = "HANARE_DSM_SHARED";
constexpr const char* kReportVariable = "HANARE_DSM_REPORT";

static_assert(HANARE_DSM_LOCKS == dsm::kLocks);
static_assert(HANARE_DSM_CONDITIONS == dsm::kConditions);
static_assert(HANARE_DSM_SEMAPHORES == dsm::kSemaphores);
static_assert(HANARE_DSM_SEMAPHORE_MAX == dsm::kSemaphoreCountMax);

std::atomic<hanare_dsm*> running{nullptr};

template <typename Handle, typename Body>
hanare_status on_dsm(const char* function, Handle* dsm, Body body) noexcept {
    if (dsm == nullptr) return report(null_argument(function, "dsm"));
    return guarded(function, [&]() -> Result<void> {
        HANARE_TRY(dsm->runtime->check_process());
        return body(*dsm->runtime);
    });
}

Result<uint64_t> memory_bytes_of(const hanare_dsm_options& options) {
    uint64_t bytes = options.memory_bytes;
    if (const auto said = job::variable(kMemoryVariable); bytes == 0 && said) {
        HANARE_TRY_ASSIGN(bytes, parse_size(kMemoryVariable, *said));
    }
    if (bytes == 0) bytes = kMemoryBytes;
    constexpr uint64_t kMax = uint64_t{1} << 42;
    if (bytes <= kMax) return round_up(bytes, kHugePageBytes);
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "shared memory of %s; at most %s",
                format_size(bytes).c_str(), format_size(kMax).c_str());
}

Result<bool> shares_machine(const hanare_dsm_options& options) {
    if ((options.flags & HANARE_DSM_NO_SHARED_MEMORY) != 0) return false;
    const auto said = job::variable(kSharedVariable);
    if (!said || *said == "on") return true;
    if (*said == "off") return false;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s=%s; allowed are on and off", kSharedVariable,
                said->c_str());
}

Result<hanare_dsm*> start(const hanare_dsm_options* given) {
    HANARE_TRY_ASSIGN(const auto options, copy_options("hanare_dsm_start", given));
    if ((options.flags & ~HANARE_DSM_NO_SHARED_MEMORY) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare_dsm_start: flags 0x%x; allowed are HANARE_DSM_*", options.flags);
    }
    dsm::Runtime::Settings settings;
    HANARE_TRY_ASSIGN(settings.memory_bytes, memory_bytes_of(options));
    HANARE_TRY_ASSIGN(settings.shares_machine, shares_machine(options));
    settings.report_path = job::variable(kReportVariable).value_or("");
    settings.timeout_ms = options.timeout_ms == 0 ? kStartMs : options.timeout_ms;
    if (has_joined_job.exchange(true)) {
        return fail(HANARE_STATUS_BUSY, "hanare_dsm_start: a process joins its job once");
    }
    auto dsm = std::make_unique<hanare_dsm>();
    HANARE_TRY_ASSIGN(dsm->runtime, dsm::Runtime::start(settings));
    running = dsm.get();
    return dsm.release();
}

void fill(const dsm::Counters& from, hanare_dsm_counters& to) {
    const auto value = [](const dsm::Counters::Count& count) {
        return count.load(std::memory_order_relaxed);
    };
    to.read_faults = value(from.read_faults);
    to.write_faults = value(from.write_faults);
    to.fetched_blocks = value(from.fetched_blocks);
    to.invalidated_blocks = value(from.invalidated_blocks);
    to.twins = value(from.twins);
    to.diffs = value(from.diffs);
    to.diff_bytes = value(from.diff_bytes);
    to.messages = value(from.messages);
    to.message_bytes = value(from.message_bytes);
    to.barrier_messages = value(from.barrier_messages);
    to.barrier_bytes = value(from.barrier_bytes);
    to.barriers = value(from.barriers);
    to.locks = value(from.locks);
    to.remote_locks = value(from.remote_locks);
    to.wait_ns = value(from.wait_ns);
}

}  // namespace
}  // namespace hanare::capi

using namespace hanare;
using namespace hanare::capi;

hanare_status hanare_dsm_start(const hanare_dsm_options* options, hanare_dsm** dsm) {
    if (dsm == nullptr) return report(null_argument(__func__, "dsm"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*dsm, start(options));
        return {};
    });
}

hanare_status hanare_dsm_finish(hanare_dsm* dsm) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) -> Result<void> {
        const std::unique_ptr<hanare_dsm> gone(dsm);
        running = nullptr;
        return runtime.finish();
    });
}

hanare_status hanare_dsm_running(hanare_dsm** dsm) {
    if (dsm == nullptr) return report(null_argument(__func__, "dsm"));
    return guarded(__func__, [&]() -> Result<void> {
        hanare_dsm* const now = running;
        if (now == nullptr) {
            return fail(HANARE_STATUS_NOT_FOUND, "hanare_dsm_running: nothing is started");
        }
        *dsm = now;
        return {};
    });
}

hanare_status hanare_dsm_rank(const hanare_dsm* dsm, uint32_t* rank) {
    if (rank == nullptr) return report(null_argument(__func__, "rank"));
    return on_dsm(__func__, dsm, [&](const dsm::Runtime& runtime) -> Result<void> {
        *rank = runtime.rank();
        return {};
    });
}

hanare_status hanare_dsm_size(const hanare_dsm* dsm, uint32_t* size) {
    if (size == nullptr) return report(null_argument(__func__, "size"));
    return on_dsm(__func__, dsm, [&](const dsm::Runtime& runtime) -> Result<void> {
        *size = runtime.size();
        return {};
    });
}

hanare_status hanare_dsm_allocate(hanare_dsm* dsm, size_t bytes, void** address) {
    if (address == nullptr) return report(null_argument(__func__, "address"));
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) -> Result<void> {
        HANARE_TRY_ASSIGN(*address, runtime.allocate(bytes));
        return {};
    });
}

hanare_status hanare_dsm_free(hanare_dsm* dsm, void* address) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) -> Result<void> {
        if (address == nullptr) return {};
        return runtime.free(address);
    });
}

hanare_status hanare_dsm_distribute(hanare_dsm* dsm, const void* address, size_t bytes) {
    if (address == nullptr) return report(null_argument(__func__, "address"));
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.distribute(address, bytes); });
}

hanare_status hanare_dsm_barrier(hanare_dsm* dsm, uint32_t id) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) { return runtime.barrier(id); });
}

hanare_status hanare_dsm_barrier_group(hanare_dsm* dsm, uint32_t id, const uint32_t* tasks,
                                       size_t count) {
    if (tasks == nullptr) return report(null_argument(__func__, "tasks"));
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.waits().meet(id, {tasks, count}); });
}

hanare_status hanare_dsm_lock(hanare_dsm* dsm, uint32_t lock) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) { return runtime.lock(lock); });
}

hanare_status hanare_dsm_unlock(hanare_dsm* dsm, uint32_t lock) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) { return runtime.unlock(lock); });
}

hanare_status hanare_dsm_wait(hanare_dsm* dsm, uint32_t lock, uint32_t condition) {
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.waits().wait(lock, condition); });
}

hanare_status hanare_dsm_signal(hanare_dsm* dsm, uint32_t lock, uint32_t condition) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) {
        return runtime.waits().wake(lock, condition, false);
    });
}

hanare_status hanare_dsm_broadcast(hanare_dsm* dsm, uint32_t lock, uint32_t condition) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) {
        return runtime.waits().wake(lock, condition, true);
    });
}

hanare_status hanare_dsm_semaphore_make(hanare_dsm* dsm, uint32_t semaphore, uint32_t count) {
    return on_dsm(__func__, dsm, [&](dsm::Runtime& runtime) {
        return runtime.waits().make_semaphore(semaphore, count);
    });
}

hanare_status hanare_dsm_semaphore_end(hanare_dsm* dsm, uint32_t semaphore) {
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.waits().end_semaphore(semaphore); });
}

hanare_status hanare_dsm_semaphore_wait(hanare_dsm* dsm, uint32_t semaphore) {
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.waits().take(semaphore); });
}

hanare_status hanare_dsm_semaphore_post(hanare_dsm* dsm, uint32_t semaphore) {
    return on_dsm(__func__, dsm,
                  [&](dsm::Runtime& runtime) { return runtime.waits().post(semaphore); });
}

hanare_status hanare_dsm_count(const hanare_dsm* dsm, hanare_dsm_counters* counters) {
    if (counters == nullptr) return report(null_argument(__func__, "counters"));
    return on_dsm(__func__, dsm, [&](const dsm::Runtime& runtime) -> Result<void> {
        hanare_dsm_counters all = {};
        all.struct_size = counters->struct_size;
        fill(runtime.counters(), all);
        std::memcpy(counters, &all, std::min(counters->struct_size, sizeof all));
        return {};
    });
}
