// SPDX-License-Identifier: Apache-2.0
//
// common_object(): a small ELF object.  A definition goes before all COMMON symbols of its name,
// and this one's section is one that the linker's script places.
#include <cstring>

#include "fortran_names.hpp"

namespace hanare::driver {
namespace {

enum : Elf64_Half { kNone, kData, kSymbols, kTexts, kStackNote, kSections };
constexpr uint64_t kAlignment = 64;

template <typename T>
std::string bytes_of(const T& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Names, each ended by a zero, behind an empty one.
class Texts {
public:
    Elf64_Word add(const std::string& text) {
        const auto place = static_cast<Elf64_Word>(bytes.size());
        bytes += text + '\0';
        return place;
    }
    std::string bytes = std::string(1, '\0');
};

Elf64_Ehdr header_of_object(uint64_t section_table) {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_REL;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_shoff = section_table;
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSections;
    header.e_shstrndx = kTexts;
    return header;
}

}  // namespace

std::string common_object(const std::vector<DataSymbol>& common) {
    constexpr Elf64_Xword kLarge = 0x10000000;  // SHF_X86_64_LARGE
    Texts texts;
    std::string symbols = bytes_of(Elf64_Sym{});
    uint64_t data_bytes = 0;
    for (const DataSymbol& symbol : common) {
        data_bytes = (data_bytes + kAlignment - 1) / kAlignment * kAlignment;
        Elf64_Sym entry = {};
        entry.st_name = texts.add(symbol.name);
        entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
        entry.st_shndx = kData;
        entry.st_value = data_bytes;
        entry.st_size = symbol.bytes;
        symbols += bytes_of(entry);
        data_bytes += symbol.bytes;
    }
    Elf64_Shdr sections[kSections] = {};
    sections[kData].sh_name = texts.add(".lbss");
    sections[kData].sh_type = SHT_NOBITS;
    sections[kData].sh_flags = SHF_ALLOC | SHF_WRITE | kLarge;
    sections[kData].sh_size = data_bytes;
    sections[kData].sh_addralign = kAlignment;
    sections[kSymbols].sh_name = texts.add(".symtab");
    sections[kSymbols].sh_type = SHT_SYMTAB;
    sections[kSymbols].sh_size = symbols.size();
    sections[kSymbols].sh_link = kTexts;
    sections[kSymbols].sh_info = 1;  // no local ones but the first
    sections[kSymbols].sh_addralign = alignof(Elf64_Sym);
    sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
    // Without it the linker would take the program to execute code on its stack.
    sections[kStackNote].sh_name = texts.add(".note.GNU-stack");
    sections[kStackNote].sh_type = SHT_PROGBITS;
    sections[kStackNote].sh_addralign = 1;
    sections[kTexts].sh_name = texts.add(".strtab");
    sections[kTexts].sh_type = SHT_STRTAB;
    sections[kTexts].sh_size = texts.bytes.size();
    sections[kTexts].sh_addralign = 1;

    const uint64_t symbols_at = sizeof(Elf64_Ehdr) + sizeof sections;
    sections[kData].sh_offset = sections[kStackNote].sh_offset = symbols_at;
    sections[kSymbols].sh_offset = symbols_at;
    sections[kTexts].sh_offset = symbols_at + symbols.size();
    return bytes_of(header_of_object(sizeof(Elf64_Ehdr))) + bytes_of(sections) + symbols +
           texts.bytes;
}

}  // namespace hanare::driver
