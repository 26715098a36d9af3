// SPDX-License-Identifier: Apache-2.0
#include "job/exposures.hpp"

#include <utility>

namespace hanare::job {
namespace {

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

Result<void> Exposures::use_ucx() {
    HANARE_TRY_ASSIGN(ucx_, UcxSide::open(regions_));
    return {};
}

// Before its memory.
Exposures::~Exposures() {
    if (ucx_ != nullptr) ucx_->end();
}

// Where UCX has none left there may be other memory.
Result<ExposableMemory> Exposures::make(size_t bytes) {
    if (ucx_ != nullptr) {
        if (auto made = ExposableMemory::allocate_by_ucx(*ucx_, bytes)) return made;
    }
    return ExposableMemory::allocate(bytes);
}

Result<std::span<std::byte>> Exposures::allocate(size_t bytes) {
    HANARE_TRY_ASSIGN(ExposableMemory made, make(bytes));
    const std::span memory = made.memory;
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
    const std::span<const std::byte> memory = found->second.memory;
    for (const auto& [region, exposure] : exposed_) {
        if (!overlap(exposure.memory, memory)) continue;
        return fail(HANARE_STATUS_BUSY, "%p: still exposed as region %u", address, region);
    }
    allocated_.erase(found);
    return {};
}

Result<uint32_t> Exposures::expose(std::span<std::byte> memory, fabric::Rights rights) {
    const std::lock_guard guard(lock_);
    // Revoking gives the memory other pages: only the first region that is all
    // of it has the file, or is UCX's.
    const auto found = allocated_.find(memory.data());
    const bool is_whole = found != allocated_.end() && found->second.memory.size() == memory.size();
    if (is_whole && found->second.of_ucx != nullptr) {
        // What UCX cannot is done without it.
        if (const auto region = ucx_->expose(*found->second.of_ucx, rights)) {
            Exposure& exposure = exposed_[*region];
            exposure.memory = memory;
            exposure.of_ucx = std::move(found->second.of_ucx);
            return *region;
        }
    }
    sys::FileDescriptor file;
    if (is_whole) file = std::move(found->second.file);
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
    const bool is_of_ucx = exposed_[region].of_ucx != nullptr;
    Result<void> revoked = is_of_ucx ? ucx_->revoke(region) : regions_.revoke(region);
    if (revoked) return {};
    // After an error it is concealed.
    if (is_of_ucx) (void)ucx_->conceal(region);
    forget(region, {});
    return revoked;
}

Result<void> Exposures::conceal(uint32_t region) {
    const std::lock_guard guard(lock_);
    HANARE_TRY(check_exposed(region));
    const Exposure& exposure = exposed_[region];
    if (exposure.holders != 0) {
        return fail(HANARE_STATUS_BUSY, "region %u: a window needs it", region);
    }
    sys::FileDescriptor file;
    Result<void> concealed =
        exposure.of_ucx != nullptr ? ucx_->conceal(region) : regions_.conceal(region, &file);
    forget(region, std::move(file));
    return concealed;
}

// What it had of the memory is for who exposes that again.
void Exposures::forget(uint32_t region, sys::FileDescriptor file) {
    const auto exposed = exposed_.find(region);
    if (const auto found = allocated_.find(exposed->second.memory.data());
        found != allocated_.end()) {
        if (file.is_open()) found->second.file = std::move(file);
        if (exposed->second.of_ucx != nullptr) {
            found->second.of_ucx = std::move(exposed->second.of_ucx);
        }
    }
    exposed_.erase(exposed);
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
