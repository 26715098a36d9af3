// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_store.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/units.hpp"
#include "remote/remote_channel.hpp"
#include "remote/remote_transfers.hpp"
#include "sys/futex.hpp"
#include "sys/process_usage.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::remote {
namespace {

constexpr uint32_t kPause_us = 50;

}  // namespace

Result<std::unique_ptr<store::Store>> RemoteStore::open(std::unique_ptr<Server> server,
                                                        const Options& options) {
    if (options.size_bytes != 0 && options.size_bytes < kOsPageBytes) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "store size %s is too small: at least %s",
                    format_size(options.size_bytes).c_str(), format_size(kOsPageBytes).c_str());
    }
    auto store = std::unique_ptr<RemoteStore>(new RemoteStore(std::move(server), options));
    if (options.is_sealed) {
        HANARE_TRY_ASSIGN(store->seals_,
                          BlockSeals::make(store->managed_bytes(), BlockSeals::kUnitBytesMin));
        HANARE_TRY_ASSIGN(store->buffers_,
                          sys::Mapping::reserve(kBuffers * kBufferBytes, kOsPageBytes));
    }
    if (options.size_bytes == 0) return store;
    const hanare_status status = store->cover(store->managed_bytes());
    if (status == HANARE_STATUS_STORE_FULL) return store->no_room(options.size_bytes);
    if (status == HANARE_STATUS_OK) return store;
    return fail(HANARE_STATUS_STORE_UNAVAILABLE, "%s", store->trouble());
}

RemoteStore::RemoteStore(std::unique_ptr<Server> server, const Options& options)
    : options_(options), server_(std::move(server)), extents_(managed_bytes()) {}

// Without a size as much as the server has, of which others may have a part.
uint64_t RemoteStore::managed_bytes() const noexcept {
    return round_down(options_.size_bytes != 0 ? options_.size_bytes : server_->total_bytes(),
                      kOsPageBytes);
}

std::unexpected<Error> RemoteStore::no_room(uint64_t wanted_bytes) const {
    return fail(
        HANARE_STATUS_STORE_FULL,
        "memory server %s does not lend this pool %s more, which has %s of it: others, its quota, "
        "a drain or the store's size stand in the way; `hanare status` says more",
        server_->address().c_str(), format_size(wanted_bytes).c_str(),
        format_size(server_->bytes()).c_str());
}

Result<uint64_t> RemoteStore::reserve(uint64_t bytes) {
    if (bytes == 0 || bytes > managed_bytes()) return no_room(bytes);
    const uint64_t extent_bytes = round_up(bytes, kOsPageBytes);
    std::optional<uint64_t> offset;
    {
        const sys::SignalBlock block;
        const sys::LockGuard guard(lock_);
        offset = extents_.reserve(extent_bytes);
    }
    if (!offset) return no_room(bytes);
    const hanare_status status = cover(*offset + extent_bytes);
    if (status == HANARE_STATUS_OK) return *offset;
    release(*offset, bytes);
    if (status == HANARE_STATUS_STORE_FULL) return no_room(bytes);
    return fail(status, "%s", trouble());
}

// The server's memory stays this store's.
void RemoteStore::release(uint64_t offset, uint64_t bytes) noexcept {
    if (seals_ != nullptr) seals_->release(offset, round_up(bytes, kOsPageBytes));
    const sys::SignalBlock block;
    const sys::LockGuard guard(lock_);
    extents_.release(offset, round_up(bytes, kOsPageBytes));
}

Result<store::SlotTable> RemoteStore::open_slots(uint64_t slot_bytes) {
    if (!server_->has_children()) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "this process cannot share the memory of a server with its children");
    }
    // Where addresses are limited, the table takes one in so many of them.
    constexpr uint64_t kAddressesShare = 16;
    const uint64_t slots =
        std::min({managed_bytes() / slot_bytes, uint64_t{store::SlotTable::kCapacityMax},
                  sys::free_address_bytes() / kAddressesShare / sizeof(uint64_t)});
    if (slots == 0) return no_room(slot_bytes);
    HANARE_TRY_ASSIGN(life_, sys::create_shared_memory(kOsPageBytes));
    const auto fence = [](void* store, uint64_t rows) noexcept {
        return static_cast<RemoteStore*>(store)->fence(rows);
    };
    HANARE_TRY_ASSIGN(auto table,
                      store::SlotTable::create(static_cast<uint32_t>(slots), life_.number(),
                                               {.function = fence, .context = this},
                                               store::SlotTable::Spread::kDense));
    HANARE_TRY(take_part(table.row()));
    return table;
}

hanare_status RemoteStore::cover(uint64_t end) noexcept {
    if (end > managed_bytes()) return HANARE_STATUS_STORE_FULL;
    return end <= server_->bytes() ? HANARE_STATUS_OK : server_->grow(end);
}

// What others have written there since is not what was sealed here.
bool RemoteStore::renew(uint64_t offset, uint64_t bytes) noexcept {
    if (seals_ == nullptr) return false;
    seals_->release(offset, bytes);
    return true;
}

hanare_status RemoteStore::note(hanare_status status) noexcept {
    if (status == HANARE_STATUS_OK) return HANARE_STATUS_OK;
    server_->note_failure(status);
    last_errno_.store(status == HANARE_STATUS_TIMEOUT ? ETIMEDOUT : ECONNRESET);
    return HANARE_STATUS_STORE_IO;
}

// Held until it goes out of scope; who finds none waits until one is free, which takes no longer
// than a write.
class RemoteStore::Buffer {
public:
    explicit Buffer(RemoteStore& store) noexcept : store_(store) {
        for (;;) {
            uint32_t used = store_.used_buffers_.load();
            const auto number = static_cast<uint32_t>(std::countr_one(used));
            if (number >= kBuffers) {
                sys::yield_for_us(kPause_us);
                continue;
            }
            bit_ = uint32_t{1} << number;
            memory_ = store_.buffers_.address() + number * kBufferBytes;
            if (store_.used_buffers_.compare_exchange_strong(used, used | bit_)) return;
        }
    }
    ~Buffer() { store_.used_buffers_.fetch_and(~bit_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::byte* memory() const noexcept { return memory_; }

private:
    RemoteStore& store_;
    uint32_t bit_ = 0;
    std::byte* memory_ = nullptr;
};

hanare_status RemoteStore::transfer(fabric::Kind kind, uint64_t offset, std::byte* memory,
                                    size_t bytes) noexcept {
    while (bytes != 0) {
        const Server::Place place = server_->place_of(offset);
        const size_t piece = std::min<size_t>(bytes, place.bytes);
        if (piece == 0) return note(HANARE_STATUS_OUT_OF_RANGE);
        fabric::Operation operation;
        operation.kind = kind;
        operation.capability = place.capability;
        operation.offset = place.offset;
        if (kind == fabric::Kind::kGet) {
            operation.destination = {memory, piece};
        } else {
            operation.source = {memory, piece};
        }
        server_->link(Use::kFaults).post(operation);
        const hanare_status status = server_->wait(Use::kFaults, operation);
        if (status != HANARE_STATUS_OK) return note(status);
        offset += piece;
        memory += piece;
        bytes -= piece;
    }
    return HANARE_STATUS_OK;
}

hanare_status RemoteStore::read(uint64_t offset, std::byte* memory, size_t bytes) noexcept {
    const hanare_status status = transfer(fabric::Kind::kGet, offset, memory, bytes);
    return status == HANARE_STATUS_OK ? open_seals(offset, memory, bytes) : status;
}

hanare_status RemoteStore::write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept {
    if (seals_ != nullptr) return write_sealed(offset, memory, bytes);
    return transfer(fabric::Kind::kPut, offset, const_cast<std::byte*>(memory), bytes);
}

hanare_status RemoteStore::write_sealed(uint64_t offset, const std::byte* memory,
                                        size_t bytes) noexcept {
    const Buffer buffer(*this);
    for (size_t done = 0; done < bytes;) {
        const size_t piece = std::min(bytes - done, kBufferBytes);
        if (!seals_->seal(offset + done, memory + done, buffer.memory(), piece)) {
            return note(HANARE_STATUS_LIMIT);
        }
        const hanare_status status =
            transfer(fabric::Kind::kPut, offset + done, buffer.memory(), piece);
        if (status != HANARE_STATUS_OK) return status;
        done += piece;
    }
    return HANARE_STATUS_OK;
}

hanare_status RemoteStore::open_seals(uint64_t offset, std::byte* data, size_t bytes) noexcept {
    if (seals_ == nullptr || seals_->open(offset, data, bytes)) return HANARE_STATUS_OK;
    return HANARE_STATUS_CORRUPT;
}

Result<std::unique_ptr<store::IoChannel>> RemoteStore::open_channel() {
    return RemoteChannel::open(*this);
}

std::unique_ptr<store::SharedTransfers> RemoteStore::open_transfers(
    store::TransferCapacity capacity) {
    if (capacity == store::TransferCapacity::kOne) return std::make_unique<SingleTransfer>(*this);
    // Faults write what finds no room there themselves.
    auto bounces = Flights::make_bounces(*this, 2 * Flights::kBounceBytes);
    if (!bounces) return nullptr;
    return std::make_unique<RemoteTransfers>(*this, std::move(*bounces));
}

std::string RemoteStore::describe() const {
    std::string text = "memory server " + server_->address();
    if (options_.size_bytes != 0) text += ", " + format_size(managed_bytes()) + " leased";
    if (seals_ != nullptr) text += ", blocks sealed";
    return text;
}

void RemoteStore::abandon_in_child() noexcept { server_->abandon_in_child(); }

}  // namespace hanare::remote
