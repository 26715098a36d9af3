// SPDX-License-Identifier: Apache-2.0
#include "dsm/modules.hpp"

#include <link.h>
#include <string_view>

namespace hanare::dsm {
namespace {

std::string_view name_of(const dl_phdr_info& module) {
    const std::string_view path = module.dlpi_name == nullptr ? "" : module.dlpi_name;
    return path.substr(path.rfind('/') + 1);
}

bool is_writable_at(const dl_phdr_info& module, uint64_t offset, size_t bytes) {
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = module.dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
        if (offset >= part.p_vaddr && bytes <= part.p_memsz &&
            offset - part.p_vaddr <= part.p_memsz - bytes) {
            return true;
        }
    }
    return false;
}

template <typename Visit>
void for_each_module(Visit visit) {
    dl_iterate_phdr([](dl_phdr_info* module, size_t,
                       void* context) { return (*static_cast<Visit*>(context))(*module) ? 1 : 0; },
                    &visit);
}

}  // namespace

std::optional<Variable> find_variable(const void* address, size_t bytes) {
    std::optional<Variable> found;
    for_each_module([&](const dl_phdr_info& module) {
        const uint64_t offset = reinterpret_cast<uint64_t>(address) - module.dlpi_addr;
        if (!is_writable_at(module, offset, bytes)) return false;
        found = Variable{std::string(name_of(module)), offset};
        return true;
    });
    return found;
}

std::byte* address_of(const Variable& variable, size_t bytes) {
    std::byte* address = nullptr;
    for_each_module([&](const dl_phdr_info& module) {
        if (name_of(module) != variable.module) return false;
        if (is_writable_at(module, variable.offset, bytes)) {
            address = reinterpret_cast<std::byte*>(module.dlpi_addr + variable.offset);
        }
        return true;
    });
    return address;
}

}  // namespace hanare::dsm
