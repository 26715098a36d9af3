// SPDX-License-Identifier: Apache-2.0
#ifdef HANARE_HAVE_UCX

#include "fabric/ucx_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

constexpr const char* kName = "libucp.so.0";

// A variable of the environment, which is as it was in the end.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* const text = std::getenv(name); text != nullptr) before_ = text;
        setenv(name, value, 1);
    }
    ~Variable() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* const name_;
    std::optional<std::string> before_;
};

// It reads these once, while it is loaded.
void* open_quietly() {
    const Variable no_handlers("UCX_ERROR_SIGNALS", "");
    const Variable no_debugging("UCX_DEBUG_SIGNO", "0");
    const Variable no_hooks("UCX_MEM_EVENTS", "n");
    const Variable no_mmap_hooks("UCX_MEM_MMAP_HOOK_MODE", "none");
    const Variable no_file_system("UCX_VFS_ENABLE", "n");
    const char* const level = std::getenv("UCX_LOG_LEVEL");
    const Variable no_lines("UCX_LOG_LEVEL", level != nullptr ? level : "fatal");
    return dlopen(kName, RTLD_NOW | RTLD_LOCAL);
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool find_all(void* library, UcxLibrary& functions) {
    return find(library, "ucp_get_version", functions.get_version) &&
           find(library, "ucp_config_read", functions.config_read) &&
           find(library, "ucp_config_modify", functions.config_modify) &&
           find(library, "ucp_config_release", functions.config_release) &&
           find(library, "ucp_init_version", functions.init_version) &&
           find(library, "ucp_cleanup", functions.cleanup) &&
           find(library, "ucp_mem_map", functions.mem_map) &&
           find(library, "ucp_mem_query", functions.mem_query) &&
           find(library, "ucp_mem_unmap", functions.mem_unmap) &&
           find(library, "ucp_rkey_pack", functions.rkey_pack) &&
           find(library, "ucp_rkey_buffer_release", functions.rkey_buffer_release) &&
           find(library, "ucp_ep_rkey_unpack", functions.ep_rkey_unpack) &&
           find(library, "ucp_rkey_destroy", functions.rkey_destroy) &&
           find(library, "ucp_worker_create", functions.worker_create) &&
           find(library, "ucp_worker_destroy", functions.worker_destroy) &&
           find(library, "ucp_worker_get_address", functions.worker_get_address) &&
           find(library, "ucp_worker_release_address", functions.worker_release_address) &&
           find(library, "ucp_worker_progress", functions.worker_progress) &&
           find(library, "ucp_ep_create", functions.ep_create) &&
           find(library, "ucp_ep_close_nbx", functions.ep_close) &&
           find(library, "ucp_ep_flush_nbx", functions.ep_flush) &&
           find(library, "ucp_ep_print_info", functions.ep_print_info) &&
           find(library, "ucp_put_nbx", functions.put) &&
           find(library, "ucp_get_nbx", functions.get) &&
           find(library, "ucp_atomic_op_nbx", functions.atomic_op) &&
           find(library, "ucp_request_check_status", functions.request_check_status) &&
           find(library, "ucp_request_free", functions.request_free) &&
           find(library, "ucs_status_string", functions.status_text);
}

Result<UcxLibrary> load_now() {
    // Its threads take none of the program's signals.
    const sys::SignalBlock no_signals;
    void* const library = open_quietly();
    if (library == nullptr) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "UCX: %s cannot be loaded (%.120s); Debian has it in libucx0", kName,
                    dlerror());
    }
    UcxLibrary functions = {};
    if (!find_all(library, functions)) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "UCX: %s lacks functions that were there in %d.%d",
                    kName, UCP_API_MAJOR, UCP_API_MINOR);
    }
    return functions;
}

}  // namespace

Result<const UcxLibrary*> UcxLibrary::load() {
    static const Result<UcxLibrary> loaded = load_now();
    if (!loaded) return std::unexpected(loaded.error());
    return &*loaded;
}

}  // namespace hanare::fabric

#endif
