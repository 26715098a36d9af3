// SPDX-License-Identifier: Apache-2.0
//
// UcxEndpoint: one peer, as UCX reaches it.  Each operation is over when it returns.  After one
// that failed nothing more goes that way: UCX may still hold on to what was under way, and closing
// is what makes it let go.
//
// By one thread at a time, with signals blocked; not in signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "fabric/apply.hpp"
#include "fabric/ucx_context.hpp"

struct ucp_ep;
struct ucp_rkey;

namespace hanare::fabric {

class UcxEndpoint {
public:
    // The context lives longer.  Never waits: whether the peer is there shows later.
    static Result<std::unique_ptr<UcxEndpoint>> connect(const UcxContext& context,
                                                        std::span<const std::byte> address);
    // Keys are forgotten before.
    ~UcxEndpoint();
    UcxEndpoint(const UcxEndpoint&) = delete;
    UcxEndpoint& operator=(const UcxEndpoint&) = delete;

    // A key as UcxMemory has it, for this endpoint; null: UCX makes nothing of it.
    ucp_rkey* understand(std::span<const std::byte> key) noexcept;
    void forget(ucp_rkey* key) noexcept;

    struct Place {
        uint64_t address = 0;
        ucp_rkey* key = nullptr;
    };
    // OK: it has taken effect at the target.  TIMEOUT: it may have, or will; PEER_LOST: likewise.
    hanare_status put(const Place& place, std::span<const std::byte> source,
                      uint64_t deadline_ns) noexcept;
    hanare_status get(const Place& place, std::span<std::byte> destination,
                      uint64_t deadline_ns) noexcept;
    hanare_status fetch(const Place& place, const FetchRequest& request, uint64_t& before,
                        uint64_t deadline_ns) noexcept;

    bool is_closed() const noexcept { return handle_ == nullptr; }
    void close() noexcept;
    // For people: by what it goes, and what has become of it.
    std::string transports() const;
    const char* failure() const noexcept;

private:
    UcxEndpoint(const UcxContext& context, ucp_worker* worker) noexcept
        : context_(context), worker_(worker) {}
    int create(std::span<const std::byte> address, bool tells_failures) noexcept;
    hanare_status finish(void* request, uint64_t deadline_ns) noexcept;
    bool progress_until(void* request, uint64_t deadline_ns) noexcept;
    hanare_status flush(uint64_t deadline_ns) noexcept;
    hanare_status fetch_by(int op, const Place& place, const FetchRequest& request,
                           uint64_t& before, uint64_t deadline_ns) noexcept;
    hanare_status fetch_by_comparing(const Place& place, const FetchRequest& request,
                                     uint64_t& before, uint64_t deadline_ns) noexcept;

    const UcxContext& context_;
    ucp_worker* worker_;
    ucp_ep* handle_ = nullptr;
    bool tells_failures_ = false;
    int failure_ = 0;          // ucs_status_t
    void* pending_ = nullptr;  // what was under way when it failed
    // Not on anybody's stack, since UCX may use them after a timeout.
    uint64_t operand_ = 0;
    uint64_t reply_ = 0;
};

}  // namespace hanare::fabric
