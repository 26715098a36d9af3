// SPDX-License-Identifier: Apache-2.0
//
// Libraries of this machine as files.  Included by *_test.cpp only.
#pragma once

#include <link.h>

#include <cstdint>
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

}  // namespace hanare::hook::testing
