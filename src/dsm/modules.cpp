// SPDX-License-Identifier: Apache-2.0
#include "dsm/modules.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/units.hpp"

namespace hanare::dsm {
namespace {

std::string_view name_of(const dl_phdr_info& module) {
    const std::string_view path = module.dlpi_name == nullptr ? "" : module.dlpi_name;
    return path.substr(path.rfind('/') + 1);
}

void append_hex(std::string& text, const unsigned char* bytes, size_t count) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
}

// Another build has other variables at the same places: its note says which it is, or, without one,
// how its parts lie.
std::string module_of(const dl_phdr_info& module) {
    constexpr char kOwner[] = "GNU";
    std::string text(name_of(module));
    for (int i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = module.dlpi_phdr[i];
        if (part.p_type == PT_LOAD) {
            text += " " + std::to_string(part.p_vaddr) + "+" + std::to_string(part.p_memsz);
        }
        if (part.p_type != PT_NOTE) continue;
        const auto* const notes =
            reinterpret_cast<const unsigned char*>(module.dlpi_addr + part.p_vaddr);
        ElfW(Nhdr) head;
        for (size_t at = 0; at + sizeof head <= part.p_memsz;) {
            std::memcpy(&head, notes + at, sizeof head);
            const size_t name = at + sizeof head;
            const size_t content = name + round_up(head.n_namesz, sizeof(uint32_t));
            if (content + head.n_descsz > part.p_memsz) break;
            if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof kOwner &&
                std::memcmp(notes + name, kOwner, sizeof kOwner) == 0) {
                append_hex(text += " ", notes + content, head.n_descsz);
            }
            at = round_up(content + head.n_descsz, std::max<size_t>(part.p_align, 1));
        }
    }
    return text;
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
        found = Variable{module_of(module), offset};
        return true;
    });
    return found;
}

std::byte* address_of(const Variable& variable, size_t bytes) {
    std::byte* address = nullptr;
    for_each_module([&](const dl_phdr_info& module) {
        if (module_of(module) != variable.module) return false;
        if (is_writable_at(module, variable.offset, bytes)) {
            address = reinterpret_cast<std::byte*>(module.dlpi_addr + variable.offset);
        }
        return true;
    });
    return address;
}

}  // namespace hanare::dsm
