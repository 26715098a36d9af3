// SPDX-License-Identifier: Apache-2.0
#include "fabric/signal_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <mutex>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/own_thread_id.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

// The one that interrupts: there is one signal for all.
std::atomic<SignalQueue*> interrupting{nullptr};
// So that it is not ended under its feet.
std::atomic<uint32_t> running_handlers{0};
// Of this thread.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint32_t own_handlers = 0;
constexpr uint32_t kYield_us = 50;
// Which thread is interrupted changes; never taken by a handler.
std::mutex changing_thread;

class RunningHandler {
public:
    RunningHandler() noexcept {
        ++own_handlers;
        running_handlers.fetch_add(1);
    }
    ~RunningHandler() {
        running_handlers.fetch_sub(1);
        --own_handlers;
    }
    RunningHandler(const RunningHandler&) = delete;
    RunningHandler& operator=(const RunningHandler&) = delete;
};

int ms_until(uint64_t deadline_ns, uint64_t now_ns) noexcept {
    const uint64_t left_ms = (deadline_ns - now_ns) / kNsPerMs + 1;
    return static_cast<int>(std::min<uint64_t>(left_ms, INT_MAX));
}

}  // namespace

// Of a thread that was interrupted at some time.
struct SignalQueue::EndOfThread {
    bool is_awaited = false;
    ~EndOfThread() {
        if (is_awaited) on_end_of_thread();
    }
};

Result<std::unique_ptr<SignalQueue>> SignalQueue::open(ExposedRegions& regions, size_t bytes) {
    const size_t whole = (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
    HANARE_TRY_ASSIGN(sys::FileDescriptor file, sys::create_shared_memory(whole));
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(whole, kOsPageBytes));
    HANARE_TRY(sys::map_shared(memory, file));
    const std::span<std::byte> all = {memory.address(), memory.bytes()};
    Fifo::format(all);
    HANARE_TRY_ASSIGN(const uint32_t region, regions.expose(all, kSignal, std::move(file)));
    HANARE_TRY_ASSIGN(const Capability capability, regions.capability(region, kSignal));
    return std::unique_ptr<SignalQueue>(
        new SignalQueue(regions, std::move(memory), region, capability));
}

SignalQueue::~SignalQueue() {
    stop_interrupting();
    static_cast<void>(regions_.conceal(region_));
}

hanare_status SignalQueue::set_handler(uint32_t number, Handler handler, void* context) {
    if (number >= kHandlersMax) return HANARE_STATUS_OUT_OF_RANGE;
    const Entry* entry = nullptr;
    if (handler != nullptr) {
        const std::lock_guard guard(lock_);
        entries_.push_back(std::make_unique<Entry>(Entry{handler, context}));
        entry = entries_.back().get();
    }
    handlers_[number].store(entry);
    return HANARE_STATUS_OK;
}

// ---- interrupting

Result<void> SignalQueue::interrupt_this_thread() {
    std::unique_lock guard(changing_thread);
    SignalQueue* nobody = nullptr;
    if (!interrupting.compare_exchange_strong(nobody, this) && nobody != this) {
        return fail(HANARE_STATUS_BUSY, "another queue of signals interrupts this process");
    }
    struct sigaction before = {};
    sigaction(Fifo::kBellSignal, nullptr, &before);
    const bool is_ours = before.sa_handler == on_bell;
    if (!is_ours && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        stop_interrupting();
        return fail(HANARE_STATUS_BUSY, "signal %d, which is to interrupt, has a handler",
                    Fifo::kBellSignal);
    }
    struct sigaction action = {};
    action.sa_handler = on_bell;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(Fifo::kBellSignal, &action, nullptr);
    static thread_local EndOfThread end_of_thread;
    end_of_thread.is_awaited = true;
    thread_.store(sys::own_thread_id());
    hang_bell();
    guard.unlock();
    // What came before.
    poll();
    return {};
}

// The handler stays: a signal that is under way would end the process.
void SignalQueue::stop_interrupting() noexcept {
    thread_.store(0);
    hang_bell();
    SignalQueue* self = this;
    if (!interrupting.compare_exchange_strong(self, nullptr)) return;
    // But for those that this thread itself is in.
    while (running_handlers.load() > own_handlers) {
        sys::yield_for_us(kYield_us);
    }
}

void SignalQueue::on_bell(int) noexcept {
    const int saved_errno = errno;
    {
        const RunningHandler running;
        if (SignalQueue* const queue = interrupting.load(); queue != nullptr) {
            queue->hang_bell();
            queue->run_handlers();
        }
    }
    errno = saved_errno;
}

// Its number may be given to another thread, which expects no handlers.
void SignalQueue::on_end_of_thread() noexcept {
    const std::lock_guard guard(changing_thread);
    const RunningHandler running;  // so that the queue stays
    SignalQueue* queue = interrupting.load();
    uint32_t own = sys::own_thread_id();
    if (queue == nullptr || !queue->thread_.compare_exchange_strong(own, 0)) return;
    queue->hang_bell();
    interrupting.compare_exchange_strong(queue, nullptr);
}

void SignalQueue::hang_bell() noexcept {
    const uint32_t thread = thread_.load();
    queue_.hang_bell(thread != 0 ? Fifo::Bell::kThread : Fifo::Bell::kNobody, thread);
}

// ---- running handlers

void SignalQueue::run_handler(std::span<const std::byte> message) noexcept {
    Header header;
    if (message.size() < sizeof header) return;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.handler >= kHandlersMax) return;
    const Entry* const entry = handlers_[header.handler].load();
    if (entry != nullptr) entry->handler(entry->context, message.subspan(sizeof header));
}

uint32_t SignalQueue::run_handlers() noexcept {
    std::array<std::byte, kMessageBytesMax> message;
    uint32_t count = 0;
    size_t bytes = 0;
    for (; queue_.pop(message, bytes) == HANARE_STATUS_OK; ++count) {
        run_handler(std::span(message).first(bytes));
        handled_.fetch_add(1);
    }
    return count;
}

// Handlers of one thread run one after the other, in the order of the messages.
uint32_t SignalQueue::poll() noexcept {
    uint32_t count = 0;
    if (!queue_.is_empty()) {
        if (thread_.load(std::memory_order_relaxed) == 0) {
            count = run_handlers();
        } else {
            const sys::SignalBlockButFaults one_after_the_other;
            count = run_handlers();
        }
    }
    noticed_.store(handled_.load());
    return count;
}

// Also what interrupted this thread on the way here counts.
bool SignalQueue::has_handled() noexcept {
    const uint32_t noticed = noticed_.load();
    poll();
    return noticed_.load() != noticed;
}

hanare_status SignalQueue::wait(uint64_t deadline_ns) noexcept {
    hanare_status status = HANARE_STATUS_TIMEOUT;
    for (;;) {
        queue_.hang_bell(Fifo::Bell::kSleeper);
        if (has_handled()) {
            status = HANARE_STATUS_OK;
            break;
        }
        const uint64_t now_ns = sys::now_ns();
        if (now_ns >= deadline_ns) break;
        if (!queue_.is_empty()) {
            // It came just now.
            sys::yield_for_us(kYield_us);
        } else {
            queue_.sleep(deadline_ns == UINT64_MAX ? -1 : ms_until(deadline_ns, now_ns));
        }
    }
    hang_bell();
    // What came while the bell hung for a sleeper that did not sleep.
    if (thread_.load() != 0 && has_handled()) status = HANARE_STATUS_OK;
    return status;
}

}  // namespace hanare::fabric
