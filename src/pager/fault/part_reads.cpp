// SPDX-License-Identifier: Apache-2.0
#include "pager/fault/part_reads.hpp"

namespace hanare::pager {

PartReads::PartReads(store::Store& store, sys::Mapping memory, bool may_spin)
    : store_(store), buffers_(std::move(memory), kPartBytesMax), spinning_(may_spin) {
    for (auto& reads : reads_) reads = store.open_transfers(store::TransferCapacity::kOne);
}

hanare_status PartReads::Buffer::read(uint64_t offset, size_t bytes) noexcept {
    store::SharedTransfers* const reads = owner_.reads_[buffer_.index()].get();
    store::IoRequest request;
    request.kind = store::IoKind::kRead;
    request.offset = offset;
    request.memory = memory();
    request.bytes = bytes;
    store::IoRequest* const started = &request;
    if (reads == nullptr || reads->start(&started, 1) == 0) {
        return owner_.store_.read(offset, memory(), bytes);
    }
    if (!owner_.spinning_.until([&] { return reads->next_completed(false) != nullptr; })) {
        while (reads->next_completed(true) == nullptr) {
        }
    }
    return request.status;
}

}  // namespace hanare::pager
