// SPDX-License-Identifier: Apache-2.0
//
// Store: where absent blocks live.  A store is a flat range of bytes addressed by offset; the pager
// reserves an extent per region and keeps block i of a region at extent + i * block_bytes.
// Checksums are the pager's: a store only moves bytes, unless it authenticates them itself.
//
// Three ways in:
//   read() and write()   synchronous, any thread, called from fault handlers: they neither
//                        allocate, nor throw, nor take a lock that user code can hold.
//   IoChannel            asynchronous, used by one thread (the pool's keeper) for read-ahead and
//                        write-back; only notify() may be called by other threads and handlers.
//   SharedTransfers      asynchronous, started and completed by whoever faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "store/slot_table.hpp"
#include "sys/poll_set.hpp"

namespace hanare::store {

enum class IoKind : uint8_t { kRead, kWrite };

// One asynchronous transfer.  The caller owns it and its memory until it is completed.  Offset,
// memory and bytes are multiples of 4 KiB.
struct IoRequest {
    IoKind kind = IoKind::kRead;
    hanare_status status = HANARE_STATUS_OK;  // set at completion
    uint64_t offset = 0;
    std::byte* memory = nullptr;
    size_t bytes = 0;
    size_t done_bytes = 0;      // the channel's: progress of a short transfer
    IoRequest* next = nullptr;  // the channel's: list of completed requests
};

class IoChannel {
public:
    // In flight in one channel, unless FileStoreOptions says otherwise.
    static constexpr size_t kInFlightBytesMax = 32u << 20;

    virtual ~IoChannel() = default;

    // Starts a transfer, or returns false when as much is in flight as the channel allows; try
    // again after a completion.
    virtual bool submit(IoRequest& request) noexcept = 0;
    // Hands the operating system what submit() has gathered; wait() does so, too.
    virtual void flush() noexcept = 0;
    // The next completed transfer, nullptr when there is none now.  Never waits.
    virtual IoRequest* next_completed() noexcept = 0;
    // Whether it has one without asking the operating system, as where transfers are synchronous.
    virtual bool has_completed() const noexcept = 0;
    // Returns when a transfer is completed, notify() was called since the last wait, or
    // `timeout_ms` has passed (negative: no limit).
    virtual void wait(int timeout_ms) noexcept = 0;
    // Ends the current or next wait().  Any thread, async-signal-safe.
    virtual void notify() noexcept = 0;
    // From now on wait() returns, too, when this descriptor is readable, until take_watched() has
    // been asked; -1: none any more.  By the thread that waits.
    virtual void watch(int descriptor) noexcept = 0;
    // Whether it may have become readable since the last call.  Never waits.
    virtual bool take_watched() noexcept = 0;
    // Instead of wait(), for who waits for several channels: adds what it would wait for, or
    // returns false where it would not; end_wait() when that is over.  Transfers that are in flight
    // have to be asked for (next_completed()) every kLookMs, since their time may be limited.
    static constexpr int kLookMs = 50;
    virtual bool begin_wait(sys::PollSet& set) noexcept = 0;
    virtual void end_wait() noexcept {}
    // Transfers started and not yet returned by next_completed().
    virtual size_t in_flight() const noexcept = 0;
};

// Asynchronous transfers that belong to no thread: any may start them, fault handlers included, and
// any may complete them, one at a time.  Neither allocates nor throws, and signals are blocked
// while a lock is held.
class SharedTransfers {
public:
    static constexpr size_t kInFlightMax = 512;

    virtual ~SharedTransfers() = default;

    // Starts requests in this order, at most kStartMax; returns how many: fewer if the system
    // refuses, as it may when as many are in flight as were wanted.
    static constexpr size_t kStartMax = 16;
    virtual size_t start(IoRequest* const* requests, size_t count) noexcept = 0;
    // Nothing can be started: the system has refused all, and will not be asked again, or members
    // of the store are lost.  Any thread.
    virtual bool is_refused() const noexcept = 0;
    // The next completed request, nullptr when there is none.  `wait`: sleeps until there is one,
    // and may still return none; something must be in flight.  By one thread at a time.
    virtual IoRequest* next_completed(bool wait) noexcept = 0;
    // Whether something has been completed since next_completed() returned nullptr.  Any thread.
    virtual bool has_completed() const noexcept = 0;
};

// Who uses a store's slots, for who changes where their content is kept.
class SlotUsers {
public:
    // Whether no other process does, and nothing that one had under way takes effect any more.
    virtual bool is_alone() noexcept = 0;
    enum class Content : uint8_t {
        kNone,      // of no use to anybody
        kKept,      // by this process
        kChanging,  // not known at this moment
    };
    // Of a multiple of unit_bytes().  By who keeps others from beginning to use a slot there.
    virtual Content content_of(uint64_t offset, uint64_t bytes) noexcept = 0;
    virtual uint64_t unit_bytes() const noexcept = 0;

protected:
    ~SlotUsers() = default;
};

enum class TransferCapacity : uint8_t {
    kOne,   // in flight; started by one thread at a time
    kMany,  // SharedTransfers::kInFlightMax
};

class Store {
public:
    virtual ~Store() = default;

    // Reserves room; the offset is a multiple of 4 MiB.  STORE_FULL when there is none.  The
    // content is undefined until written.  Any thread.
    virtual Result<uint64_t> reserve(uint64_t bytes) = 0;
    virtual void release(uint64_t offset, uint64_t bytes) noexcept = 0;

    // Instead of extents: room for single blocks of `slot_bytes`, shared with forked children.
    // Once, before anything is reserved; the store has to outlive the table.
    virtual Result<SlotTable> open_slots(uint64_t slot_bytes) = 0;
    // Instead of open_slots(), where another store has them that is made of this one, and keeps so
    // much of each here.
    virtual Result<void> share(uint64_t /*slot_bytes*/) { return {}; }
    // Before a slot is used that ends there: all before can be read from now on, as zeros where
    // nothing was written.  Any thread, async-signal-safe.
    virtual hanare_status cover(uint64_t end) noexcept = 0;
    // Before a slot is used that others may have had: whatever is there is of no use.  Whether it
    // is read as zeros from now on.  Any thread, async-signal-safe.
    virtual bool renew(uint64_t /*offset*/, uint64_t /*bytes*/) noexcept { return false; }
    // What reserve() takes is this much, or a multiple.
    virtual uint64_t unit_bytes() const noexcept { return kOsPageBytes; }

    // What processes that share slots need, by the rows of their table (one bit each), where they
    // do not have the store by their descriptors alone.  A store that is made of others hands all
    // of this on to each.
    //
    // The process takes part as this row from now on, before it uses a slot.
    virtual Result<void> take_part(uint32_t /*row*/) { return {}; }
    // Nothing that the processes of these rows, which have ended, had under way takes effect any
    // more.  False: that is not certain.  Any thread, async-signal-safe.
    virtual bool fence(uint64_t /*rows*/) noexcept { return true; }
    // Around a fork, while nothing is under way; async-signal-safe.  prepare_fork: in the parent,
    // for the child of this row; false, and the reason is told: there can be none.  Then
    // finish_fork() there, whether there is a child or not, and become_child() in the child.
    virtual bool prepare_fork(uint32_t /*row*/) noexcept { return true; }
    virtual void finish_fork() noexcept {}
    virtual void become_child() noexcept {}

    virtual hanare_status read(uint64_t offset, std::byte* memory, size_t bytes) noexcept = 0;
    virtual hanare_status write(uint64_t offset, const std::byte* memory,
                                size_t bytes) noexcept = 0;

    virtual Result<std::unique_ptr<IoChannel>> open_channel() = 0;
    // nullptr where they cannot be asynchronous.  Costs nothing before the first transfer.
    virtual std::unique_ptr<SharedTransfers> open_transfers(TransferCapacity capacity) = 0;

    // Whether a read fails unless it brings what was written there last, so that it needs no
    // checksum.  What was never written, or renewed since, may be read as zeros.
    virtual bool authenticates() const noexcept { return false; }

    // "file in /var/tmp, O_DIRECT, io_uring": for messages and `hanare info`.
    virtual std::string describe() const = 0;
    // errno of the last transfer that failed, 0 if none did; for the line that explains a SIGBUS.
    virtual int last_errno() const noexcept = 0;
    // What is wrong with the store, in words, if transfers failed for a reason that is no errno
    // value of a file's; else nullptr.  Lives as long as the store; async-signal-safe.
    virtual const char* trouble() const noexcept { return nullptr; }
    // One more member, by its SPEC, of a store that is made of several: opened by another thread.
    // False: it has none, or waits for one already.  Any thread; never waits, nothing allocates.
    virtual bool ask_to_add(std::string_view /*spec*/) noexcept { return false; }
    // What has become of that: nullptr while it is under way, "" when it is there (or nothing was
    // asked for), else what is wrong; as long as nothing else is asked for.
    virtual const char* added() const noexcept { return ""; }
    // Whether what it keeps should move elsewhere, as it is about to end.  May ask it, and wait for
    // the answer.  Any thread.
    virtual bool wants_to_leave() noexcept { return false; }
    // The same without waiting, as far as it is known: asks, and looks for the answer to the last
    // question.  By one thread.
    virtual bool has_asked_to_leave() noexcept { return false; }
    // For stores with slots, instead of a thread of their own: a piece of what there is to do in
    // the background.  Whether there is more of it at once.  By one thread, while no fork is under
    // way; it may wait for servers.
    virtual bool tend(SlotUsers& /*users*/) noexcept { return false; }
    // Nothing of it is used any more: gives back what can be given back before it ends.  Any
    // thread.
    virtual void give_up() noexcept {}
    // Ends the store in a child of fork(): closes descriptors, releases nothing of the parent's.
    virtual void abandon_in_child() noexcept = 0;
};

// What to open; parsed from a SPEC by config/store_spec.hpp.
struct FileStoreOptions {
    std::string directory;
    uint64_t size_bytes = 0;  // preallocated at open when not 0, and then the limit
    bool allow_tmpfs = false;
    bool use_direct = true;   // O_DIRECT; falls back by itself where it is refused
    bool use_uring = true;    // io_uring for channels; falls back by itself where it is refused
    bool need_uring = false;  // NOT_SUPPORTED where it is refused
    size_t in_flight_bytes_max = IoChannel::kInFlightBytesMax;
};

Result<std::unique_ptr<Store>> open_file_store(const FileStoreOptions& options);

}  // namespace hanare::store
