// SPDX-License-Identifier: Apache-2.0
//
// The file store: one unnamed file in a directory, so that the kernel takes the room back however
// the process ends.  Every extent's disk blocks are allocated when it is reserved: a full disk is
// then found by hanare_alloc and not by a write-back that has nowhere to go.
//
// Threads: see store.hpp.  lock_ protects the extents and the file's length; transfers take no
// lock.
#pragma once

#include "store/extents.hpp"
#include "store/file_channel.hpp"
#include "store/store.hpp"
#include "sys/lock.hpp"

namespace hanare::store {

class FileStore final : public Store {
public:
    // `file` is open in options.directory and empty.
    FileStore(const FileStoreOptions& options, sys::FileDescriptor file);

    // The second half of opening: everything that can fail.
    Result<void> prepare();

    Result<uint64_t> reserve(uint64_t bytes) override;
    void release(uint64_t offset, uint64_t bytes) noexcept override;
    Result<SlotTable> open_slots(uint64_t slot_bytes) override;
    hanare_status cover(uint64_t end) noexcept override;
    hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept override;
    hanare_status write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept override;
    Result<std::unique_ptr<IoChannel>> open_channel() override;
    std::unique_ptr<SharedTransfers> open_transfers(TransferCapacity capacity) override;
    std::string describe() const override;
    int last_errno() const noexcept override { return file_.errors.last(); }
    void abandon_in_child() noexcept override;

private:
    Result<void> refuse_memory() const;
    Result<uint64_t> reserve_extent(uint64_t bytes, uint64_t wanted_bytes);
    void release_extent(uint64_t offset, uint64_t bytes) noexcept;
    Result<void> allocate(uint64_t offset, uint64_t bytes);
    Result<void> allocate_lazily(uint64_t offset, uint64_t bytes);
    std::unexpected<Error> no_room(uint64_t wanted_bytes, int os_errno) const;
    std::unexpected<Error> no_uring() const;
    std::atomic<uint64_t> covered_bytes_{0};  // the file is that long
    bool room_for(uint64_t bytes) const;

    const FileStoreOptions options_;
    StoreFile file_;
    int direct_errno_ = 0;              // why transfers use the page cache
    std::atomic<int> uring_errno_ = 0;  // why channels do without io_uring
    std::atomic<bool> lazy_ = false;    // the file system cannot allocate ahead

    sys::RankedLock lock_{sys::LockRank::kLeaf};
    ExtentAllocator extents_ HANARE_GUARDED_BY(lock_);
    uint64_t reserved_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t length_bytes_ HANARE_GUARDED_BY(lock_) = 0;  // when lazy_
};

}  // namespace hanare::store
