// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_context.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/units.hpp"
#include "fabric/ucx_library.hpp"
#include "sys/clock.hpp"
#include "sys/memory_alias.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

std::unexpected<Error> failed(const UcxLibrary& library, ucs_status_t status, const char* what) {
    return fail(HANARE_STATUS_SYSTEM, "UCX: %s: %.120s", what, library.status_text(status));
}

// A network adapter's fetch-ops are not atomic with those of processors: `cpu` leaves them out.
// Large pages cannot be shown at a second address of less alignment.
Result<void> configure(const UcxLibrary& library, ucp_config_t* config,
                       const std::string& transports) {
    constexpr const char* kNoHugePages[] = {"POSIX_HUGETLB_MODE", "SYSV_HUGETLB_MODE"};
    ucs_status_t status = library.config_modify(config, "TLS", transports.c_str());
    if (status == UCS_OK) status = library.config_modify(config, "ATOMIC_MODE", "cpu");
    if (status != UCS_OK) return failed(library, status, "a setting is not taken");
    for (const char* const name : kNoHugePages) {
        // Older ones have no such setting, or another name for it; what follows fails then.
        (void)library.config_modify(config, name, "no");
    }
    return {};
}

std::string wanted_transports(const UcxContext::Settings& settings) {
    if (!settings.transports.empty()) return settings.transports;
    const char* const text = std::getenv("UCX_TLS");
    return text != nullptr && *text != '\0' ? text : UcxContext::kTransports;
}

}  // namespace

// ---- the context

Result<std::unique_ptr<UcxContext>> UcxContext::open(const Settings& settings) {
    HANARE_TRY_ASSIGN(const UcxLibrary* const library, UcxLibrary::load());
    // Threads that UCX makes take none of the program's signals.
    const sys::SignalBlock no_signals;
    const std::string transports = wanted_transports(settings);
    ucp_config_t* config = nullptr;
    ucs_status_t status = library->config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) return failed(*library, status, "its settings");
    const Result<void> configured = configure(*library, config, transports);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    params.mt_workers_shared = 1;
    ucp_context_h handle = nullptr;
    if (configured) {
        status = library->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &handle);
    }
    library->config_release(config);
    if (!configured) return std::unexpected(configured.error());
    if (status == UCS_OK) {
        return std::unique_ptr<UcxContext>(new UcxContext(*library, handle, transports));
    }
    return fail(HANARE_STATUS_NOT_SUPPORTED, "UCX: nothing of the transports '%.100s': %.80s",
                transports.c_str(), library->status_text(status));
}

UcxContext::~UcxContext() {
    while (!waiting_.empty()) give_back_first();
    library_.cleanup(handle_);
}

Result<ucp_worker*> UcxContext::make_worker() const {
    const sys::SignalBlock no_signals;
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucp_worker_h worker = nullptr;
    const ucs_status_t status = library_.worker_create(handle_, &params, &worker);
    if (status != UCS_OK) return failed(library_, status, "a worker");
    return worker;
}

// ---- memory

void UcxContext::give_back_later(ucp_mem* memory) const noexcept {
    (void)give_back_due();
    const std::lock_guard guard(waiting_lock_);
    if (waiting_.size() >= kWaitingMax) give_back_first();
    try {
        waiting_.push_back({memory, sys::now_ns() + kGrace_ns});
    } catch (const std::bad_alloc&) {
        (void)library_.mem_unmap(handle_, memory);
    }
}

bool UcxContext::give_back_due() const noexcept {
    const std::lock_guard guard(waiting_lock_);
    const uint64_t now = sys::now_ns();
    while (!waiting_.empty() && waiting_.front().until_ns <= now) give_back_first();
    return !waiting_.empty();
}

void UcxContext::give_back_first() const noexcept {
    (void)library_.mem_unmap(handle_, waiting_.front().memory);
    waiting_.pop_front();
}

Result<std::unique_ptr<UcxMemory>> UcxMemory::allocate(const UcxContext& context, size_t bytes) {
    const size_t whole = (bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
    HANARE_TRY_ASSIGN(sys::Mapping place, sys::Mapping::reserve(whole, kOsPageBytes));
    std::unique_ptr<UcxMemory> memory(new UcxMemory(context, std::move(place), bytes));
    // Nothing but zeros is there yet.
    HANARE_TRY(memory->replace());
    return memory;
}

UcxMemory::~UcxMemory() {
    if (pages_.handle != nullptr) give_back(pages_);
}

Result<void> UcxMemory::replace() {
    HANARE_TRY_ASSIGN(Pages fresh, make_pages());
    std::memcpy(fresh.address, address(), memory_.bytes());
    if (const int error =
            sys::alias_shared_memory(memory_.address(), fresh.address, memory_.bytes());
        error != 0) {
        give_back(fresh);
        return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error,
                          "UCX: memory of the transports '%.100s' is not shared memory",
                          context_.transports().c_str());
    }
    const Pages old = std::exchange(pages_, std::move(fresh));
    if (old.handle != nullptr) context_.give_back_later(old.handle);
    return {};
}

Result<UcxMemory::Pages> UcxMemory::make_pages() const {
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = memory_.bytes();
    params.flags = UCP_MEM_MAP_ALLOCATE;
    Pages pages;
    const ucs_status_t status =
        context_.library().mem_map(context_.handle(), &params, &pages.handle);
    if (status != UCS_OK) return failed(context_.library(), status, "memory");
    const Result<void> completed = complete(pages);
    if (completed) return pages;
    give_back(pages);
    return std::unexpected(completed.error());
}

Result<void> UcxMemory::complete(Pages& pages) const {
    const UcxLibrary& library = context_.library();
    ucp_mem_attr_t attributes = {};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    ucs_status_t status = library.mem_query(pages.handle, &attributes);
    if (status != UCS_OK) return failed(library, status, "the address of memory");
    pages.address = static_cast<std::byte*>(attributes.address);
    void* packed = nullptr;
    size_t bytes = 0;
    status = library.rkey_pack(context_.handle(), pages.handle, &packed, &bytes);
    if (status != UCS_OK) return failed(library, status, "the key of memory");
    const auto* const begin = static_cast<const std::byte*>(packed);
    pages.key.assign(begin, begin + bytes);
    library.rkey_buffer_release(packed);
    return {};
}

void UcxMemory::give_back(const Pages& pages) const noexcept {
    (void)context_.library().mem_unmap(context_.handle(), pages.handle);
}

}  // namespace hanare::fabric

#endif
