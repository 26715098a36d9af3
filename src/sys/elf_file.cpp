// SPDX-License-Identifier: Apache-2.0
#include "sys/elf_file.hpp"

#include <elf.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <vector>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

// The kernel refuses more than a page of program headers.
constexpr size_t kHeadersMax = 65536 / sizeof(Elf64_Phdr);

bool read_object(int file, uint64_t offset, void* object, size_t bytes) {
    return offset <= INT64_MAX - bytes &&
           read_at(file, offset, static_cast<std::byte*>(object), bytes) == 0;
}

bool is_program(uint16_t type) { return type == ET_EXEC || type == ET_DYN; }

// The path that a PT_INTERP names; false when there is none to be had.
bool read_loader(int file, const Elf64_Phdr& header, std::string& loader) {
    if (header.p_filesz < 2 || header.p_filesz > PATH_MAX) return false;
    std::string path(header.p_filesz, '\0');
    if (!read_object(file, header.p_offset, path.data(), path.size())) return false;
    if (path.back() != '\0') return false;
    loader = path.c_str();
    return true;
}

ElfFile inspect_64(int file, const Elf64_Ehdr& head) {
    ElfFile result;
    result.machine = head.e_machine;
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > kHeadersMax) {
        return result;
    }
    std::vector<Elf64_Phdr> headers(head.e_phnum);
    if (!read_object(file, head.e_phoff, headers.data(), headers.size() * sizeof headers[0])) {
        return result;
    }
    result.kind = ElfFile::Kind::kStatic;
    for (const Elf64_Phdr& header : headers) {
        if (header.p_type != PT_INTERP) continue;
        const bool is_read = read_loader(file, header, result.loader);
        result.kind = is_read ? ElfFile::Kind::kDynamic : ElfFile::Kind::kNone;
        break;  // the kernel takes the first
    }
    return result;
}

}  // namespace

ElfFile inspect_elf(int file) {
    // The first fields of both classes lie at the same places.
    Elf32_Ehdr head = {};
    if (!read_object(file, 0, &head, sizeof head)) return {};
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
    ElfFile result;
    if (head.e_ident[EI_DATA] == ELFDATA2MSB) {
        result.machine = static_cast<uint16_t>(head.e_machine >> 8 | head.e_machine << 8);
        result.kind = ElfFile::Kind::kOtherMachine;
        return result;
    }
    result.machine = head.e_machine;
    if (head.e_ident[EI_DATA] != ELFDATA2LSB || !is_program(head.e_type)) return {};
    const bool is_ours = head.e_machine == EM_X86_64 || head.e_machine == EM_386;
    if (!is_ours) {
        result.kind = ElfFile::Kind::kOtherMachine;
    } else if (head.e_ident[EI_CLASS] == ELFCLASS32) {
        result.kind = ElfFile::Kind::k32Bit;
    } else if (head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_machine == EM_X86_64) {
        Elf64_Ehdr whole = {};
        if (read_object(file, 0, &whole, sizeof whole)) return inspect_64(file, whole);
    }
    return result;
}

std::string machine_name(uint16_t machine) {
    switch (machine) {
        case EM_X86_64: return "x86-64";
        case EM_386: return "i386";
        case EM_ARM: return "ARM";
        case EM_AARCH64: return "AArch64";
        case EM_PPC64: return "PowerPC 64";
        case EM_RISCV: return "RISC-V";
        case EM_S390: return "S/390";
        case EM_MIPS: return "MIPS";
        case EM_SPARCV9: return "SPARC 9";
        default: return "machine " + std::to_string(machine);
    }
}

}  // namespace hanare::sys
