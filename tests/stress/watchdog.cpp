// SPDX-License-Identifier: Apache-2.0
//
// A child made by _Fork() looks: its copy of memory stands still, and it may trace its parent's
// threads even while they spin.  It neither allocates nor takes a lock.
#include "stress/watchdog.hpp"

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "pager/fault/pager.hpp"
#include "pager/fault/region_table.hpp"

namespace hanare::stress {

namespace {

using pager::BlockState;

constexpr uint32_t kBlocksShown = 24;  // per region
constexpr uint32_t kCallsShown = 16;   // per thread

[[gnu::format(printf, 1, 2)]] void print(const char* pattern, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, pattern);
    const int length = std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    if (length <= 0) return;
    const auto bytes = std::min(static_cast<size_t>(length), sizeof text - 1);
    (void)!write(STDERR_FILENO, text, bytes);
}

const char* state_name(BlockState state) {
    switch (state) {
        case BlockState::kAbsent: return "absent";
        case BlockState::kFilling: return "filling";
        case BlockState::kStaged: return "staged";
        case BlockState::kInstalling: return "installing";
        case BlockState::kReadOnly: return "read-only";
        case BlockState::kUpgrading: return "upgrading";
        case BlockState::kWritable: return "writable";
        case BlockState::kWithdrawing: return "withdrawing";
        case BlockState::kWriting: return "writing";
        case BlockState::kSparse: return "sparse";
        case BlockState::kExtending: return "extending";
        case BlockState::kReading: return "reading";
        case BlockState::kStoring: return "storing";
    }
    return "?";
}

void print_region(pager::Region& region) {
    print("region of %u blocks of %lu bytes%s, progress %u\n", region.block_count,
          region.block_bytes, region.is_closing() ? ", closing" : "",
          region.pager->frames().progress());
    std::array<uint32_t, pager::block_word::kStateMask + 1> counts = {};
    uint32_t shown = 0;
    for (uint32_t i = 0; i < region.block_count; ++i) {
        const uint32_t word = region.block(i).load();
        ++counts[word & pager::block_word::kStateMask];
        const bool unusual =
            pager::block_word::transient(word) || (word & pager::block_word::kWaiters) != 0;
        if (unusual && shown++ < kBlocksShown) {
            print("  block %u: word 0x%x, %s\n", i, word,
                  state_name(pager::block_word::state(word)));
        }
    }
    for (uint32_t state = 0; state < counts.size(); ++state) {
        if (counts[state] == 0) continue;
        print("  %u %s\n", counts[state], state_name(static_cast<BlockState>(state)));
    }
}

void print_file(pid_t process, pid_t thread, const char* name) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", process, thread, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    char text[2048];
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return;
    text[length] = '\0';
    print("  %s: %s%s", name, text, text[length - 1] == '\n' ? "" : "\n");
}

// True when the address is code.
bool print_code(uint64_t address) {
    Dl_info info = {};
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) {
        return false;
    }
    print("  %s+0x%lx %s\n", info.dli_fname, address - reinterpret_cast<uint64_t>(info.dli_fbase),
          info.dli_sname == nullptr ? "" : info.dli_sname);
    return true;
}

void print_calls(pid_t process, pid_t thread) {
    user_regs_struct registers = {};
    if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return;
    if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
        waitpid(thread, nullptr, __WALL) != thread ||
        ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) {
        return;
    }
    print_code(registers.rip);
    static std::array<uint64_t, 4096> stack;
    iovec here = {stack.data(), sizeof stack};
    iovec there = {reinterpret_cast<void*>(registers.rsp), sizeof stack};
    const ssize_t bytes = process_vm_readv(process, &here, 1, &there, 1, 0);
    uint32_t shown = 0;
    for (size_t i = 0; bytes > 0 && i < static_cast<size_t>(bytes) / sizeof(uint64_t); ++i) {
        if (shown < kCallsShown && print_code(stack[i])) ++shown;
    }
}

void print_all(pid_t process, pid_t self, const std::vector<pid_t>& threads) {
    pager::region_table().for_each(print_region);
    for (const pid_t thread : threads) {
        print("thread %d%s\n", thread, thread == self ? " (watchdog)" : "");
        if (thread == self) continue;
        for (const char* name : {"comm", "wchan", "syscall", "stack"}) {
            print_file(process, thread, name);
        }
        print_calls(process, thread);
    }
}

std::vector<pid_t> all_threads() {
    std::vector<pid_t> threads;
    DIR* const directory = opendir("/proc/self/task");
    if (directory == nullptr) return threads;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] != '.') threads.push_back(std::atoi(entry->d_name));
    }
    closedir(directory);
    return threads;
}

[[noreturn]] void give_up(const char* what, int limit_s) {
    print("hangs since %d s: %s\n", limit_s, what);
    const std::vector<pid_t> threads = all_threads();
    const pid_t process = getpid();
    const pid_t self = gettid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const pid_t child = _Fork();
    if (child == 0) {
        print_all(process, self, threads);
        _exit(0);
    }
    if (child > 0) waitpid(child, nullptr, 0);
    _exit(1);
}

}  // namespace

int patience_s() {
    const char* const text = std::getenv("HANARE_STRESS_PATIENCE");
    return text == nullptr ? 120 : std::atoi(text);
}

Watchdog::Watchdog(std::string what, int limit_s)
    : what_(std::move(what)), limit_s_(limit_s), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard guard(lock_);
        ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Watchdog::watch() {
    std::unique_lock guard(lock_);
    if (!changed_.wait_for(guard, std::chrono::seconds(limit_s_), [this] { return ended_; })) {
        give_up(what_.c_str(), limit_s_);
    }
}

}  // namespace hanare::stress
