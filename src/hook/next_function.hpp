// SPDX-License-Identifier: Apache-2.0
//
// The definition behind ours of a libc function: libc's own, or that of a sanitizer run-time.
// Looked up when first needed, since constructors of other libraries may come first; signals.cpp
// looks all of them up when the library is loaded, so that no signal handler calls the dynamic
// linker.
#pragma once

#include <atomic>

namespace hanare::hook {

// Never null: traps for a function that this libc does not have.
void* find_next_function(const char* name) noexcept;
void* find_next_function_if_there(const char* name) noexcept;

template <typename Function>
class NextFunction {
public:
    explicit constexpr NextFunction(const char* name) : name_(name) {}

    void resolve() noexcept { get(); }
    // Of a function that older libcs do not have.
    bool is_there() noexcept {
        if (function_.load(std::memory_order_acquire) != nullptr) return true;
        function_.store(find_next_function_if_there(name_), std::memory_order_release);
        return function_.load(std::memory_order_acquire) != nullptr;
    }

    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        return get()(arguments...);
    }

private:
    Function* get() noexcept {
        void* function = function_.load(std::memory_order_acquire);
        if (function == nullptr) {
            function = find_next_function(name_);
            function_.store(function, std::memory_order_release);
        }
        return reinterpret_cast<Function*>(function);
    }

    const char* name_;
    std::atomic<void*> function_{nullptr};
};

}  // namespace hanare::hook
