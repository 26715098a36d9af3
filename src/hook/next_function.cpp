// SPDX-License-Identifier: Apache-2.0
#include "hook/next_function.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "base/assert.hpp"
#include "base/sanitizers.hpp"

#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
#define HANARE_HOOK_SANITIZED 1
#endif

namespace hanare::hook {

namespace {

#if defined(HANARE_HOOK_SANITIZED)
// A sanitizer linked statically into the same program has its definition replaced, not preceded,
// by ours; it keeps the function under a second name.  Used only when ours comes first of all,
// because a sanitizer in front of us calls us.
void* find_replaced_interceptor(const char* name) noexcept {
    Dl_info ours = {};
    Dl_info first = {};
    void* first_definition = dlsym(RTLD_DEFAULT, name);
    if (first_definition == nullptr) return nullptr;
    if (dladdr(reinterpret_cast<void*>(&find_next_function), &ours) == 0) return nullptr;
    if (dladdr(first_definition, &first) == 0) return nullptr;
    if (ours.dli_fbase != first.dli_fbase) return nullptr;
    char interceptor[64];
    std::snprintf(interceptor, sizeof interceptor, "__interceptor_%s", name);
    return dlsym(RTLD_DEFAULT, interceptor);
}
#endif

}  // namespace

void* find_next_function_if_there(const char* name) noexcept {
#if defined(HANARE_HOOK_SANITIZED)
    if (void* function = find_replaced_interceptor(name)) return function;
#endif
    return dlsym(RTLD_NEXT, name);
}

void* find_next_function(const char* name) noexcept {
    void* function = find_next_function_if_there(name);
    HANARE_ASSERT(function != nullptr);
    return function;
}

}  // namespace hanare::hook
