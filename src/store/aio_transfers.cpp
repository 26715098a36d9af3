// SPDX-License-Identifier: Apache-2.0
#include "store/aio_transfers.hpp"

#include <algorithm>
#include <cerrno>

#include "sys/inject.hpp"

namespace hanare::store {

namespace {

// What a test wants to happen to a transfer of so many bytes.
int64_t injected(const IoRequest& request, int64_t result) {
    const int injected = sys::inject::next_errno(
        request.kind == IoKind::kRead ? sys::inject::Call::kRead : sys::inject::Call::kWrite);
    if (injected == 0 || result <= 0) return result;
    if (injected > 0) return -injected;
    return static_cast<int64_t>(sys::short_part(static_cast<size_t>(result)));
}

}  // namespace

static_assert(SharedTransfers::kInFlightMax <= sys::Aio::kManyTransfers);

size_t AioTransfers::start(IoRequest* const* requests, size_t count) noexcept {
    std::array<sys::Aio::Transfer, kStartMax> transfers;
    count = std::min(count, kStartMax);
    for (size_t i = 0; i < count; ++i) {
        const IoRequest& request = *requests[i];
        // The kernel would send SIGXFSZ; write_at() fails without it.
        if (request.kind == IoKind::kWrite &&
            request.offset + request.bytes > sys::file_bytes_max()) {
            count = i;
            break;
        }
        transfers[i] = {request.offset, request.memory, request.bytes,
                        reinterpret_cast<uint64_t>(requests[i]), request.kind == IoKind::kWrite};
    }
    starts_.fetch_add(1, std::memory_order_release);
    return aio_.start(transfers.data(), count);
}

IoRequest* AioTransfers::next_completed(bool wait) noexcept {
    if (next_ == collected_) {
        next_ = 0;
        collected_ = aio_.collect(completions_.data(), completions_.size(), wait);
        if (collected_ == 0) return nullptr;
        static_cast<void>(starts_.load(std::memory_order_acquire));
    }
    const sys::Aio::Completion& completion = completions_[next_++];
    auto* request = reinterpret_cast<IoRequest*>(completion.tag);
    request->status = file_.errors.note(finish(*request, injected(*request, completion.result)));
    return request;
}

// 0 or an errno value.  What came short is transferred synchronously: it is as rare as can be.
int AioTransfers::finish(const IoRequest& request, int64_t result) noexcept {
    if (result < 0 && !sys::is_transient(static_cast<int>(-result))) {
        return static_cast<int>(-result);
    }
    const size_t done = result > 0 ? static_cast<size_t>(result) : 0;
    if (done == request.bytes) return 0;
    const int file = file_.descriptor.number();
    const uint64_t offset = request.offset + done;
    std::byte* const memory = request.memory + done;
    const size_t rest = request.bytes - done;
    return request.kind == IoKind::kRead ? sys::read_at(file, offset, memory, rest)
                                         : sys::write_at(file, offset, memory, rest);
}

}  // namespace hanare::store
