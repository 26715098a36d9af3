// SPDX-License-Identifier: Apache-2.0
//
// Libraries of this machine as files, and files made here.  Included by *_test.cpp only.
#pragma once

#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hook/rewrite/code_image.hpp"

namespace hanare::hook::testing {

struct CodeFile {
    std::string path;
    std::vector<uint8_t> content;

    // Where an address of the ELF file is in `content`; null outside its segments.
    const uint8_t* place_of(uint64_t address) const {
        const auto& elf = *reinterpret_cast<const ElfW(Ehdr)*>(content.data());
        const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(content.data() + elf.e_phoff);
        for (size_t index = 0; index < elf.e_phnum; ++index) {
            const ElfW(Phdr)& header = headers[index];
            if (header.p_type == PT_LOAD && address >= header.p_vaddr &&
                address - header.p_vaddr < header.p_filesz) {
                return content.data() + header.p_offset + (address - header.p_vaddr);
            }
        }
        return nullptr;
    }
};

inline CodeFile read_code_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {path, std::vector<uint8_t>(std::istreambuf_iterator<char>(stream), {})};
}

// The file of each library that this process has loaded: libc and ld.so among them.
inline std::vector<CodeFile> code_files() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* module, size_t, void* context) {
            if (module->dlpi_name[0] == '/') {
                static_cast<std::vector<std::string>*>(context)->push_back(module->dlpi_name);
            }
            return 0;
        },
        &paths);
    std::vector<CodeFile> files;
    for (const std::string& path : paths) files.push_back(read_code_file(path));
    return files;
}

// An ELF file with one executable segment, at the same place in the file and in memory, and without
// a table of functions.
inline std::vector<uint8_t> elf_file(const std::vector<uint8_t>& code, size_t code_at) {
    ElfW(Ehdr) elf = {};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_machine = EM_X86_64;
    elf.e_phentsize = sizeof(ElfW(Phdr));
    elf.e_phnum = 1;
    elf.e_phoff = sizeof elf;
    ElfW(Phdr) header = {};
    header.p_type = PT_LOAD;
    header.p_flags = PF_R | PF_X;
    header.p_offset = header.p_vaddr = code_at;
    header.p_filesz = header.p_memsz = code.size();
    std::vector<uint8_t> file(code_at);
    std::memcpy(file.data(), &elf, sizeof elf);
    std::memcpy(file.data() + sizeof elf, &header, sizeof header);
    file.insert(file.end(), code.begin(), code.end());
    return file;
}

}  // namespace hanare::hook::testing
