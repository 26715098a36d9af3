// SPDX-License-Identifier: Apache-2.0
#include "sys/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "sys/file.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

using Kind = ElfFile::Kind;

// The head of a 64-bit program, as much of it as an inspection reads.
struct Head {
    Elf64_Ehdr elf = {};
    std::vector<Elf64_Phdr> headers;
    std::string rest;

    Head() {
        std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
        elf.e_ident[EI_CLASS] = ELFCLASS64;
        elf.e_ident[EI_DATA] = ELFDATA2LSB;
        elf.e_ident[EI_VERSION] = EV_CURRENT;
        elf.e_type = ET_DYN;
        elf.e_machine = EM_X86_64;
        elf.e_phoff = sizeof elf;
        elf.e_phentsize = sizeof(Elf64_Phdr);
        Elf64_Phdr load = {};
        load.p_type = PT_LOAD;
        headers.push_back(load);
    }
    void add_loader(const std::string& path) {
        Elf64_Phdr header = {};
        header.p_type = PT_INTERP;
        header.p_offset = sizeof elf + (headers.size() + 1) * sizeof header;
        header.p_filesz = path.size() + 1;
        headers.push_back(header);
        rest = path + '\0';
    }
    std::string text() const {
        Elf64_Ehdr head = elf;
        head.e_phnum = static_cast<uint16_t>(headers.size());
        std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
        bytes.append(reinterpret_cast<const char*>(headers.data()),
                     headers.size() * sizeof headers[0]);
        return bytes + rest;
    }
};

ElfFile inspect(const std::string& text) {
    const testing::TemporaryDirectory directory;
    FileDescriptor file;
    EXPECT_EQ(open_unnamed(directory.path(), file), 0);
    EXPECT_EQ(
        write_at(file.number(), 0, reinterpret_cast<const std::byte*>(text.data()), text.size()),
        0);
    return inspect_elf(file.number());
}

TEST(ElfFile, ProgramsOfThisMachine) {
    const FileDescriptor program(open("/bin/true", O_RDONLY | O_CLOEXEC));
    const ElfFile found = inspect_elf(program.number());
    EXPECT_EQ(found.kind, Kind::kDynamic);
    EXPECT_EQ(found.machine, EM_X86_64);
    EXPECT_NE(found.loader.find("ld-linux"), std::string::npos) << found.loader;
}

TEST(ElfFile, DynamicAndStatic) {
    Head head;
    EXPECT_EQ(inspect(head.text()).kind, Kind::kStatic);
    head.elf.e_type = ET_EXEC;
    EXPECT_EQ(inspect(head.text()).kind, Kind::kStatic);
    head.add_loader("/lib/ld-musl-x86_64.so.1");
    const ElfFile found = inspect(head.text());
    EXPECT_EQ(found.kind, Kind::kDynamic);
    EXPECT_EQ(found.loader, "/lib/ld-musl-x86_64.so.1");
}

TEST(ElfFile, OtherClassesAndMachines) {
    Head head;
    head.elf.e_ident[EI_CLASS] = ELFCLASS32;
    head.elf.e_machine = EM_386;
    EXPECT_EQ(inspect(head.text()).kind, Kind::k32Bit);
    head.elf.e_machine = EM_X86_64;
    EXPECT_EQ(inspect(head.text()).kind, Kind::k32Bit);
    head.elf.e_machine = EM_AARCH64;
    EXPECT_EQ(inspect(head.text()).kind, Kind::kOtherMachine);
    head.elf.e_ident[EI_DATA] = ELFDATA2MSB;
    head.elf.e_machine = EM_S390 << 8;
    const ElfFile found = inspect(head.text());
    EXPECT_EQ(found.kind, Kind::kOtherMachine);
    EXPECT_EQ(machine_name(found.machine), "S/390");
    EXPECT_EQ(machine_name(999), "machine 999");
}

TEST(ElfFile, WhatIsNoProgram) {
    EXPECT_EQ(inspect("").kind, Kind::kNone);
    EXPECT_EQ(inspect("#!/bin/sh\n").kind, Kind::kNone);
    EXPECT_EQ(inspect(std::string(200, '\0')).kind, Kind::kNone);
    Head object;
    object.elf.e_type = ET_REL;
    EXPECT_EQ(inspect(object.text()).kind, Kind::kNone);
    Head odd;
    odd.elf.e_phentsize = 7;
    EXPECT_EQ(inspect(odd.text()).kind, Kind::kNone);
    Head far;
    far.elf.e_phoff = UINT64_MAX - 8;
    EXPECT_EQ(inspect(far.text()).kind, Kind::kNone);
}

TEST(ElfFile, LoadersThatCannotBe) {
    Head endless;
    endless.add_loader("/lib/ld.so");
    endless.headers.back().p_filesz = UINT64_MAX;
    EXPECT_EQ(inspect(endless.text()).kind, Kind::kNone);
    Head open_ended;
    open_ended.add_loader("/lib/ld.so");
    open_ended.rest.back() = 'x';
    EXPECT_EQ(inspect(open_ended.text()).kind, Kind::kNone);
    Head elsewhere;
    elsewhere.add_loader("/lib/ld.so");
    elsewhere.headers.back().p_offset = UINT64_MAX - 4;
    EXPECT_EQ(inspect(elsewhere.text()).kind, Kind::kNone);
}

// Every beginning of a good file, and files with a changed byte, are taken for something or
// nothing.
TEST(ElfFile, DamagedFiles) {
    Head head;
    head.add_loader("/lib64/ld-linux-x86-64.so.2");
    const std::string text = head.text();
    for (size_t length = 0; length < text.size(); ++length) {
        EXPECT_NE(inspect(text.substr(0, length)).kind, Kind::kDynamic) << length;
    }
    Prng random(testing::test_seed());
    for (int i = 0; i < 500; ++i) {
        std::string changed = text;
        changed[random.next() % changed.size()] = static_cast<char>(random.next());
        (void)inspect(changed);
    }
}

}  // namespace
}  // namespace hanare::sys
