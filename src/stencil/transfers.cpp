// SPDX-License-Identifier: Apache-2.0
#include "stencil/transfers.hpp"

#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <vector>

#include "sys/aio.hpp"
#include "sys/event.hpp"
#include "sys/uring.hpp"

namespace hanare::stencil {

namespace {

// Slots for what is in flight: the kernel's tags are their numbers.
class Slots {
public:
    Slots() {
        for (size_t i = Transfers::kInFlightMax; i-- > 0;) free_.push_back(i);
    }
    size_t take(const Transfer& transfer) {
        const size_t slot = free_.back();
        free_.pop_back();
        transfers_[slot] = transfer;
        return slot;
    }
    Transfer put_back(size_t slot) {
        free_.push_back(slot);
        return transfers_[slot];
    }
    bool is_empty() const { return free_.size() == Transfers::kInFlightMax; }

private:
    std::array<Transfer, Transfers::kInFlightMax> transfers_;
    std::vector<size_t> free_;
};

// What the kernel has moved only in part, or not for a reason that passes, is done here and now.
int finish(const Storage& storage, const Transfer& transfer, int64_t result) {
    const size_t done = result > 0 ? static_cast<size_t>(result) : 0;
    if (done == transfer.bytes) return 0;
    const bool is_lasting =
        result < 0 && result != -EAGAIN && result != -EINTR && result != -ECANCELED;
    if (is_lasting) return static_cast<int>(-result);
    return storage.transfer(transfer.writes, transfer.offset + done, transfer.memory + done,
                            transfer.bytes - done);
}

class BlockingTransfers final : public Transfers {
public:
    BlockingTransfers(const Storage& storage, sys::EventFd event)
        : storage_(storage), event_(std::move(event)) {}

    void start(const Transfer& transfer) override {
        done_.push_back({transfer.tag, storage_.transfer(transfer.writes, transfer.offset,
                                                         transfer.memory, transfer.bytes)});
    }
    bool collect(Completion& completion, bool may_sleep) override {
        if (done_.empty()) {
            if (!may_sleep) return false;
            sys::wait_until_readable(event_.number(), -1, -1);
            event_.clear();
            return false;
        }
        completion = done_.front();
        done_.pop_front();
        return true;
    }
    void wake() noexcept override { event_.post(); }

private:
    const Storage& storage_;
    sys::EventFd event_;
    std::deque<Completion> done_;
};

class UringTransfers final : public Transfers {
public:
    UringTransfers(const Storage& storage, std::unique_ptr<sys::Uring> ring, sys::EventFd event)
        : storage_(storage), ring_(std::move(ring)), event_(std::move(event)) {}
    ~UringTransfers() override {
        Completion completion;
        while (!slots_.is_empty()) collect(completion, true);
    }

    void start(const Transfer& transfer) override {
        const size_t slot = slots_.take(transfer);
        if (transfer.writes) {
            ring_->queue_write(transfer.offset, transfer.memory, transfer.bytes, slot);
        } else {
            ring_->queue_read(transfer.offset, transfer.memory, transfer.bytes, slot);
        }
    }
    bool collect(Completion& completion, bool may_sleep) override {
        if (take(completion)) return true;
        if (was_woken_) {  // whoever did may have had something to start
            was_woken_ = false;
            return false;
        }
        if (!may_sleep) {
            ring_->submit();
            return take(completion);
        }
        if (!is_polled_) {
            is_polled_ = true;
            ring_->queue_poll(event_.number(), kEventTag);
        }
        ring_->submit_and_wait(-1);
        return take(completion);
    }
    void wake() noexcept override { event_.post(); }

private:
    static constexpr uint64_t kEventTag = kInFlightMax;

    bool take(Completion& completion) {
        sys::Uring::Completion next;
        while (ring_->next_completion(next)) {
            if (next.tag == kEventTag) {
                is_polled_ = false;
                was_woken_ = true;
                event_.clear();
                continue;
            }
            const Transfer transfer = slots_.put_back(next.tag);
            completion = {transfer.tag, finish(storage_, transfer, next.result)};
            return true;
        }
        return false;
    }

    const Storage& storage_;
    std::unique_ptr<sys::Uring> ring_;
    sys::EventFd event_;
    Slots slots_;
    bool is_polled_ = false;
    bool was_woken_ = false;
};

class AioTransfers final : public Transfers {
public:
    AioTransfers(const Storage& storage, sys::EventFd event)
        : storage_(storage),
          aio_(sys::Aio::Kind::kMany, storage.file()),
          event_(std::move(event)) {}
    ~AioTransfers() override {
        Completion completion;
        while (!slots_.is_empty()) collect(completion, true);
    }

    void start(const Transfer& transfer) override {
        const size_t slot = slots_.take(transfer);
        const sys::Aio::Transfer one = {transfer.offset, transfer.memory, transfer.bytes, slot,
                                        transfer.writes};
        if (aio_.start(&one, 1) == 1) return;
        refused_.push_back(slot);  // done when it is collected
    }
    bool collect(Completion& completion, bool may_sleep) override {
        if (!refused_.empty()) {
            const Transfer transfer = slots_.put_back(refused_.front());
            refused_.pop_front();
            completion = {transfer.tag, finish(storage_, transfer, 0)};
            return true;
        }
        if (may_sleep && slots_.is_empty()) {
            sys::wait_until_readable(event_.number(), -1, -1);
            event_.clear();
            return false;
        }
        // Somebody who wakes this thread is heard when the next transfer has ended.
        sys::Aio::Completion next;
        if (aio_.collect(&next, 1, may_sleep) == 0) return false;
        const Transfer transfer = slots_.put_back(next.tag);
        completion = {transfer.tag, finish(storage_, transfer, next.result)};
        return true;
    }
    void wake() noexcept override { event_.post(); }

private:
    const Storage& storage_;
    sys::Aio aio_;
    sys::EventFd event_;
    Slots slots_;
    std::deque<size_t> refused_;
};

}  // namespace

Result<std::unique_ptr<Transfers>> Transfers::make(const Storage& storage) {
    HANARE_TRY_ASSIGN(auto event, sys::EventFd::open());
    const hanare_grid_io io = storage.io();
    if (io == HANARE_GRID_IO_AUTO || io == HANARE_GRID_IO_URING) {
        auto ring = sys::Uring::open(2 * kInFlightMax, storage.file());
        if (ring) {
            return std::make_unique<UringTransfers>(storage, std::move(*ring), std::move(event));
        }
        if (io == HANARE_GRID_IO_URING) return std::unexpected(ring.error());
    }
    if (io == HANARE_GRID_IO_AUTO || io == HANARE_GRID_IO_AIO) {
        return std::make_unique<AioTransfers>(storage, std::move(event));
    }
    return std::make_unique<BlockingTransfers>(storage, std::move(event));
}

}  // namespace hanare::stencil
