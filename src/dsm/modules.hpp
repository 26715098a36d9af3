// SPDX-License-Identifier: Apache-2.0
//
// Modules: variables of a program and its libraries by which and where, since the same variable
// lies at different addresses in different tasks.  Any thread, not in signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace hanare::dsm {

struct Variable {
    // The file's name without folders (the program itself has none), and which build it is.
    std::string module;
    uint64_t offset = 0;
};

// Of the variables in [address, address + bytes), which lie in one writable part of a module.
std::optional<Variable> find_variable(const void* address, size_t bytes);
// Where that is here.
std::byte* address_of(const Variable& variable, size_t bytes);

}  // namespace hanare::dsm
