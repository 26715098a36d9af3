// SPDX-License-Identifier: Apache-2.0
#include "job/exposures.hpp"

#include <utility>

namespace hanare::job {
namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

Result<std::span<std::byte>> Exposures::allocate(size_t bytes) {
    HANARE_TRY_ASSIGN(ExposableMemory made, ExposableMemory::allocate(bytes));
    const std::span memory = made.span();
    const std::lock_guard guard(lock_);
    allocated_.emplace(memory.data(), std::move(made));
    return memory;
}

Result<void> Exposures::free(const void* address) {
    const std::lock_guard guard(lock_);
    const auto found = allocated_.find(static_cast<const std::byte*>(address));
    if (found == allocated_.end()) {
        return fail(HANARE_STATUS_NOT_FOUND, "%p was not allocated here", address);
    }
    const std::span<const std::byte> memory = found->second.span();
    for (const auto& [region, exposure] : exposed_) {
        if (!overlap(exposure.memory, memory)) continue;
        return fail(HANARE_STATUS_BUSY, "%p: still exposed as region %u", address, region);
    }
    allocated_.erase(found);
    return {};
}

Result<uint32_t> Exposures::expose(std::span<std::byte> memory, fabric::Rights rights) {
    const std::lock_guard guard(lock_);
    // Revoking gives the memory another file: only the first region that is all
    // of it has the file.
    sys::FileDescriptor file;
    if (const auto found = allocated_.find(memory.data());
        found != allocated_.end() && found->second.bytes == memory.size()) {
        file = std::move(found->second.file);
    }
    HANARE_TRY_ASSIGN(const uint32_t region, regions_.expose(memory, rights, std::move(file)));
    exposed_[region] = {.memory = memory};
    return region;
}

// What the library exposes for itself is not the program's to change.
Result<void> Exposures::check_exposed(uint32_t region) const {
    if (exposed_.contains(region)) return {};
    return fail(HANARE_STATUS_NOT_FOUND, "region %u: not exposed", region);
}

Result<fabric::Capability> Exposures::capability(uint32_t region, fabric::Rights rights) const {
    const std::lock_guard guard(lock_);
    HANARE_TRY(check_exposed(region));
    return regions_.capability(region, rights);
}

Result<void> Exposures::revoke(uint32_t region) {
    const std::lock_guard guard(lock_);
    HANARE_TRY(check_exposed(region));
    Result<void> revoked = regions_.revoke(region);
    // It is concealed then.
    if (!revoked) exposed_.erase(region);
    return revoked;
}

Result<void> Exposures::conceal(uint32_t region) {
    const std::lock_guard guard(lock_);
    HANARE_TRY(check_exposed(region));
    if (exposed_[region].holders != 0) {
        return fail(HANARE_STATUS_BUSY, "region %u: a window needs it", region);
    }
    sys::FileDescriptor file;
    Result<void> concealed = regions_.conceal(region, &file);
    // For who exposes the memory again.
    if (const auto found = allocated_.find(exposed_[region].memory.data());
        file.is_open() && found != allocated_.end()) {
        found->second.file = std::move(file);
    }
    exposed_.erase(region);
    return concealed;
}

Result<std::span<std::byte>> Exposures::hold(uint32_t region) {
    const std::lock_guard guard(lock_);
    HANARE_TRY(check_exposed(region));
    ++exposed_[region].holders;
    return exposed_[region].memory;
}

void Exposures::release(uint32_t region) noexcept {
    const std::lock_guard guard(lock_);
    if (const auto found = exposed_.find(region); found != exposed_.end()) --found->second.holders;
}

}  // namespace hanare::job
