// SPDX-License-Identifier: Apache-2.0
#include "sys/identity.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>

#include "sys/raw_thread.hpp"

namespace hanare::sys {

namespace {

uint64_t bits(const void* memory) noexcept { return reinterpret_cast<uint64_t>(memory); }

// Of the calling thread.
constexpr __user_cap_header_struct kCaller = {_LINUX_CAPABILITY_VERSION_3, 0};

int64_t capabilities_call(long number, const void* data) noexcept {
    __user_cap_header_struct header = kCaller;
    return raw_call3(number, bits(&header), bits(data), 0);
}

}  // namespace

void Identity::take_from_caller() noexcept {
    raw_call3(SYS_getresuid, bits(&users_[0]), bits(&users_[1]), bits(&users_[2]));
    raw_call3(SYS_getresgid, bits(&groups_[0]), bits(&groups_[1]), bits(&groups_[2]));
    others_count_ = raw_call3(SYS_getgroups, kGroupsMax, bits(others_.data()), 0);
    static_assert(sizeof capabilities_ == 2 * sizeof(__user_cap_data_struct));
    has_capabilities_ = capabilities_call(SYS_capget, capabilities_.data()) == 0;
}

void Identity::give_to_caller() const noexcept {
    // Once more, because the first round may bring the right to do what it has not been able to.
    for (int round = 0; round < 2; ++round) {
        if (others_count_ >= 0) {
            raw_call3(SYS_setgroups, static_cast<uint64_t>(others_count_), bits(others_.data()), 0);
        }
        raw_call3(SYS_setresgid, groups_[0], groups_[1], groups_[2]);
        raw_call3(SYS_setresuid, users_[0], users_[1], users_[2]);
    }
    if (has_capabilities_) capabilities_call(SYS_capset, capabilities_.data());
}

}  // namespace hanare::sys
