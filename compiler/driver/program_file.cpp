// SPDX-License-Identifier: Apache-2.0
#include "program_file.hpp"

#include <cstring>
#include <fstream>
#include <string_view>

namespace hanare::driver {
namespace {

// Every read is checked by the stream: what lies outside of the file fails.
class File {
public:
    explicit File(const std::string& path) : stream_(path, std::ios::in | std::ios::binary) {}

    template <typename T>
    bool read(uint64_t offset, T* to, uint64_t count = 1) {
        return stream_.seekg(static_cast<std::streamoff>(offset)) &&
               stream_.read(reinterpret_cast<char*>(to),
                            static_cast<std::streamsize>(count * sizeof(T)));
    }

    bool read_header(Elf64_Ehdr& header) {
        return read(0, &header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
               header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
               header.e_machine == EM_X86_64 && header.e_phentsize == sizeof(Elf64_Phdr) &&
               header.e_shentsize == sizeof(Elf64_Shdr);
    }

    bool read_sections(const Elf64_Ehdr& header) {
        sections_.resize(header.e_shnum);
        if (!read(header.e_shoff, sections_.data(), header.e_shnum)) return false;
        return header.e_shstrndx < header.e_shnum && read_texts(header.e_shstrndx, section_names_);
    }

    template <typename T>
    std::vector<T> read_table(const Elf64_Shdr& section) {
        std::vector<T> table(section.sh_size <= kTableMax ? section.sh_size / sizeof(T) : 0);
        if (!read(section.sh_offset, table.data(), table.size())) table.clear();
        return table;
    }

    bool read_texts(size_t section, std::string& texts) {
        if (section >= sections_.size() || sections_[section].sh_size > kTableMax) return false;
        texts.resize(sections_[section].sh_size);
        return read(sections_[section].sh_offset, texts.data(), texts.size());
    }

    const std::vector<Elf64_Shdr>& sections() const { return sections_; }

    std::string section_name(size_t section) const {
        if (section >= sections_.size()) return "";
        return text_at(section_names_, sections_[section].sh_name);
    }

    static std::string text_at(const std::string& texts, uint64_t offset) {
        return offset < texts.size() ? std::string(texts.c_str() + offset) : "";
    }

private:
    static constexpr uint64_t kTableMax = uint64_t{4} << 30;
    std::ifstream stream_;
    std::vector<Elf64_Shdr> sections_;
    std::string section_names_;
};

void note_libraries(File& file, const Elf64_Shdr& section, ProgramFile& program) {
    std::string texts;
    if (!file.read_texts(section.sh_link, texts)) return;
    for (const Elf64_Dyn& entry : file.read_table<Elf64_Dyn>(section)) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag != DT_NEEDED) continue;
        program.needs_library |= File::text_at(texts, entry.d_un.d_val).starts_with("libhanare.so");
    }
}

void note_data(File& file, const Elf64_Shdr& section, ProgramFile& program) {
    std::string texts;
    if (!file.read_texts(section.sh_link, texts)) return;
    for (const Elf64_Sym& symbol : file.read_table<Elf64_Sym>(section)) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
        program.data.push_back({File::text_at(texts, symbol.st_name),
                                file.section_name(symbol.st_shndx), symbol.st_size});
    }
}

}  // namespace

std::optional<ProgramFile> look_at_program(const std::string& path) {
    File file(path);
    Elf64_Ehdr header;
    if (!file.read_header(header) || !file.read_sections(header)) return std::nullopt;
    ProgramFile program;
    for (size_t i = 0; i < file.sections().size(); ++i) {
        const Elf64_Shdr& section = file.sections()[i];
        const std::string name = file.section_name(i);
        if (name == ".dlm") program.dlm_bytes = section.sh_size;
        if (name == ".interp") program.has_loader = true;
        if (section.sh_type == SHT_DYNAMIC) note_libraries(file, section, program);
        if (section.sh_type == SHT_SYMTAB) note_data(file, section, program);
    }
    return program;
}

std::string hide_segment(const std::string& path) {
    File file(path);
    Elf64_Ehdr header;
    if (!file.read_header(header) || !file.read_sections(header)) {
        return "it is not an ELF file of 64 bits for x86-64";
    }
    uint64_t start = 0;
    for (size_t i = 0; i < file.sections().size(); ++i) {
        if (file.section_name(i) == ".dlm") start = file.sections()[i].sh_addr;
    }
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
        const uint64_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
        Elf64_Phdr segment;
        if (!file.read(offset, &segment)) return "its program headers cannot be read";
        if (segment.p_type != PT_LOAD || segment.p_vaddr != start) continue;
        if (segment.p_filesz != 0) return "the linker has written bytes for dlm arrays";
        segment.p_type = kSegmentType;
        std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(static_cast<std::streamoff>(offset));
        out.write(reinterpret_cast<const char*>(&segment), sizeof segment);
        return out.flush() ? "" : "it cannot be written to";
    }
    return "it has no segment for its dlm arrays";
}

}  // namespace hanare::driver
