// SPDX-License-Identifier: Apache-2.0
//
// What the two kinds of channel of a file store share: the bounds on what is in flight, the queue
// of completed transfers, and what they know of their store.
//
// One thread uses a channel.  It ends before its store, either with nothing in flight or by the
// hand of that same thread.
#pragma once

#include <atomic>

#include "store/store.hpp"
#include "sys/file.hpp"
#include "sys/lock.hpp"

namespace hanare::store {

// errno values become statuses here; the last one is kept for messages.  Any thread,
// async-signal-safe.
class TransferErrors {
public:
    hanare_status note(int os_errno) noexcept;
    int last() const noexcept { return last_.load(std::memory_order_relaxed); }

private:
    std::atomic<int> last_{0};
};

class FileChannel;

// The open channels of a store, so that the child of a fork can close them.
class ChannelList {
public:
    void add(FileChannel& channel) noexcept;
    void remove(FileChannel& channel) noexcept;
    // In the child of a fork, where the lock may be held by a thread that does not exist: the links
    // form a list at every moment.
    void abandon_in_child() noexcept;

private:
    sys::RankedLock lock_{sys::LockRank::kLeaf};  // for changes
    std::atomic<FileChannel*> first_{nullptr};
};

// What a store shares with its channels; outlives them.
struct StoreFile {
    sys::FileDescriptor descriptor;
    size_t in_flight_bytes_max = 0;  // per channel
    TransferErrors errors;
    ChannelList channels;
};

class FileChannel : public IoChannel {
public:
    bool submit(IoRequest& request) noexcept final;
    IoRequest* next_completed() noexcept final;
    bool has_completed() const noexcept final { return first_completed_ != nullptr; }
    size_t in_flight() const noexcept final { return in_flight_; }

    // In the child of a fork: closes descriptors.  Async-signal-safe.
    virtual void abandon_in_child() noexcept = 0;

protected:
    FileChannel(StoreFile& file, size_t requests_max) noexcept;

    // Every class that can be instantiated calls add_to_store() last in its constructor and
    // remove_from_store() first in its destructor: a fork finds whole channels only.
    void add_to_store() noexcept { file_.channels.add(*this); }
    void remove_from_store() noexcept { file_.channels.remove(*this); }

    // Starts a transfer that was admitted.
    virtual void start(IoRequest& request) noexcept = 0;
    // Looks for completed transfers without waiting.
    virtual void collect() noexcept = 0;

    // `os_errno` 0 means success.
    void complete(IoRequest& request, int os_errno) noexcept;
    int file() const noexcept { return file_.descriptor.number(); }

private:
    friend class ChannelList;

    StoreFile& file_;
    const size_t requests_max_;
    size_t in_flight_ = 0;
    size_t in_flight_bytes_ = 0;
    IoRequest* first_completed_ = nullptr;
    IoRequest* last_completed_ = nullptr;
    std::atomic<FileChannel*> next_channel_{nullptr};
};

}  // namespace hanare::store
