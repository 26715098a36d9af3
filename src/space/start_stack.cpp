// SPDX-License-Identifier: Apache-2.0
#include "space/start_stack.hpp"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "space/task_table.hpp"
#include "sys/random.hpp"

namespace hanare::space {

namespace {

// Some are missing in older headers.
constexpr uint64_t kMinimalSignalStack = 51;  // AT_MINSIGSTKSZ
constexpr uint64_t kRseqFeatureBytes = 27;    // AT_RSEQ_FEATURE_SIZE
constexpr uint64_t kRseqAlignment = 28;       // AT_RSEQ_ALIGN

// What is the same for all programs of this process.
constexpr std::array kCommon = {
    uint64_t{AT_SYSINFO_EHDR}, uint64_t{AT_HWCAP}, uint64_t{AT_HWCAP2}, uint64_t{AT_CLKTCK},
    kMinimalSignalStack,       kRseqFeatureBytes,  kRseqAlignment};

class Writing {
public:
    explicit Writing(std::span<std::byte> stack)
        : low_(reinterpret_cast<uint64_t>(stack.data()) + stack.size() / 4 * 3),
          at_(reinterpret_cast<uint64_t>(stack.data()) + stack.size()) {}

    uint64_t bytes(const void* content, size_t count) {
        if (at_ - low_ < count + kOsPageBytes) {
            is_full_ = true;
            return 0;
        }
        at_ -= count;
        std::memcpy(reinterpret_cast<void*>(at_), content, count);
        return at_;
    }
    uint64_t text(const std::string& content) { return bytes(content.c_str(), content.size() + 1); }
    // The stack pointer is a multiple of 16 behind them.
    uint64_t words(const std::vector<uint64_t>& content) {
        at_ =
            (at_ - content.size() * sizeof(uint64_t)) / 16 * 16 + content.size() * sizeof(uint64_t);
        return bytes(content.data(), content.size() * sizeof(uint64_t));
    }
    bool is_full() const { return is_full_; }

private:
    const uint64_t low_;
    uint64_t at_;
    bool is_full_ = false;
};

}  // namespace

Result<uint64_t> write_start(std::span<std::byte> stack, const StartOfProgram& start,
                             const Image& program, const Image& loader) {
    Writing writing(stack);
    std::array<std::byte, 16> random;
    HANARE_TRY(sys::fill_random(random));
    const uint64_t path = writing.text(start.path);
    const uint64_t platform = writing.text("x86_64");
    const uint64_t random_place = writing.bytes(random.data(), random.size());
    std::vector<uint64_t> words = {start.arguments.size()};
    for (const std::string& argument : start.arguments) words.push_back(writing.text(argument));
    words.push_back(0);
    for (const std::string& variable : start.environment) words.push_back(writing.text(variable));
    words.push_back(0);
    const auto auxiliary = [&words](uint64_t type, uint64_t value) {
        words.push_back(type);
        words.push_back(value);
    };
    for (const uint64_t type : kCommon) {
        if (const uint64_t value = getauxval(type); value != 0) auxiliary(type, value);
    }
    auxiliary(AT_PHDR, program.headers);
    auxiliary(AT_PHENT, sizeof(Elf64_Phdr));
    auxiliary(AT_PHNUM, program.header_count);
    auxiliary(AT_PAGESZ, kOsPageBytes);
    auxiliary(AT_BASE, loader.base);
    auxiliary(AT_FLAGS, 0);
    auxiliary(AT_ENTRY, program.entry);
    auxiliary(AT_UID, getuid());
    auxiliary(AT_EUID, geteuid());
    auxiliary(AT_GID, getgid());
    auxiliary(AT_EGID, getegid());
    auxiliary(AT_SECURE, 0);
    auxiliary(AT_RANDOM, random_place);
    auxiliary(AT_EXECFN, path);
    auxiliary(AT_PLATFORM, platform);
    auxiliary(task::Directory::kAuxiliaryType, reinterpret_cast<uint64_t>(&TaskTable::directory()));
    auxiliary(AT_NULL, 0);
    const uint64_t pointer = writing.words(words);
    if (writing.is_full()) {
        return fail(HANARE_STATUS_LIMIT, "arguments and environment are longer than %s",
                    format_size(stack.size() / 4).c_str());
    }
    return pointer;
}

}  // namespace hanare::space
