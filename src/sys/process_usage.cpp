// SPDX-License-Identifier: Apache-2.0
#include "sys/process_usage.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "sys/raw_call.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

// The number of a line "KEY:   123 kB".
Result<uint64_t> kib_line(const char* path, const std::string& key) {
    HANARE_TRY_ASSIGN(const std::string text, read_text_file(path));
    const size_t at = ("\n" + text).find("\n" + key + ":");
    if (at == std::string::npos) {
        return fail(HANARE_STATUS_NOT_FOUND, "%s has no line %s", path, key.c_str());
    }
    return std::strtoull(text.c_str() + at + key.size() + 1, nullptr, 10) * kKiB;
}

// "KEY:   123", and what becomes of the number.
struct StatusLine {
    std::string_view key;
    uint64_t& number;
    uint64_t unit;
};

// Lines of any length; all but the first bytes of each are passed over.
class StatusReader {
public:
    explicit StatusReader(std::span<const StatusLine> wanted) noexcept : wanted_(wanted) {}

    void take(const char* text, size_t bytes) noexcept {
        for (const char c : std::string_view(text, bytes)) {
            if (c == '\n') {
                end_line();
                line_bytes_ = 0;
            } else if (line_bytes_ < sizeof line_) {
                line_[line_bytes_++] = c;
            }
        }
    }

private:
    void end_line() noexcept {
        const std::string_view line(line_, line_bytes_);
        for (const StatusLine& wanted : wanted_) {
            if (!line.starts_with(wanted.key)) continue;
            uint64_t number = 0;
            for (const char c : line.substr(wanted.key.size())) {
                if (c >= '0' && c <= '9') number = number * 10 + static_cast<uint64_t>(c - '0');
            }
            wanted.number = number * wanted.unit;
        }
    }

    std::span<const StatusLine> wanted_;
    char line_[40] = {};
    size_t line_bytes_ = 0;
};

}  // namespace

Result<ProcessUsage> process_usage() {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    HANARE_TRY_ASSIGN(const uint64_t peak, kib_line("/proc/self/status", "VmHWM"));
    return ProcessUsage{static_cast<uint64_t>(usage.ru_minflt),
                        static_cast<uint64_t>(usage.ru_majflt), peak};
}

uint64_t major_faults() noexcept {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_majflt);
}

namespace {

// Async-signal-safe.
void read_status(std::span<const StatusLine> wanted) noexcept {
    const long file = raw::syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    StatusReader reader(wanted);
    char text[2048];
    for (;;) {
        const long bytes = raw::syscall(SYS_read, file, text, sizeof text);
        if (bytes <= 0) break;
        reader.take(text, static_cast<size_t>(bytes));
    }
    raw::syscall(SYS_close, file);
}

}  // namespace

OwnMemory own_memory() noexcept {
    OwnMemory memory;
    const StatusLine wanted[] = {{"VmSize:", memory.address_bytes, kKiB},
                                 {"RssAnon:", memory.anonymous_bytes, kKiB},
                                 {"VmPTE:", memory.page_table_bytes, kKiB}};
    read_status(wanted);
    return memory;
}

bool is_traced() noexcept {
    uint64_t tracer = 0;
    const StatusLine wanted[] = {{"TracerPid:", tracer, 1}};
    read_status(wanted);
    return tracer != 0;
}

// proc(5): the 47th field of /proc/self/stat; the second one, a name, is the last with parentheses.
uintptr_t heap_begin() noexcept {
    constexpr int kFieldsFromName = 45;
    char text[2048];
    const long file = raw::syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const long bytes = raw::syscall(SYS_read, file, text, sizeof text);
    raw::syscall(SYS_close, file);
    std::string_view rest(text, static_cast<size_t>(std::max(bytes, 0L)));
    rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
    for (int field = 0; field < kFieldsFromName; ++field) {
        const size_t space = rest.find(' ');
        if (space == std::string_view::npos) return 0;
        rest.remove_prefix(space + 1);
    }
    uintptr_t address = 0;
    for (const char c : rest) {
        if (c < '0' || c > '9') break;
        address = address * 10 + static_cast<uintptr_t>(c - '0');
    }
    return address;
}

uint64_t free_address_bytes() noexcept {
    rlimit limit = {};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    const uint64_t taken = own_memory().address_bytes;
    return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}

uint32_t allowed_cpus() noexcept {
    // The kernel refuses a set that is smaller than its own.
    constexpr size_t kCpusMax = 1 << 16;
    static constexpr size_t kBytes = CPU_ALLOC_SIZE(kCpusMax);
    alignas(cpu_set_t) unsigned char room[kBytes] = {};
    auto* const set = reinterpret_cast<cpu_set_t*>(room);
    if (sched_getaffinity(0, kBytes, set) != 0) return 1;
    return static_cast<uint32_t>(std::max(1, CPU_COUNT_S(kBytes, set)));
}

namespace {

bool stay_on(int cpu) noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0) return false;
    CPU_SET(static_cast<unsigned>(cpu), &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace

bool stay_on_this_cpu() noexcept { return stay_on(sched_getcpu()); }

bool stay_on_first_cpu() noexcept {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    int cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) ++cpu;
    return cpu < CPU_SETSIZE && stay_on(cpu);
}

bool stay_on_last_cpu() noexcept {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
    int cpu = CPU_SETSIZE - 1;
    while (cpu >= 0 && !CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) --cpu;
    return stay_on(cpu);
}

}  // namespace hanare::sys
