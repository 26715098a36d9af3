// SPDX-License-Identifier: Apache-2.0
//
// RemoteStore: blocks in the memory of one memory server (DLM 2009, section 3: remote memory as
// main memory, by a server process there and sockets).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "remote/block_seals.hpp"
#include "remote/bounce_ring.hpp"
#include "remote/server.hpp"
#include "store/extents.hpp"
#include "store/store.hpp"
#include "sys/file.hpp"
#include "sys/lock.hpp"

namespace hanare::remote {

class RemoteStore final : public store::Store {
public:
    struct Options {
        uint64_t size_bytes = 0;  // leased at once when not 0, and then the limit
        // Of one channel, or of what faulting threads have started.
        size_t in_flight_bytes_max = 4u << 20;
        // What is kept there can be read and changed by nobody but this process.
        bool is_sealed = false;
    };
    static Result<std::unique_ptr<Store>> open(std::unique_ptr<Server> server,
                                               const Options& options);

    Result<uint64_t> reserve(uint64_t bytes) override;
    void release(uint64_t offset, uint64_t bytes) noexcept override;
    Result<store::SlotTable> open_slots(uint64_t slot_bytes) override;
    hanare_status cover(uint64_t end) noexcept override;
    bool renew(uint64_t offset, uint64_t bytes) noexcept override;
    Result<void> take_part(uint32_t row) override { return server_->take_part(row); }
    bool fence(uint64_t rows) noexcept override { return server_->fence(rows); }
    bool prepare_fork(uint32_t row) noexcept override { return server_->prepare_fork(row); }
    void finish_fork() noexcept override { server_->finish_fork(); }
    void become_child() noexcept override { server_->become_child(); }
    hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept override;
    hanare_status write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept override;
    Result<std::unique_ptr<store::IoChannel>> open_channel() override;
    std::unique_ptr<store::SharedTransfers> open_transfers(
        store::TransferCapacity capacity) override;
    std::string describe() const override;
    bool authenticates() const noexcept override { return seals_ != nullptr; }
    int last_errno() const noexcept override { return last_errno_.load(); }
    const char* trouble() const noexcept override { return server_->trouble(); }
    bool wants_to_leave() noexcept override { return server_->is_draining(); }
    bool has_asked_to_leave() noexcept override { return server_->is_known_to_drain(); }
    void give_up() noexcept override { server_->end(); }
    void abandon_in_child() noexcept override;

    Server& server() noexcept { return *server_; }
    size_t in_flight_bytes_max() const noexcept { return options_.in_flight_bytes_max; }
    // nullptr: blocks are kept as they are.
    BlockSeals* seals() noexcept { return seals_.get(); }
    // What came back; CORRUPT: that is not what was written.
    hanare_status open_seals(uint64_t offset, std::byte* data, size_t bytes) noexcept;
    // The store's status for an operation's; whatever is wrong with one, the server is lost.
    hanare_status note(hanare_status status) noexcept;

private:
    RemoteStore(std::unique_ptr<Server> server, const Options& options);
    hanare_status transfer(fabric::Kind kind, uint64_t offset, std::byte* memory,
                           size_t bytes) noexcept;
    hanare_status write_sealed(uint64_t offset, const std::byte* memory, size_t bytes) noexcept;
    class Buffer;
    uint64_t managed_bytes() const noexcept;
    std::unexpected<Error> no_room(uint64_t wanted_bytes) const;

    const Options options_;
    const std::unique_ptr<Server> server_;
    std::unique_ptr<BlockSeals> seals_;
    // For sealed writes that are waited for; one bit of what is in use for each.
    static constexpr size_t kBufferBytes = 64u << 10;
    static constexpr uint32_t kBuffers = 16;
    sys::Mapping buffers_;
    std::atomic<uint32_t> used_buffers_{0};
    std::atomic<int> last_errno_{0};
    sys::FileDescriptor life_;  // of the slot table

    sys::RankedLock lock_{sys::LockRank::kLeaf};
    store::ExtentAllocator extents_ HANARE_GUARDED_BY(lock_);
};

}  // namespace hanare::remote
