// SPDX-License-Identifier: Apache-2.0
//
// UcxContext: UCX, as this process uses it, and memory that UCX allocates.  Only that is reached
// without the target on one machine, and it is shared memory, so that its pages can also be where
// the program wants them (UcxMemory).  UCX itself checks no key and no range.
//
// Any thread, but not signal handlers: UCX allocates and takes locks of its own.  Not across
// fork().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/memory.hpp"

struct ucp_context;
struct ucp_mem;
struct ucp_worker;

namespace hanare::fabric {

struct UcxLibrary;

class UcxContext {
public:
    struct Settings {
        // As in UCX_TLS; empty: that variable, and where it is not set kTransports.
        std::string transports = {};
    };
    // Those which may be one-sided, and are there; UcxLink finds out whether they are.
    static constexpr const char* kTransports = "^tcp,cma,knem,xpmem,self";
    // NOT_SUPPORTED: built without UCX, no such library, none of these transports.
    static Result<std::unique_ptr<UcxContext>> open(const Settings& settings);
    ~UcxContext();
    UcxContext(const UcxContext&) = delete;
    UcxContext& operator=(const UcxContext&) = delete;

    const std::string& transports() const noexcept { return transports_; }
    const UcxLibrary& library() const noexcept { return library_; }
    ucp_context* handle() const noexcept { return handle_; }
    // By one thread at a time; ends before the context.
    Result<ucp_worker*> make_worker() const;

    // Sources may be about to attach it, with a key that has just become old: it goes kGrace_ns
    // later.  UCX 1.13 that does not find what it should attach detaches something else, which that
    // key's place was last used for.
    void give_back_later(ucp_mem* memory) const noexcept;
    // What has waited for so long goes.  True: some is left.
    bool give_back_due() const noexcept;
    static constexpr uint64_t kGrace_ns = 1'000'000'000;
    // A source that has asked for a key does not attach with it any more after that.
    static constexpr uint64_t kFresh_ns = kGrace_ns / 8;

private:
    // However often keys are revoked: the machine has 4096 segments for all.
    static constexpr size_t kWaitingMax = 256;
    struct Waiting {
        ucp_mem* memory;
        uint64_t until_ns;
    };
    void give_back_first() const noexcept;

    UcxContext(const UcxLibrary& library, ucp_context* handle, std::string transports)
        : library_(library), handle_(handle), transports_(std::move(transports)) {}

    const UcxLibrary& library_;
    ucp_context* const handle_;
    const std::string transports_;
    mutable std::mutex waiting_lock_;
    mutable std::deque<Waiting> waiting_;  // the oldest first
};

// Zeros at first; ends before the context.
class UcxMemory {
public:
    // NOT_SUPPORTED: what UCX allocates with these transports is not shared.
    static Result<std::unique_ptr<UcxMemory>> allocate(const UcxContext& context, size_t bytes);
    ~UcxMemory();
    UcxMemory(const UcxMemory&) = delete;
    UcxMemory& operator=(const UcxMemory&) = delete;

    // Where the program has it.
    std::byte* address() const noexcept { return memory_.address(); }
    size_t bytes() const noexcept { return bytes_; }
    // For peers.
    uint64_t remote_address() const noexcept { return reinterpret_cast<uint64_t>(pages_.address); }
    const std::vector<std::byte>& key() const noexcept { return pages_.key; }

    // Other memory with the same content at the same address; who has a key of before has the old
    // one.  What is written there meanwhile may be lost.  After an error nothing has changed.
    Result<void> replace();

private:
    // What UCX has allocated.
    struct Pages {
        ucp_mem* handle = nullptr;
        std::byte* address = nullptr;
        std::vector<std::byte> key = {};
    };
    UcxMemory(const UcxContext& context, sys::Mapping memory, size_t bytes)
        : context_(context), memory_(std::move(memory)), bytes_(bytes) {}
    Result<Pages> make_pages() const;
    Result<void> complete(Pages& pages) const;
    void give_back(const Pages& pages) const noexcept;

    const UcxContext& context_;
    const sys::Mapping memory_;  // shows pages_
    const size_t bytes_;
    Pages pages_;
};

}  // namespace hanare::fabric
