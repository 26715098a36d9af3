// SPDX-License-Identifier: Apache-2.0
//
// The sites of this machine's libraries.
#include "hook/rewrite/syscall_sites.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <set>
#include <vector>

#include "hook/rewrite/instruction.hpp"
#include "hook/rewrite/test_support.hpp"

namespace hanare::hook {
namespace {

using Kind = Instruction::Kind;

std::vector<SyscallSite> sites_of(const CodeImage& image) {
    std::vector<SyscallSite> sites;
    for (const Code& segment : image.code()) {
        find_syscall_sites(
            image, SyscallBytes(segment),
            [](const SyscallSite& site, void* context) {
                static_cast<std::vector<SyscallSite>*>(context)->push_back(site);
            },
            &sites);
    }
    return sites;
}

// Code without a table of functions.
class MadeFile {
public:
    explicit MadeFile(const std::vector<uint8_t>& code) : bytes_(testing::elf_file(code, 4096)) {}
    std::vector<SyscallSite> sites() const { return sites_of(*CodeImage::of_file(bytes_)); }

private:
    const std::vector<uint8_t> bytes_;
};

SyscallSite only_site(const std::vector<uint8_t>& code) {
    const MadeFile file(code);
    const std::vector<SyscallSite> sites = file.sites();
    return sites.size() == 1 ? sites[0] : SyscallSite{};
}

TEST(SyscallSitesTest, ReplaceTheLoadOfTheNumber) {
    const SyscallSite site = only_site({0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3});
    EXPECT_EQ(site.before_bytes, 5);
    EXPECT_EQ(site.after_bytes, 0);
    EXPECT_EQ(site.number, 39);
}

TEST(SyscallSitesTest, ReplaceWhatFollowsWhereTooLittleIsInFront) {
    // ret; syscall; cmp $-4096, %rax; ret
    const SyscallSite site = only_site({0xc3, 0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff, 0xc3});
    EXPECT_EQ(site.before_bytes, 0);
    EXPECT_EQ(site.after_bytes, 6);
    EXPECT_EQ(site.number, -1);
}

TEST(SyscallSitesTest, LeaveJumpTargetsAlone) {
    // mov %edi, %eax; syscall; jmp to the system call: it is a target, and nothing else fits.
    const SyscallSite site = only_site({0x89, 0xf8, 0x0f, 0x05, 0xeb, 0xfc});
    EXPECT_NE(site.syscall, nullptr);
    EXPECT_FALSE(site.usable());
    // The same, to the mov in front of it: but nothing may be moved behind.
    EXPECT_FALSE(only_site({0x89, 0xf8, 0x0f, 0x05, 0xeb, 0xfa}).usable());
    // mov %rdi, %rax is a byte longer: the jump may lead to it.
    EXPECT_EQ(only_site({0x48, 0x89, 0xf8, 0x0f, 0x05, 0xeb, 0xf9}).before_bytes, 3);
}

TEST(SyscallSitesTest, LeaveJumpsBehindAPrefixAlone) {
    // je behind the prefix; lock decl (%rdi); mov %edx, %eax; syscall; ret
    EXPECT_FALSE(only_site({0x74, 0x01, 0xf0, 0xff, 0x0f, 0x89, 0xd0, 0x0f, 0x05, 0xc3}).usable());
}

TEST(SyscallSitesTest, DoNotMoveWhatUsesTheStackPointer) {
    // push %rbx; mov %rsp, %rdi; syscall; ret
    EXPECT_FALSE(only_site({0x53, 0x48, 0x89, 0xe7, 0x0f, 0x05, 0xc3}).usable());
}

TEST(SyscallSitesTest, MayBeReachedThroughATable) {
    // mov %rdi, %rax; syscall; jmp *%rdx: it may lead to the system call.
    EXPECT_FALSE(only_site({0x48, 0x89, 0xf8, 0x0f, 0x05, 0xff, 0xe2}).usable());
    // A load of five bytes can be replaced all the same.
    EXPECT_TRUE(only_site({0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xff, 0xe2}).usable());
}

TEST(SyscallSitesTest, AreNotFoundInsideOtherInstructions) {
    // mov $0x050f, %eax; ret
    EXPECT_TRUE(MadeFile({0xb8, 0x0f, 0x05, 0, 0, 0xc3}).sites().empty());
}

TEST(SyscallSitesTest, SurviveCodeThatIsNone) {
    EXPECT_TRUE(MadeFile({}).sites().empty());
    EXPECT_TRUE(MadeFile({0x0f}).sites().empty());
    EXPECT_TRUE(MadeFile({0x06, 0x0f, 0x05}).sites().empty());
    EXPECT_FALSE(CodeImage::of_file({}));
    const std::vector<uint8_t> text(4096, '#');
    EXPECT_FALSE(CodeImage::of_file(text));
}

TEST(SyscallSitesTest, AreNotInWhatIsNoFunction) {
    // Of another file, and so of none that the image knows.
    const std::vector<uint8_t> other = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
    const std::vector<uint8_t> file = testing::elf_file({0xc3}, 4096);
    const auto image = CodeImage::of_file(file);
    ASSERT_TRUE(image);
    ASSERT_EQ(image->function_around(other.data() + 5).data(), nullptr);
    int found = 0;
    find_syscall_sites(
        *image, SyscallBytes(other),
        [](const SyscallSite&, void* context) { ++*static_cast<int*>(context); }, &found);
    EXPECT_EQ(found, 0);
}

TEST(SyscallSitesTest, AreFoundHoweverManyThereAre) {
    std::vector<uint8_t> code;
    constexpr size_t kMany = 5000;
    for (size_t i = 0; i < kMany; ++i) code.insert(code.end(), {0xb8, 39, 0, 0, 0, 0x0f, 0x05});
    const std::vector<SyscallSite> sites = MadeFile(code).sites();
    ASSERT_EQ(sites.size(), kMany);
    for (size_t i = 1; i < kMany; ++i) EXPECT_EQ(sites[i].syscall, sites[i - 1].syscall + 7);
}

struct Surroundings {
    size_t system_calls = 0;
    std::set<const uint8_t*> starts;   // of instructions
    std::set<const uint8_t*> targets;  // of jumps and calls
};

// Decodes all functions of the module from their beginnings.
Surroundings decode_all(const CodeImage& image) {
    Surroundings all;
    for (const Code& segment : image.code()) {
        const uint8_t* at = segment.data();
        const uint8_t* const end = at + segment.size();
        while (at < end) {
            const Code function = image.function_around(at);
            const uint8_t* const function_end = function.data() + function.size();
            while (at < function_end) {
                const auto rest = static_cast<size_t>(function_end - at);
                const Instruction instruction = decode_instruction({at, rest});
                if (instruction.bytes == 0) break;
                all.starts.insert(at);
                if (instruction.kind == Kind::kSystemCall) ++all.system_calls;
                if (instruction.kind == Kind::kJump || instruction.kind == Kind::kCall) {
                    all.targets.insert(at + instruction.target);
                }
                at += instruction.bytes;
            }
            at = std::max(at, function_end);
        }
    }
    return all;
}

TEST(SyscallSitesTest, OfLibcAndTheLoaderAreAllFoundAndNearlyAllReplaced) {
    for (const auto& file : testing::code_files()) {
        const bool is_libc = file.path.find("/libc.so") != std::string::npos;
        const bool is_loader = file.path.find("/ld-linux") != std::string::npos;
        if (!is_libc && !is_loader) continue;
        const auto image = CodeImage::of_file(file.content);
        ASSERT_TRUE(image);
        const Surroundings all = decode_all(*image);
        const std::vector<SyscallSite> sites = sites_of(*image);
        EXPECT_EQ(sites.size(), all.system_calls) << file.path;
        const auto left = std::count_if(sites.begin(), sites.end(), [](const SyscallSite& site) {
            return !site.usable() && site.number != SYS_rt_sigreturn;
        });
        EXPECT_LE(left, 2) << file.path;
        EXPECT_EQ(std::count_if(sites.begin(), sites.end(),
                                [](const SyscallSite& site) {
                                    return site.number == SYS_rt_sigreturn && !site.usable();
                                }),
                  1)
            << "the trampoline of signal handlers stays as it is";
        std::printf("%s: %zu system calls, %td left\n", file.path.c_str(), sites.size(), left);
        EXPECT_TRUE(std::any_of(sites.begin(), sites.end(), [](const SyscallSite& site) {
            return site.number == SYS_mmap && site.usable();
        }));
        for (const SyscallSite& site : sites) {
            if (!site.usable()) continue;
            EXPECT_TRUE(all.starts.contains(site.begin()));
            EXPECT_TRUE(all.starts.contains(site.end()));
            // No jump of the whole library leads into the five bytes, but to the first.
            const auto inside = all.targets.upper_bound(site.begin());
            EXPECT_FALSE(inside != all.targets.end() && *inside < site.begin() + kJumpBytes)
                << file.path << std::hex << " " << *inside - file.content.data();
        }
    }
}

}  // namespace
}  // namespace hanare::hook
