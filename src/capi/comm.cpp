// SPDX-License-Identifier: Apache-2.0
//
// hanare_comm_*: opening and closing, memory, and operations that are waited for at once.
#include "capi/comm.hpp"

#include <thread>

#include "fabric/fifo.hpp"
#include "job/environment.hpp"
#include "job/ucx_side.hpp"
#include "job/word_wait.hpp"
#include "sys/clock.hpp"

namespace hanare::capi {
namespace {

constexpr int kOpenMs = 30'000;
constexpr uint32_t kSpinUs = 50;
constexpr uint32_t kFlags = HANARE_COMM_NO_SPIN | HANARE_COMM_NO_SHARED_MEMORY | HANARE_COMM_UCX;
constexpr fabric::Rights kRights = HANARE_RIGHT_READ | HANARE_RIGHT_WRITE | HANARE_RIGHT_FETCH_OP |
                                   HANARE_RIGHT_PUSH | HANARE_RIGHT_POP;
static_assert(HANARE_RIGHT_READ == fabric::kRead && HANARE_RIGHT_WRITE == fabric::kWrite &&
              HANARE_RIGHT_FETCH_OP == fabric::kAtomic && HANARE_RIGHT_PUSH == fabric::kPush &&
              HANARE_RIGHT_POP == fabric::kPop &&
              HANARE_QUEUE_MESSAGE_BYTES_MAX == fabric::kMessageBytesMax);

std::atomic<hanare_comm*> opened{nullptr};

// Looking wins where nobody else wants the processor meanwhile.
uint32_t spin_us_of(const hanare_comm_options& options, uint32_t tasks) {
    if ((options.flags & HANARE_COMM_NO_SPIN) != 0) return 0;
    if (options.spin_us != 0) return options.spin_us;
    return std::thread::hardware_concurrency() / 2 >= tasks ? kSpinUs : 0;
}

// Also without a change of the program.
Result<bool> wants_ucx(const hanare_comm_options& options) {
    if ((options.flags & HANARE_COMM_UCX) != 0) return true;
    const Result<uint32_t> said = job::number_variable(job::kUcxVariable, 0, 1);
    if (said) return *said == 1;
    if (said.error().status == HANARE_STATUS_NOT_FOUND) return false;
    return std::unexpected(said.error());
}

Result<hanare_comm*> open_comm(const hanare_comm_options* given) {
    HANARE_TRY_ASSIGN(const auto options, copy_options("hanare_comm_open", given));
    if ((options.flags & ~kFlags) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare_comm_open: flags 0x%x; allowed are HANARE_COMM_*", options.flags);
    }
    if (const hanare_comm* const comm = opened.load(); comm != nullptr) {
        HANARE_TRY(comm->communicator->check_process());
    }
    HANARE_TRY_ASSIGN(const bool uses_ucx, wants_ucx(options));
    // Before it joins, which it can do once.
    if (uses_ucx) HANARE_TRY(job::UcxSide::try_here());
    if (has_joined_job.exchange(true)) {
        return fail(HANARE_STATUS_BUSY, "hanare_comm_open: a process joins its job once");
    }
    const int timeout_ms = options.timeout_ms == 0 ? kOpenMs : options.timeout_ms;
    auto comm = std::make_unique<hanare_comm>();
    HANARE_TRY_ASSIGN(comm->job, job::Job::join(timeout_ms));
    const job::Communicator::Settings settings = {
        .spin_us = spin_us_of(options, comm->job->size()),
        .timeout_ms = timeout_ms,
        .uses_shared_memory = (options.flags & HANARE_COMM_NO_SHARED_MEMORY) == 0,
        .uses_ucx = uses_ucx};
    HANARE_TRY_ASSIGN(comm->communicator, job::Communicator::open(*comm->job, settings));
    HANARE_TRY_ASSIGN(comm->group, job::Group::open(*comm->communicator));
    opened.store(comm.get());
    return comm.release();
}

Result<void> check_rights(uint32_t rights) {
    if (rights != 0 && (rights & ~kRights) == 0) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "rights 0x%x; allowed are HANARE_RIGHT_*", rights);
}

bool is_as_wanted(uint64_t word, hanare_wait_until until, uint64_t value) noexcept {
    switch (until) {
        case HANARE_WAIT_NOT_EQUAL: return word != value;
        case HANARE_WAIT_EQUAL: return word == value;
        default: return word >= value;
    }
}

Result<void> check_wait(const void* word, uint32_t width, hanare_wait_until until) {
    HANARE_TRY(check_pointer("word", word));
    if ((width != 4 && width != 8) || reinterpret_cast<uintptr_t>(word) % width != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "a word of %u bytes at %p; it has 4 or 8 and is aligned", width, word);
    }
    if (until >= HANARE_WAIT_NOT_EQUAL && until <= HANARE_WAIT_AT_LEAST) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "no condition of a word: %d",
                static_cast<int>(until));
}

uint64_t load(const void* word, uint32_t width) noexcept {
    if (width == 8) return __atomic_load_n(static_cast<const uint64_t*>(word), __ATOMIC_ACQUIRE);
    return __atomic_load_n(static_cast<const uint32_t*>(word), __ATOMIC_ACQUIRE);
}

Result<uint64_t> wait_word(const void* word, uint32_t width, hanare_wait_until until,
                           uint64_t value, uint64_t deadline_ns) {
    // Its lower half, if it has 8 bytes: the other one's changes are found by looking.
    const auto& half = *static_cast<const std::atomic<uint32_t>*>(word);
    for (;;) {
        const uint64_t seen = load(word, width);
        if (is_as_wanted(seen, until, value)) return seen;
        if (sys::now_ns() >= deadline_ns) {
            return fail(HANARE_STATUS_TIMEOUT, "waiting for a word, which is %llu",
                        static_cast<unsigned long long>(seen));
        }
        job::wait_for_change(half, static_cast<uint32_t>(seen), deadline_ns, job::Changes::kAny);
    }
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::guarded;
using hanare::capi::null_argument;
using hanare::capi::on_comm;
using hanare::capi::report;
using hanare::capi::Target;
using hanare::fabric::Kind;
using hanare::fabric::Operation;

extern "C" {

// ---- tasks

hanare_status hanare_comm_open(const hanare_comm_options* options, hanare_comm** comm) {
    if (comm == nullptr) return report(null_argument(__func__, "comm"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*comm, hanare::capi::open_comm(options));
        return {};
    });
}

hanare_status hanare_comm_close(hanare_comm* comm) {
    return on_comm(__func__, comm, [](hanare_comm& opened) -> Result<void> {
        if (const size_t left = opened.operations.load(); left != 0) {
            return hanare::fail(HANARE_STATUS_BUSY,
                                "hanare_comm_close: %zu operations were not freed", left);
        }
        hanare::capi::opened.store(nullptr);
        opened.signals.reset();
        opened.group.reset();
        opened.communicator.reset();
        delete &opened;
        return {};
    });
}

hanare_status hanare_comm_rank(hanare_comm* comm, uint32_t* rank) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("rank", rank));
        *rank = opened.communicator->rank();
        return {};
    });
}

hanare_status hanare_comm_size(hanare_comm* comm, uint32_t* size) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("size", size));
        *size = opened.communicator->size();
        return {};
    });
}

// ---- memory

hanare_status hanare_comm_allocate(hanare_comm* comm, size_t bytes, void** address) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("address", address));
        HANARE_TRY_ASSIGN(const auto memory, opened.communicator->exposures().allocate(bytes));
        *address = memory.data();
        return {};
    });
}

hanare_status hanare_comm_free(hanare_comm* comm, void* address) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.communicator->exposures().free(address);
    });
}

hanare_status hanare_comm_expose(hanare_comm* comm, void* address, size_t bytes, uint32_t rights,
                                 uint32_t* region) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("address", address));
        HANARE_TRY(hanare::capi::check_pointer("region", region));
        HANARE_TRY(hanare::capi::check_rights(rights));
        HANARE_TRY_ASSIGN(*region, opened.communicator->exposures().expose(
                                       hanare::capi::room_at(address, bytes), rights));
        return {};
    });
}

hanare_status hanare_comm_capability(hanare_comm* comm, uint32_t region, uint32_t rights,
                                     hanare_capability* capability) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("capability", capability));
        HANARE_TRY_ASSIGN(const auto made,
                          opened.communicator->exposures().capability(region, rights));
        std::memcpy(capability, &made, sizeof *capability);
        return {};
    });
}

hanare_status hanare_comm_revoke(hanare_comm* comm, uint32_t region) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.communicator->exposures().revoke(region);
    });
}

hanare_status hanare_comm_conceal(hanare_comm* comm, uint32_t region) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.communicator->exposures().conceal(region);
    });
}

// ---- operations

hanare_status hanare_comm_put(hanare_comm* comm, uint32_t task, const hanare_capability* capability,
                              uint64_t offset, const void* source, size_t bytes, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        Operation put;
        HANARE_TRY(hanare::capi::make_sending(
            put, Kind::kPut, {task, capability, offset, timeout_ms}, source, bytes));
        return opened.communicator->carry_out(task, put);
    });
}

hanare_status hanare_comm_get(hanare_comm* comm, uint32_t task, const hanare_capability* capability,
                              uint64_t offset, void* destination, size_t bytes, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        Operation get;
        HANARE_TRY(hanare::capi::make_fetching(
            get, Kind::kGet, {task, capability, offset, timeout_ms}, destination, bytes));
        return opened.communicator->carry_out(task, get);
    });
}

hanare_status hanare_comm_fetch_op(hanare_comm* comm, uint32_t task,
                                   const hanare_capability* capability, uint64_t offset,
                                   hanare_fetch_op op, uint32_t width, uint64_t operand,
                                   uint64_t compare, int timeout_ms, uint64_t* before) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        Operation fetch;
        HANARE_TRY(hanare::capi::make_fetch(fetch, {task, capability, offset, timeout_ms}, op,
                                            width, operand, compare));
        HANARE_TRY(opened.communicator->carry_out(task, fetch));
        if (before != nullptr) *before = fetch.value();
        return {};
    });
}

hanare_status hanare_comm_put_notify(hanare_comm* comm, uint32_t task,
                                     const hanare_capability* capability, uint64_t offset,
                                     const void* source, size_t bytes, uint64_t flag_offset,
                                     uint64_t operand, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        Operation put;
        HANARE_TRY(hanare::capi::make_sending(
            put, Kind::kPut, {task, capability, offset, timeout_ms}, source, bytes));
        Operation notice;
        HANARE_TRY(hanare::capi::make_fetch(notice, {task, capability, flag_offset, timeout_ms},
                                            HANARE_FETCH_ADD, 8, operand, 0));
        return opened.communicator->put_and_notify(task, put, notice);
    });
}

hanare_status hanare_comm_wait_word(hanare_comm* comm, const void* word, uint32_t width,
                                    hanare_wait_until until, uint64_t value, int timeout_ms,
                                    uint64_t* seen) {
    return on_comm(__func__, comm, [&](hanare_comm&) -> Result<void> {
        HANARE_TRY(hanare::capi::check_wait(word, width, until));
        HANARE_TRY_ASSIGN(const uint64_t found,
                          hanare::capi::wait_word(word, width, until, value,
                                                  hanare::job::deadline_after(timeout_ms)));
        if (seen != nullptr) *seen = found;
        return {};
    });
}

// ---- queues

hanare_status hanare_queue_format(void* memory, size_t bytes) {
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("memory", memory));
        const hanare_status status =
            hanare::fabric::Fifo::format(hanare::capi::room_at(memory, bytes));
        if (status == HANARE_STATUS_OK) return {};
        return hanare::fail(status,
                            "a queue of %zu bytes at %p: needs 64-byte alignment and more than "
                            "%zu bytes",
                            bytes, memory, hanare::fabric::Fifo::kHeaderBytes);
    });
}

hanare_status hanare_comm_push(hanare_comm* comm, uint32_t task, const hanare_capability* queue,
                               const void* message, size_t bytes, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        Operation push;
        HANARE_TRY(hanare::capi::make_sending(push, Kind::kPush, {task, queue, 0, timeout_ms},
                                              message, bytes));
        return opened.communicator->carry_out(task, push);
    });
}

hanare_status hanare_comm_pop(hanare_comm* comm, uint32_t task, const hanare_capability* queue,
                              void* room, size_t room_bytes, int timeout_ms, size_t* bytes) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("bytes", bytes));
        Operation pop;
        HANARE_TRY(hanare::capi::make_fetching(pop, Kind::kPop, {task, queue, 0, timeout_ms}, room,
                                               room_bytes));
        HANARE_TRY(opened.communicator->carry_out(task, pop));
        *bytes = pop.value();
        return {};
    });
}

}  // extern "C"
