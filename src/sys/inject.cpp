// SPDX-License-Identifier: Apache-2.0
#include "sys/inject.hpp"

#include <array>

namespace hanare::sys::inject {

namespace {

struct Rule {
    std::atomic<bool> active{false};
    std::atomic<int> os_errno{0};
    std::atomic<uint64_t> skip{0};
    std::atomic<uint64_t> times{0};
    std::atomic<uint64_t> seen{0};
};

std::array<Rule, static_cast<size_t>(Call::kCount)> rules;
std::atomic<void (*)(Call) noexcept> observer{nullptr};

}  // namespace

namespace detail {

std::atomic<bool> armed{false};

int next_errno_slow(Call call) noexcept {
    if (const auto function = observer.load(std::memory_order_acquire)) function(call);
    Rule& rule = rules[static_cast<size_t>(call)];
    if (!rule.active.load(std::memory_order_acquire)) return 0;
    const uint64_t number = rule.seen.fetch_add(1);
    const uint64_t skip = rule.skip.load();
    if (number < skip || number - skip >= rule.times.load()) return 0;
    const int os_errno = rule.os_errno.load();
    return os_errno == 0 ? kShort : os_errno;
}

}  // namespace detail

void arm(Call call, int os_errno, uint64_t skip, uint64_t times) noexcept {
    Rule& rule = rules[static_cast<size_t>(call)];
    rule.active.store(false);
    rule.os_errno = os_errno;
    rule.skip = skip;
    rule.times = times;
    rule.seen = 0;
    rule.active.store(true, std::memory_order_release);
    detail::armed.store(true);
}

void observe(void (*function)(Call call) noexcept) noexcept {
    observer.store(function);
    detail::armed.store(true);
}

void disarm_all() noexcept {
    detail::armed.store(false);
    observer.store(nullptr);
    for (Rule& rule : rules) rule.active.store(false);
}

}  // namespace hanare::sys::inject
