// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/part_reads.hpp"

namespace hanare::pager {

PartReads::PartReads(store::Store& store, sys::Mapping memory, bool may_spin)
    : store_(store), buffers_(std::move(memory), kPartBytesMax), spinning_(may_spin) {
    for (auto& reads : reads_) reads = store.open_transfers(store::TransferCapacity::kOne);
}

void PartReads::Buffer::start(uint64_t offset, size_t bytes) noexcept {
    request_ = {};
    request_.kind = store::IoKind::kRead;
    request_.offset = offset;
    request_.memory = memory();
    request_.bytes = bytes;
    store::IoRequest* const request = &request_;
    transfers_ = owner_.reads_[buffer_.index()].get();
    if (transfers_ != nullptr && transfers_->start(&request, 1) == 0) transfers_ = nullptr;
    is_done_ = transfers_ == nullptr;
}

bool PartReads::Buffer::is_done() noexcept {
    if (!is_done_) is_done_ = transfers_->next_completed(false) != nullptr;
    return is_done_;
}

hanare_status PartReads::Buffer::finish() noexcept {
    if (transfers_ == nullptr) {
        return owner_.store_.read(request_.offset, request_.memory, request_.bytes);
    }
    wait();
    return request_.status;
}

void PartReads::Buffer::wait() noexcept {
    if (is_done_ || owner_.spinning_.until([&] { return is_done(); })) return;
    while (transfers_->next_completed(true) == nullptr) {
    }
    is_done_ = true;
}

}  // namespace hanare::pager
