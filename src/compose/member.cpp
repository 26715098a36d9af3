// SPDX-License-Identifier: Apache-2.0
#include "compose/member.hpp"

namespace hanare::compose {

Member::Member(std::unique_ptr<store::Store> store)
    : store_(std::move(store)), name_(store_->describe()) {
    for (auto& lane : lanes_) lane = store_->open_transfers(store::TransferCapacity::kOne);
}

}  // namespace hanare::compose
