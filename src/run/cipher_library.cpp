// SPDX-License-Identifier: Apache-2.0
#include "run/cipher_library.hpp"

#include <dlfcn.h>
#include <intel-ipsec-mb.h>

#include "sys/private_memory.hpp"

namespace hanare::run {

namespace {

constexpr const char* kName = "libIPSec_MB.so.1";
constexpr size_t kAlignment = 64;

constinit decltype(&imb_get_mb_mgr_size) manager_bytes = nullptr;
constinit decltype(&imb_set_pointers_mb_mgr) place_manager = nullptr;
constinit decltype(&::init_mb_mgr_auto) init_manager = nullptr;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

Result<void> load_cipher_library() {
    // Its own functions before the program's of the same names.
    void* const library = dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library != nullptr && find(library, "imb_get_mb_mgr_size", manager_bytes) &&
        find(library, "imb_set_pointers_mb_mgr", place_manager) &&
        find(library, "init_mb_mgr_auto", init_manager)) {
        return {};
    }
    const char* const why = dlerror();
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "blocks cannot be sealed, as a secret asks for: %.150s",
                why != nullptr ? why : kName);
}

}  // namespace hanare::run

extern "C" {

IMB_MGR* alloc_mb_mgr(uint64_t flags) {
    if (hanare::run::place_manager == nullptr) return nullptr;
    void* const memory =
        hanare::sys::allocate_private(hanare::run::manager_bytes(), hanare::run::kAlignment);
    return memory == nullptr ? nullptr : hanare::run::place_manager(memory, flags, 1);
}

void free_mb_mgr(IMB_MGR* manager) { hanare::sys::release_private(manager); }

void init_mb_mgr_auto(IMB_MGR* manager, IMB_ARCH* found) {
    hanare::run::init_manager(manager, found);
}
}
