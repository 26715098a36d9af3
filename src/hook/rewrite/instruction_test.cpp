// SPDX-License-Identifier: Apache-2.0
//
// Every instruction of real libraries, beside GNU objdump.
#include "hook/rewrite/instruction.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "hook/rewrite/code_image.hpp"
#include "hook/rewrite/instruction_step.hpp"
#include "hook/rewrite/test_support.hpp"

namespace hanare::hook {
namespace {

using Kind = Instruction::Kind;

Instruction decode(std::initializer_list<uint8_t> bytes) {
    const std::vector<uint8_t> code(bytes);
    return decode_instruction(code);
}

TEST(InstructionTest, KnowsWhatAddressesRelativeToItself) {
    // mov 0x10(%rip), %eax; mov $1, 0x10(%rip) with the immediate behind the displacement
    EXPECT_EQ(decode({0x8b, 0x05, 0x10, 0, 0, 0}).relative_at, 2);
    const Instruction store = decode({0xc7, 0x05, 0x10, 0, 0, 0, 1, 0, 0, 0});
    EXPECT_EQ(store.relative_at, 2);
    EXPECT_EQ(store.bytes, 10);
    EXPECT_EQ(decode({0x8b, 0x04, 0x25, 0x10, 0, 0, 0}).relative_at, 0);  // absolute
    EXPECT_EQ(decode({0x8b, 0x45, 0x10}).relative_at, 0);                 // 0x10(%rbp)
}

TEST(InstructionTest, KnowsWhereJumpsLead) {
    const Instruction back = decode({0xeb, 0xfe});
    EXPECT_EQ(back.kind, Kind::kJump);
    EXPECT_EQ(back.target, 0);
    EXPECT_FALSE(back.goes_on);
    const Instruction conditional = decode({0x0f, 0x84, 0x00, 0x01, 0, 0});
    EXPECT_EQ(conditional.target, 0x106);
    EXPECT_TRUE(conditional.goes_on);
    EXPECT_EQ(decode({0xe8, 0xfb, 0xff, 0xff, 0xff}).target, 0);
    EXPECT_EQ(decode({0xff, 0xe0}).kind, Kind::kIndirect);  // jmp *%rax
    EXPECT_FALSE(decode({0xff, 0xe0}).goes_on);
    EXPECT_TRUE(decode({0xff, 0xd0}).goes_on);  // call *%rax
    EXPECT_FALSE(decode({0xc3}).goes_on);
    EXPECT_EQ(decode({0x0f, 0x05}).kind, Kind::kSystemCall);
}

TEST(InstructionTest, KnowsWhatUsesTheStackPointer) {
    EXPECT_TRUE(decode({0x50}).uses_stack_pointer);                        // push %rax
    EXPECT_TRUE(decode({0x48, 0x89, 0xe7}).uses_stack_pointer);            // mov %rsp, %rdi
    EXPECT_TRUE(decode({0x48, 0x83, 0xec, 8}).uses_stack_pointer);         // sub $8, %rsp
    EXPECT_FALSE(decode({0x48, 0x89, 0x44, 0x24, 8}).uses_stack_pointer);  // mov %rax, 8(%rsp)
    EXPECT_FALSE(decode({0x4c, 0x89, 0xe7}).uses_stack_pointer);           // mov %r12, %rdi
    EXPECT_FALSE(decode({0x41, 0xbc, 1, 0, 0, 0}).uses_stack_pointer);     // mov $1, %r12d
    EXPECT_TRUE(decode({0xbc, 1, 0, 0, 0}).uses_stack_pointer);            // mov $1, %esp
}

TEST(InstructionTest, RefusesWhatIsCutOffOrInvalid) {
    EXPECT_EQ(decode({}).bytes, 0);
    EXPECT_EQ(decode({0x66}).bytes, 0);
    EXPECT_EQ(decode({0xb8, 1, 0, 0}).bytes, 0);
    EXPECT_EQ(decode({0x06}).bytes, 0);        // push %es does not exist in 64-bit mode
    EXPECT_EQ(decode({0x8b, 0x84}).bytes, 0);  // its SIB is missing
    EXPECT_EQ(decode({0x8f, 0xe8, 0x78, 0xc0, 0xc1, 0x01}).bytes, 0);  // XOP: vprotb
    EXPECT_EQ(decode({0x8f, 0x00}).bytes, 2);                          // pop (%rax)
    const std::vector<uint8_t> prefixes(16, 0x66);
    EXPECT_EQ(decode_instruction(prefixes).bytes, 0);
}

TEST(InstructionTest, ReadsNothingBehindTheCode) {
    // Cut off everywhere: with AddressSanitizer a read beyond is a failure.
    for (const auto& file : testing::code_files()) {
        const auto image = CodeImage::of_file(file.content);
        ASSERT_TRUE(image) << file.path;
        const Code code = image->code()[0];
        for (size_t at = 0; at < std::min<size_t>(code.size(), 20000); ++at) {
            for (size_t bytes = 0; bytes <= kInstructionBytesMax; ++bytes) {
                const std::vector<uint8_t> copy(code.begin() + static_cast<ptrdiff_t>(at),
                                                code.begin() + static_cast<ptrdiff_t>(at + bytes));
                ASSERT_LE(decode_instruction(copy).bytes, bytes);
            }
        }
        break;
    }
}

// Address, text of an instruction as objdump prints them.
struct Line {
    uint64_t address;
    std::string text;
};

std::vector<Line> disassemble(const std::string& path) {
    std::vector<Line> lines;
    const std::string command = "objdump -d -w --no-show-raw-insn " + path;
    FILE* pipe = popen(command.c_str(), "r");
    char* text = nullptr;
    size_t room = 0;
    while (getline(&text, &room, pipe) > 0) {
        // The last instruction of a section is not followed by the next section's first.
        if (std::strncmp(text, "Disassembly", 11) == 0) lines.push_back({UINT64_MAX, ""});
        char* end = nullptr;
        const uint64_t address = std::strtoull(text, &end, 16);
        if (text[0] == ' ' && end != text && end[0] == ':' && end[1] == '\t') {
            lines.push_back({address, end + 2});
        }
    }
    std::free(text);
    pclose(pipe);
    return lines;
}

// The target in "jne    3a5b0 <read+0x10>", or 0.
uint64_t target_in(const std::string& text) {
    const size_t arrow = text.find(" <");
    const size_t number = arrow == std::string::npos ? arrow : text.rfind(' ', arrow - 1);
    if (number == std::string::npos) return 0;
    return std::strtoull(text.c_str() + number, nullptr, 16);
}

TEST(InstructionTest, AgreesWithObjdumpOverWholeLibraries) {
    if (std::system("objdump --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no objdump here";
    size_t compared = 0;
    size_t jumps = 0;
    for (const auto& file : testing::code_files()) {
        const std::vector<Line> lines = disassemble(file.path);
        ASSERT_GT(lines.size(), 1000u) << file.path;
        for (size_t index = 0; index + 1 < lines.size(); ++index) {
            const Line& line = lines[index];
            const uint64_t bytes = lines[index + 1].address - line.address;
            if (line.text.empty() || lines[index + 1].text.empty()) continue;
            // Code ends with a gap here and there, and data is not code.
            if (bytes > kInstructionBytesMax || line.text.starts_with("(bad)")) continue;
            const uint8_t* place = file.place_of(line.address);
            ASSERT_NE(place, nullptr) << file.path << std::hex << " " << line.address;
            if (place[0] == 0x9b) continue;  // wait, which objdump prints as one with what follows
            const Instruction instruction = decode_instruction({place, kInstructionBytesMax});
            ASSERT_EQ(instruction.bytes, bytes)
                << file.path << std::hex << " " << line.address << " " << line.text;
            ++compared;
            if (instruction.kind == Kind::kJump || instruction.kind == Kind::kCall) {
                ASSERT_EQ(line.address + static_cast<uint64_t>(instruction.target),
                          target_in(line.text))
                    << file.path << std::hex << " " << line.address << " " << line.text;
                ++jumps;
            }
            ASSERT_EQ(instruction.relative_at != 0, line.text.find("(%rip)") != std::string::npos)
                << file.path << std::hex << " " << line.address << " " << line.text;
        }
    }
    EXPECT_GT(compared, 500000u);
    EXPECT_GT(jumps, 50000u);
}

TEST(InstructionTest, StepsAgreeWithDecoding) {
    size_t known = 0;
    size_t all = 0;
    for (const auto& file : testing::code_files()) {
        const auto image = CodeImage::of_file(file.content);
        ASSERT_TRUE(image);
        for (const Code& segment : image->code()) {
            // At every byte, whether an instruction begins there or not.
            for (size_t at = 0; at + kStepReadBytes <= segment.size(); ++at) {
                const InstructionStep step = step_over(segment.data() + at);
                ++all;
                if (step.bytes == 0) continue;
                ++known;
                const Instruction decoded = decode_instruction(segment.subspan(at));
                ASSERT_EQ(step.bytes, decoded.bytes) << file.path << std::hex << " " << at;
                const bool leads_away = decoded.kind == Kind::kJump || decoded.kind == Kind::kCall;
                ASSERT_EQ(step.distance_bytes != 0, leads_away);
                ASSERT_TRUE(leads_away || decoded.kind == Kind::kPlain);
            }
        }
    }
    EXPECT_GT(known, all / 2);
}

}  // namespace
}  // namespace hanare::hook
