// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_endpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fabric/ucx_library.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

// Within that UCX lets go of what was under way.
constexpr uint64_t kClosing_ns = 10'000'000'000;
// Between two looks at the clock.
constexpr uint32_t kTurns = 32;

// Of those that UCX is not asked for.
uint64_t result_of(const FetchRequest& request, uint64_t word) noexcept {
    switch (request.op) {
        case FetchOp::kAnd: return word & request.operand;
        case FetchOp::kOr: return word | request.operand;
        default: return word ^ request.operand;
    }
}

}  // namespace

Result<std::unique_ptr<UcxEndpoint>> UcxEndpoint::connect(const UcxContext& context,
                                                          std::span<const std::byte> address) {
    const sys::SignalBlock no_signals;
    HANARE_TRY_ASSIGN(ucp_worker* const worker, context.make_worker());
    std::unique_ptr<UcxEndpoint> endpoint(new UcxEndpoint(context, worker));
    // UCX's shared memory cannot tell that a peer is lost, and needs it the least.
    int status = endpoint->create(address, true);
    if (status == UCS_ERR_UNREACHABLE) status = endpoint->create(address, false);
    if (status == UCS_OK) return endpoint;
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "UCX: the transports '%.100s' do not reach the target: %.80s",
                context.transports().c_str(),
                context.library().status_text(static_cast<ucs_status_t>(status)));
}

int UcxEndpoint::create(std::span<const std::byte> address, bool tells_failures) noexcept {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    if (tells_failures) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = this;
        params.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t status) {
            static_cast<UcxEndpoint*>(self)->failure_ = status;
        };
    }
    tells_failures_ = tells_failures;
    ucp_ep_h handle = nullptr;
    const ucs_status_t status = context_.library().ep_create(worker_, &params, &handle);
    if (status == UCS_OK) handle_ = handle;
    return status;
}

UcxEndpoint::~UcxEndpoint() {
    const sys::SignalBlock no_signals;
    close();
    // With something under way it cannot go.
    if (pending_ == nullptr) context_.library().worker_destroy(worker_);
}

void UcxEndpoint::close() noexcept {
    if (handle_ == nullptr) return;
    const UcxLibrary& library = context_.library();
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    // Else it waits for what is under way, which UCX allows no other way.
    params.flags = tells_failures_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    void* const closing = library.ep_close(std::exchange(handle_, nullptr), &params);
    const uint64_t end_ns = sys::now_ns() + kClosing_ns;
    for (void* request : {std::exchange(pending_, nullptr), closing}) {
        if (request == nullptr || UCS_PTR_IS_ERR(request)) continue;
        if (progress_until(request, end_ns)) {
            library.request_free(request);
        } else {
            pending_ = request;
        }
    }
}

// ---- keys

ucp_rkey* UcxEndpoint::understand(std::span<const std::byte> key) noexcept {
    ucp_rkey_h understood = nullptr;
    if (handle_ == nullptr || key.empty()) return nullptr;
    const ucs_status_t status = context_.library().ep_rkey_unpack(handle_, key.data(), &understood);
    return status == UCS_OK ? understood : nullptr;
}

void UcxEndpoint::forget(ucp_rkey* key) noexcept {
    if (key != nullptr) context_.library().rkey_destroy(key);
}

// ---- operations

hanare_status UcxEndpoint::put(const Place& place, std::span<const std::byte> source,
                               uint64_t deadline_ns) noexcept {
    if (handle_ == nullptr) return HANARE_STATUS_PEER_LOST;
    const ucp_request_param_t params = {};
    const hanare_status status =
        finish(context_.library().put(handle_, source.data(), source.size(), place.address,
                                      place.key, &params),
               deadline_ns);
    // So far the source may be used again.
    return status == HANARE_STATUS_OK ? flush(deadline_ns) : status;
}

hanare_status UcxEndpoint::flush(uint64_t deadline_ns) noexcept {
    const ucp_request_param_t params = {};
    return finish(context_.library().ep_flush(handle_, &params), deadline_ns);
}

hanare_status UcxEndpoint::get(const Place& place, std::span<std::byte> destination,
                               uint64_t deadline_ns) noexcept {
    if (handle_ == nullptr) return HANARE_STATUS_PEER_LOST;
    const ucp_request_param_t params = {};
    return finish(context_.library().get(handle_, destination.data(), destination.size(),
                                         place.address, place.key, &params),
                  deadline_ns);
}

// What adapters can do: the rest is made of that.  (And UCX 1.13 does not change its shared memory
// by and, or, xor.)
hanare_status UcxEndpoint::fetch(const Place& place, const FetchRequest& request, uint64_t& before,
                                 uint64_t deadline_ns) noexcept {
    switch (request.op) {
        case FetchOp::kAdd: return fetch_by(UCP_ATOMIC_OP_ADD, place, request, before, deadline_ns);
        case FetchOp::kSwap:
            return fetch_by(UCP_ATOMIC_OP_SWAP, place, request, before, deadline_ns);
        case FetchOp::kCompareSwap:
            return fetch_by(UCP_ATOMIC_OP_CSWAP, place, request, before, deadline_ns);
        default: return fetch_by_comparing(place, request, before, deadline_ns);
    }
}

hanare_status UcxEndpoint::fetch_by(int op, const Place& place, const FetchRequest& request,
                                    uint64_t& before, uint64_t deadline_ns) noexcept {
    if (handle_ == nullptr) return HANARE_STATUS_PEER_LOST;
    const bool compares = op == UCP_ATOMIC_OP_CSWAP;
    operand_ = compares ? request.compare : request.operand;
    reply_ = compares ? request.operand : 0;
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    params.datatype = ucp_dt_make_contig(request.width);
    params.reply_buffer = &reply_;
    const hanare_status status =
        finish(context_.library().atomic_op(handle_, static_cast<ucp_atomic_op_t>(op), &operand_, 1,
                                            place.address, place.key, &params),
               deadline_ns);
    if (status == HANARE_STATUS_OK) {
        before = request.width == sizeof(uint32_t) ? static_cast<uint32_t>(reply_) : reply_;
    }
    return status;
}

hanare_status UcxEndpoint::fetch_by_comparing(const Place& place, const FetchRequest& request,
                                              uint64_t& before, uint64_t deadline_ns) noexcept {
    const FetchRequest look = {.op = FetchOp::kAdd, .width = request.width};
    hanare_status status = fetch_by(UCP_ATOMIC_OP_ADD, place, look, before, deadline_ns);
    for (uint64_t seen = before; status == HANARE_STATUS_OK; seen = before) {
        const FetchRequest swap = {.op = FetchOp::kCompareSwap,
                                   .width = request.width,
                                   .operand = result_of(request, seen),
                                   .compare = seen};
        status = fetch_by(UCP_ATOMIC_OP_CSWAP, place, swap, before, deadline_ns);
        if (before == seen) break;
        if (sys::now_ns() >= deadline_ns) return HANARE_STATUS_TIMEOUT;
    }
    return status;
}

hanare_status UcxEndpoint::finish(void* request, uint64_t deadline_ns) noexcept {
    if (request == nullptr) return HANARE_STATUS_OK;
    if (UCS_PTR_IS_ERR(request)) {
        failure_ = UCS_PTR_STATUS(request);
        close();
        return HANARE_STATUS_PEER_LOST;
    }
    if (!progress_until(request, deadline_ns)) {
        const bool is_late = failure_ == UCS_OK;
        if (is_late) failure_ = UCS_ERR_TIMED_OUT;
        pending_ = request;
        close();
        return is_late ? HANARE_STATUS_TIMEOUT : HANARE_STATUS_PEER_LOST;
    }
    const ucs_status_t status = context_.library().request_check_status(request);
    context_.library().request_free(request);
    if (status == UCS_OK) return HANARE_STATUS_OK;
    failure_ = status;
    close();
    return HANARE_STATUS_PEER_LOST;
}

// False: it is not over, because of the time or because the peer is known to be lost.
bool UcxEndpoint::progress_until(void* request, uint64_t deadline_ns) noexcept {
    const UcxLibrary& library = context_.library();
    const auto is_over = [&] { return library.request_check_status(request) != UCS_INPROGRESS; };
    sys::SpinWait wait;
    for (uint32_t turn = 1; !is_over(); ++turn) {
        library.worker_progress(worker_);
        if (turn % kTurns != 0) continue;
        // While it closes, the failure is known.
        if (handle_ != nullptr && failure_ != UCS_OK) return is_over();
        if (sys::now_ns() >= deadline_ns) return is_over();
        if (!wait.spin()) sys::yield_for_us(0);
    }
    return true;
}

// ---- for people

// Of what it prints, a line for each way: "lane[0]:  2:tcp/lo.0 md[1] ...".
std::string UcxEndpoint::transports() const {
    if (handle_ == nullptr) return "none";
    char* text = nullptr;
    size_t bytes = 0;
    std::FILE* const stream = open_memstream(&text, &bytes);
    if (stream == nullptr) return "unknown";
    context_.library().ep_print_info(handle_, stream);
    std::fclose(stream);
    std::string_view rest(text, bytes);
    std::string found;
    for (size_t at = rest.find("lane["); at != rest.npos; at = rest.find("lane[")) {
        rest.remove_prefix(at);
        rest.remove_prefix(std::min(rest.find(' '), rest.size()));
        rest.remove_prefix(std::min(rest.find(':') + 1, rest.size()));
        const std::string_view name = rest.substr(0, rest.find(' '));
        if (found.find(name) != found.npos) continue;
        found.append(found.empty() ? "" : ", ").append(name);
    }
    std::free(text);
    return found.empty() ? "unknown" : found;
}

const char* UcxEndpoint::failure() const noexcept {
    return context_.library().status_text(static_cast<ucs_status_t>(failure_));
}

}  // namespace hanare::fabric

#endif
