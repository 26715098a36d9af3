// SPDX-License-Identifier: Apache-2.0
//
// hanare_comm_*: operations that are posted, and waited for later.
#include "capi/comm.hpp"

struct hanare_comm_operation {
    hanare::job::Posted posted;
    hanare_comm* comm = nullptr;
    hanare_comm_callback callback = nullptr;
    void* context = nullptr;
};

namespace hanare::capi {
namespace {

void call_back(void* context, job::Posted&, hanare_status status) {
    auto* const operation = static_cast<hanare_comm_operation*>(context);
    operation->callback(operation, status, operation->context);
}

// Makes the operation with `fill`, and posts it.
template <typename Fill>
hanare_status post(const char* function, hanare_comm* comm, uint32_t task,
                   const hanare_comm_post_options* given, hanare_comm_operation** operation,
                   Fill fill) noexcept {
    return on_comm(function, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(check_pointer("operation", operation));
        HANARE_TRY_ASSIGN(const auto options, copy_options(function, given));
        auto made = std::make_unique<hanare_comm_operation>();
        made->comm = comm;
        made->callback = options.callback;
        made->context = options.context;
        if (options.callback != nullptr) made->posted.callback = call_back;
        made->posted.context = made.get();
        HANARE_TRY(fill(made->posted.operation));
        HANARE_TRY(opened.communicator->post(task, made->posted));
        opened.operations.fetch_add(1);
        *operation = made.release();
        return {};
    });
}

template <typename Body>
hanare_status on_operation(const char* function, hanare_comm_operation* operation,
                           Body body) noexcept {
    if (operation == nullptr) return report(null_argument(function, "operation"));
    return on_comm(function, operation->comm,
                   [&](hanare_comm& comm) { return body(*operation, comm); });
}

Result<void> check_complete(const hanare_comm_operation& operation) {
    if (operation.posted.is_complete()) return {};
    return fail(HANARE_STATUS_BUSY, "the operation is not complete");
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::on_comm;
using hanare::capi::on_operation;
using hanare::fabric::Kind;
using hanare::fabric::Operation;

extern "C" {

hanare_status hanare_comm_post_put(hanare_comm* comm, uint32_t task,
                                   const hanare_capability* capability, uint64_t offset,
                                   const void* source, size_t bytes, int timeout_ms,
                                   const hanare_comm_post_options* options,
                                   hanare_comm_operation** operation) {
    return hanare::capi::post(__func__, comm, task, options, operation, [&](Operation& put) {
        return hanare::capi::make_sending(put, Kind::kPut, {task, capability, offset, timeout_ms},
                                          source, bytes);
    });
}

hanare_status hanare_comm_post_get(hanare_comm* comm, uint32_t task,
                                   const hanare_capability* capability, uint64_t offset,
                                   void* destination, size_t bytes, int timeout_ms,
                                   const hanare_comm_post_options* options,
                                   hanare_comm_operation** operation) {
    return hanare::capi::post(__func__, comm, task, options, operation, [&](Operation& get) {
        return hanare::capi::make_fetching(get, Kind::kGet, {task, capability, offset, timeout_ms},
                                           destination, bytes);
    });
}

hanare_status hanare_comm_post_fetch_op(hanare_comm* comm, uint32_t task,
                                        const hanare_capability* capability, uint64_t offset,
                                        hanare_fetch_op op, uint32_t width, uint64_t operand,
                                        uint64_t compare, int timeout_ms,
                                        const hanare_comm_post_options* options,
                                        hanare_comm_operation** operation) {
    return hanare::capi::post(__func__, comm, task, options, operation, [&](Operation& fetch) {
        return hanare::capi::make_fetch(fetch, {task, capability, offset, timeout_ms}, op, width,
                                        operand, compare);
    });
}

hanare_status hanare_comm_post_push(hanare_comm* comm, uint32_t task,
                                    const hanare_capability* queue, const void* message,
                                    size_t bytes, int timeout_ms,
                                    const hanare_comm_post_options* options,
                                    hanare_comm_operation** operation) {
    return hanare::capi::post(__func__, comm, task, options, operation, [&](Operation& push) {
        return hanare::capi::make_sending(push, Kind::kPush, {task, queue, 0, timeout_ms}, message,
                                          bytes);
    });
}

hanare_status hanare_comm_post_pop(hanare_comm* comm, uint32_t task, const hanare_capability* queue,
                                   void* room, size_t room_bytes, int timeout_ms,
                                   const hanare_comm_post_options* options,
                                   hanare_comm_operation** operation) {
    return hanare::capi::post(__func__, comm, task, options, operation, [&](Operation& pop) {
        return hanare::capi::make_fetching(pop, Kind::kPop, {task, queue, 0, timeout_ms}, room,
                                           room_bytes);
    });
}

hanare_status hanare_comm_test(hanare_comm_operation* operation, int* complete) {
    return on_operation(
        __func__, operation, [&](hanare_comm_operation& posted, hanare_comm& comm) -> Result<void> {
            HANARE_TRY(hanare::capi::check_pointer("complete", complete));
            HANARE_TRY_ASSIGN(const bool is_complete, comm.communicator->test(posted.posted));
            *complete = is_complete ? 1 : 0;
            return {};
        });
}

hanare_status hanare_comm_wait(hanare_comm_operation* operation) {
    return on_operation(__func__, operation, [](hanare_comm_operation& posted, hanare_comm& comm) {
        return comm.communicator->wait(posted.posted);
    });
}

hanare_status hanare_comm_value(hanare_comm_operation* operation, uint64_t* value) {
    return on_operation(__func__, operation,
                        [&](hanare_comm_operation& posted, hanare_comm&) -> Result<void> {
                            HANARE_TRY(hanare::capi::check_pointer("value", value));
                            HANARE_TRY(hanare::capi::check_complete(posted));
                            *value = posted.posted.operation.value();
                            return {};
                        });
}

hanare_status hanare_comm_operation_free(hanare_comm_operation* operation) {
    return on_operation(__func__, operation,
                        [](hanare_comm_operation& posted, hanare_comm& comm) -> Result<void> {
                            HANARE_TRY(hanare::capi::check_complete(posted));
                            delete &posted;
                            comm.operations.fetch_sub(1);
                            return {};
                        });
}

hanare_status hanare_comm_progress(hanare_comm* comm) {
    return on_comm(__func__, comm,
                   [](hanare_comm& opened) { return opened.communicator->progress(); });
}

hanare_status hanare_comm_flush(hanare_comm* comm, uint32_t task, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.communicator->flush(task, hanare::job::deadline_after(timeout_ms));
    });
}

hanare_status hanare_comm_flush_all(hanare_comm* comm, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.communicator->flush_all(hanare::job::deadline_after(timeout_ms));
    });
}

hanare_status hanare_comm_fence(hanare_comm* comm, uint32_t task) {
    return on_comm(__func__, comm,
                   [&](hanare_comm& opened) { return opened.communicator->fence(task); });
}

}  // extern "C"
