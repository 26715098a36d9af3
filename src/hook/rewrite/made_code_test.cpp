// SPDX-License-Identifier: Apache-2.0
//
// System calls of code made here, in every shape that a jump may replace.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unwind.h>

#include <algorithm>
#include <vector>

#include "hook/rewrite/test_support.hpp"
#include "hook/test_handlers.hpp"

namespace hanare::hook::testing {
namespace {

// Code of our own, mapped from a file as ld.so does.
class MappedCode {
public:
    static constexpr size_t kCodeAt = 4096;

    explicit MappedCode(std::vector<uint8_t> code) : code_(std::move(code)) {
        const std::vector<uint8_t> file = elf_file(code_, kCodeAt);
        if (pwrite(descriptor_, file.data(), file.size(), 0) < 0) abort();
    }
    ~MappedCode() {
        unmap();
        close(descriptor_);
    }
    MappedCode(const MappedCode&) = delete;
    MappedCode& operator=(const MappedCode&) = delete;

    // Calls the code, newly mapped near libc, as a function of one argument.
    uint64_t call(uint64_t argument, int flags = MAP_PRIVATE) {
        return call_at(nullptr, argument, flags);
    }
    // The same, near this program, in which Hanare's own code is.
    uint64_t call_near(uint64_t argument) {
        auto* const place = reinterpret_cast<std::byte*>(&rewrite_report) + (size_t{1} << 29);
        const auto page = reinterpret_cast<uintptr_t>(place) & ~uintptr_t{4095};
        return call_at(reinterpret_cast<void*>(page), argument, MAP_PRIVATE);
    }
    bool contains(const void* place) const {
        const auto* begin = static_cast<const std::byte*>(memory_);
        return place >= begin && place < begin + code_.size();
    }
    // What the jump in the place of the first instruction leads to.
    const void* jump_target() const {
        int32_t distance = 0;
        std::memcpy(&distance, static_cast<const std::byte*>(memory_) + 1, sizeof distance);
        return static_cast<const std::byte*>(memory_) + 5 + distance;
    }
    // As a function of the arguments of read(2).
    int64_t read_into(int file, std::byte* memory, size_t bytes) {
        map(nullptr, MAP_PRIVATE);
        return reinterpret_cast<int64_t (*)(int, std::byte*, size_t)>(memory_)(file, memory, bytes);
    }
    uint64_t call_at(void* hint, uint64_t argument, int flags) {
        map(hint, flags);
        return reinterpret_cast<uint64_t (*)(uint64_t)>(memory_)(argument);
    }
    bool is_rewritten() const { return std::memcmp(memory_, code_.data(), code_.size()) != 0; }
    bool is_unchanged_on_disk() const {
        std::vector<uint8_t> now(code_.size());
        return pread(descriptor_, now.data(), now.size(), kCodeAt) ==
                   static_cast<ssize_t>(now.size()) &&
               now == code_;
    }

private:
    void map(void* hint, int flags) {
        unmap();
        memory_ = mmap(hint, code_.size(), PROT_READ | PROT_EXEC, flags, descriptor_, kCodeAt);
    }
    void unmap() {
        if (memory_ != MAP_FAILED) munmap(memory_, code_.size());
    }
    const std::vector<uint8_t> code_;
    const int descriptor_ = memfd_create("code", MFD_CLOEXEC);
    void* memory_ = MAP_FAILED;
};

TEST_F(SystemCallsTest, DoWhatTheReplacedInstructionsDid) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  constexpr uint8_t kNumber = SYS_getppid;
                  // mov $number, %eax; syscall; ret
                  MappedCode load({0xb8, kNumber, 0, 0, 0, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(load.call(0) == kAnswer && load.is_rewritten());
                  // mov %rdi, %rax; syscall; ret
                  MappedCode copy({0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(copy.call(kNumber) == kAnswer && copy.is_rewritten());
                  // mov %edi, %eax; syscall; add $1, %rax; ret
                  MappedCode after({0x89, 0xf8, 0x0f, 0x05, 0x48, 0x83, 0xc0, 0x01, 0xc3});
                  HOOK_CHECK(after.call(kNumber) == kAnswer + 1 && after.is_rewritten());
                  // mov number(%rip), %eax; syscall; ret; number
                  MappedCode relative({0x8b, 0x05, 0x03, 0, 0, 0, 0x0f, 0x05, 0xc3,  //
                                       kNumber, 0, 0, 0});
                  HOOK_CHECK(relative.call(0) == kAnswer && relative.is_rewritten());
                  // Too short to be replaced: mov %edi, %eax; syscall; ret
                  MappedCode left({0x89, 0xf8, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(left.call(SYS_getpid) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(!left.is_rewritten());
                  return std::string();
              }),
              "");
}

std::byte read_memory[16];
std::atomic<int> fell_short{0};

GENERAL_REGISTERS Verdict answer_short(SystemCall& call, int64_t result) {
    if (result == 4) __atomic_fetch_add(reinterpret_cast<int*>(&fell_short), 1, __ATOMIC_RELAXED);
    call.finish(kAnswer);
    return Verdict::kDone;
}

// With what is replaced behind them, and without.
TEST_F(SystemCallsTest, ThatTransferGoOnWithWhatFollows) {
    EXPECT_EQ(run_in_child([] {
                  constexpr uint32_t kNumbers[] = {SYS_read};
                  HOOK_CHECK(intercept(count_only, {SYS_read}, {{SYS_read, 0b10}},
                                       {{}, kNumbers, answer_short}));
                  const auto memory = reinterpret_cast<uintptr_t>(read_memory);
                  note_handlers_memory(memory, memory + sizeof read_memory);
                  int ends[2];
                  HOOK_CHECK(pipe(ends) == 0 && write(ends[1], "twenty characters...", 20) == 20);
                  let_transfers_begin(static_cast<uint64_t>(ends[0]), false, true);
                  // xor %eax, %eax; syscall; add $1, %rax; ret
                  MappedCode more({0x31, 0xc0, 0x0f, 0x05, 0x48, 0x83, 0xc0, 0x01, 0xc3});
                  HOOK_CHECK(more.read_into(ends[0], read_memory, 8) == 9);
                  HOOK_CHECK(more.is_rewritten() && std::memcmp(read_memory, "twenty c", 8) == 0);
                  // mov $0, %eax; syscall; add $1, %rax; ret
                  MappedCode same({0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0x48, 0x83, 0xc0, 0x01, 0xc3});
                  HOOK_CHECK(same.read_into(ends[0], read_memory, 8) == 9);
                  HOOK_CHECK(same.is_rewritten() && std::memcmp(read_memory, "haracter", 8) == 0);
                  HOOK_CHECK(calls == 0 && fell_short == 0);
                  HOOK_CHECK(more.read_into(ends[0], read_memory, 8) == kAnswer + 1);
                  HOOK_CHECK(write(ends[1], "four", 4) == 4);
                  HOOK_CHECK(same.read_into(ends[0], read_memory, 8) == kAnswer + 1);
                  HOOK_CHECK(calls == 0 && fell_short == 2);
                  return std::string();
              }),
              "");
}

std::vector<const void*> places_seen;

GENERAL_REGISTERS Verdict note_places(SystemCall& call) {
    hanare_hook_with_vector_registers(
        [](void*) {
            _Unwind_Backtrace(
                [](_Unwind_Context* context, void*) {
                    places_seen.push_back(reinterpret_cast<const void*>(_Unwind_GetIP(context)));
                    return _URC_NO_REASON;
                },
                nullptr);
        },
        nullptr);
    call.finish(kAnswer);
    return Verdict::kDone;
}

bool is_in_this_program(const void* place) {
    Dl_info where = {};
    Dl_info here = {};
    return dladdr(place, &where) != 0 &&
           dladdr(reinterpret_cast<const void*>(&rewrite_report), &here) != 0 &&
           where.dli_fbase == here.dli_fbase;
}

TEST_F(SystemCallsTest, HaveStubsInHanaresOwnCodeWhereThatIsNear) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(note_places, {SYS_getppid}));
                  const std::vector<uint8_t> code = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};
                  MappedCode near(code);
                  MappedCode far(code);
                  for (int i = 0; i < 3000; ++i) {  // more than there is room for at once
                      HOOK_CHECK(near.call_near(0) == kAnswer && near.is_rewritten());
                      HOOK_CHECK(is_in_this_program(near.jump_target()));
                  }
                  HOOK_CHECK(far.call(0) == kAnswer && far.is_rewritten());
                  HOOK_CHECK(!is_in_this_program(far.jump_target()));
                  // Unwinding gets through either stub, to the code that jumped there.
                  for (MappedCode* file : {&near, &far}) {
                      const auto seen =
                          std::count_if(places_seen.begin(), places_seen.end(),
                                        [&](const void* place) { return file->contains(place); });
                      HOOK_CHECK(seen >= 1);
                  }
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, BesideEachOtherAreNotMixedUp) {
    EXPECT_EQ(
        run_in_child([] {
            HOOK_CHECK(intercept(answer, {SYS_getppid}));
            // mov %edi, %eax; syscall; mov $getpid, %eax; syscall; ret: the first needs the
            // load of the second.
            MappedCode both({0x89, 0xf8, 0x0f, 0x05, 0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3});
            HOOK_CHECK(both.call(SYS_getppid) == static_cast<uint64_t>(getpid()));
            HOOK_CHECK(both.is_rewritten() && calls == 1);
            return std::string();
        }),
        "");
}

TEST_F(SystemCallsTest, KeepFlags) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  for (const uint8_t number : {uint8_t{SYS_getppid}, uint8_t{SYS_getpid}}) {
                      // cmp $7, %edi; mov $number, %eax; syscall; sete %al; movzbl %al, %eax; ret
                      MappedCode code({0x83, 0xff, 0x07, 0xb8, number, 0, 0, 0, 0x0f, 0x05,  //
                                       0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3});
                      HOOK_CHECK(code.call(7) == 1 && code.call(8) == 0 && code.is_rewritten());
                  }
                  return std::string();
              }),
              "");
}

TEST_F(SystemCallsTest, OfSharedMappingsAreLeftSinceTheseAreTheFile) {
    EXPECT_EQ(run_in_child([] {
                  HOOK_CHECK(intercept(answer, {SYS_getppid}));
                  MappedCode code({0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3});
                  HOOK_CHECK(code.call(0, MAP_SHARED) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(!code.is_rewritten() && code.is_unchanged_on_disk());
                  HOOK_CHECK(code.call(0) == static_cast<uint64_t>(getpid()));
                  HOOK_CHECK(code.is_rewritten() && code.is_unchanged_on_disk());
                  return std::string();
              }),
              "");
}

}  // namespace
}  // namespace hanare::hook::testing
