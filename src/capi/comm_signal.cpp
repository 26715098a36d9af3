// SPDX-License-Identifier: Apache-2.0
//
// hanare_comm_*: signals to tasks, and the handlers that run for them.
#include "capi/comm.hpp"
#include "fabric/signal_queue.hpp"
#include "job/word_wait.hpp"

static_assert(HANARE_SIGNAL_HANDLERS == hanare::fabric::SignalQueue::kHandlersMax);
static_assert(HANARE_SIGNAL_BYTES_MAX == hanare::fabric::SignalQueue::kArgumentBytesMax);
static_assert(HANARE_RIGHT_SIGNAL == hanare::fabric::kSignal);

namespace hanare::capi {
namespace {

// Of signals that were not handled yet.
constexpr size_t kQueueBytes = 256 * 1024;

void call_handler(void* context, std::span<const std::byte> arguments) {
    const auto& entry = *static_cast<const SignalHandler*>(context);
    entry.handler(entry.context, arguments.data(), arguments.size());
}

// Made when it is first wanted.
Result<fabric::SignalQueue*> signals_of(hanare_comm& comm) {
    const std::lock_guard guard(comm.signals_lock);
    if (comm.signals == nullptr) {
        HANARE_TRY_ASSIGN(comm.signals, fabric::SignalQueue::open(
                                            comm.communicator->exposures().regions(), kQueueBytes));
    }
    return comm.signals.get();
}

Result<void> check_number(uint32_t number) {
    if (number < HANARE_SIGNAL_HANDLERS) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "signal handler %u; there are 0 to %d", number,
                HANARE_SIGNAL_HANDLERS - 1);
}

Result<void> set_handler(hanare_comm& comm, uint32_t number, hanare_signal_handler handler,
                         void* context) {
    HANARE_TRY(check_number(number));
    HANARE_TRY_ASSIGN(fabric::SignalQueue* const signals, signals_of(comm));
    if (handler == nullptr) {
        signals->set_handler(number, nullptr, nullptr);
        return {};
    }
    const std::lock_guard guard(comm.signals_lock);
    comm.signal_handlers.push_back(
        std::make_unique<SignalHandler>(SignalHandler{handler, context}));
    signals->set_handler(number, call_handler, comm.signal_handlers.back().get());
    return {};
}

Result<void> signal(hanare_comm& comm, const Target& target, uint32_t handler,
                    const void* arguments, size_t bytes) {
    HANARE_TRY(check_number(handler));
    HANARE_TRY(check_pointer("arguments", arguments, bytes));
    if (bytes > HANARE_SIGNAL_BYTES_MAX) {
        return fail(HANARE_STATUS_OUT_OF_RANGE, "a signal with %zu bytes; allowed are %d", bytes,
                    HANARE_SIGNAL_BYTES_MAX);
    }
    std::array<std::byte, fabric::kMessageBytesMax> message;
    const fabric::SignalQueue::Header header = {.handler = handler};
    std::memcpy(message.data(), &header, sizeof header);
    if (bytes != 0) std::memcpy(message.data() + sizeof header, arguments, bytes);
    fabric::Operation operation;
    HANARE_TRY(aim(operation, fabric::Kind::kSignal, target));
    operation.source = std::span(message).first(sizeof header + bytes);
    return comm.communicator->carry_out(target.task, operation);
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::on_comm;
using hanare::capi::signals_of;

extern "C" {

hanare_status hanare_comm_signal_capability(hanare_comm* comm, hanare_capability* capability) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY(hanare::capi::check_pointer("capability", capability));
        HANARE_TRY_ASSIGN(const auto* const signals, signals_of(opened));
        *capability = std::bit_cast<hanare_capability>(signals->capability());
        return {};
    });
}

hanare_status hanare_comm_set_signal_handler(hanare_comm* comm, uint32_t number,
                                             hanare_signal_handler handler, void* context) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return hanare::capi::set_handler(opened, number, handler, context);
    });
}

hanare_status hanare_comm_interrupt_this_thread(hanare_comm* comm, int enabled) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(auto* const signals, signals_of(opened));
        if (enabled != 0) return signals->interrupt_this_thread();
        signals->stop_interrupting();
        return {};
    });
}

hanare_status hanare_comm_poll_signals(hanare_comm* comm, uint32_t* handled) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(auto* const signals, signals_of(opened));
        const uint32_t count = signals->poll();
        if (handled != nullptr) *handled = count;
        return {};
    });
}

hanare_status hanare_comm_wait_signal(hanare_comm* comm, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(auto* const signals, signals_of(opened));
        const hanare_status status = signals->wait(hanare::job::deadline_after(timeout_ms));
        if (status == HANARE_STATUS_OK) return {};
        return hanare::fail(status, "no signal within %d ms", timeout_ms);
    });
}

hanare_status hanare_comm_signal(hanare_comm* comm, uint32_t task,
                                 const hanare_capability* capability, uint32_t handler,
                                 const void* arguments, size_t bytes, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return hanare::capi::signal(
            opened, {.task = task, .capability = capability, .offset = 0, .timeout_ms = timeout_ms},
            handler, arguments, bytes);
    });
}

}  // extern "C"
