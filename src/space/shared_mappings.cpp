// SPDX-License-Identifier: Apache-2.0
#include "space/shared_mappings.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/units.hpp"
#include "space/task_table.hpp"
#include "sys/raw_thread.hpp"

namespace hanare::space {

namespace {

// Small ones are not worth it.
constexpr uint64_t kBytesMin = 4 * kKiB;
constexpr uint64_t kTypeMask = MAP_TYPE;
// Instead of a device: the file is a segment of System V.
constexpr uint64_t kSegment = ~uint64_t{0};

struct Identity {
    uint64_t device = 0;
    uint64_t file = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t protection = 0;
    uint64_t access = 0;  // of the descriptor, on which later protection depends

    bool operator==(const Identity&) const = default;
};

struct Mapping {
    Identity identity;
    uint64_t address = 0;
    uint32_t tasks = 0;  // that have it; 0: there is none
};

std::array<Mapping, kSharedMax> mappings;
UsedRanges used;
std::array<Range, 2 * kSharedMax> room;
// A task that is killed meanwhile leaves a mapping behind, at worst.
TurnLock turn;
// For one that is stopped.
constexpr uint32_t kPatienceMs = 1000;
constexpr uint32_t kPatienceOfRootMs = 50;

bool has(const Task& task, size_t index) noexcept {
    return (task.shared[index / 64] >> (index % 64) & 1) != 0;
}
void set(Task& task, size_t index, bool has_it) noexcept {
    const uint64_t bit = uint64_t{1} << (index % 64);
    if (has_it) {
        task.shared[index / 64] |= bit;
    } else {
        task.shared[index / 64] &= ~bit;
    }
}

bool contains_text(const char* text, const char* part) noexcept {
    for (; *text != '\0'; ++text) {
        const char* at = text;
        const char* wanted = part;
        while (*wanted != '\0' && *at == *wanted) {
            ++at;
            ++wanted;
        }
        if (*wanted == '\0') return true;
    }
    return false;
}

// A file that the launcher of an MPI job has made for it, by its name.
bool is_of_a_job(uint64_t file) noexcept {
    char link[40] = "/proc/self/fd/";
    size_t at = 14;
    char digits[20];
    size_t count = 0;
    for (uint64_t rest = file; rest > 0 || count == 0; rest /= 10) {
        digits[count++] = static_cast<char>('0' + rest % 10);
    }
    while (count > 0) link[at++] = digits[--count];
    link[at] = '\0';
    char name[512];
    const int64_t bytes = sys::raw_call3(SYS_readlink, reinterpret_cast<uint64_t>(link),
                                         reinterpret_cast<uint64_t>(name), sizeof name - 1);
    if (bytes <= 0) return false;
    name[bytes] = '\0';
    return contains_text(name, "/ompi.") || contains_text(name, "/pmix") ||
           contains_text(name, "/prterun") || contains_text(name, "pmix-");
}

// The kernel checks what the descriptor allows only where it maps.
bool may_map(const Arguments& arguments, uint64_t flags) noexcept {
    const uint64_t access = flags & O_ACCMODE;
    if ((flags & O_PATH) != 0) return false;
    if ((arguments[2] & PROT_WRITE) == 0) return access != O_WRONLY;
    // Files that cannot be sealed have no seals.
    const int64_t seals = sys::raw_call3(SYS_fcntl, arguments[4], F_GET_SEALS, 0);
    const bool is_sealed = seals > 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0;
    return access == O_RDWR && !is_sealed;
}

bool identify(const Arguments& arguments, Identity& identity) noexcept {
    if ((arguments[3] & kTypeMask) != MAP_SHARED ||
        (arguments[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_HUGETLB)) != 0 ||
        arguments[1] < kBytesMin) {
        return false;
    }
    struct statfs system = {};
    struct stat status = {};
    if (sys::raw_call3(SYS_fstatfs, arguments[4], reinterpret_cast<uint64_t>(&system), 0) != 0 ||
        sys::raw_call3(SYS_fstat, arguments[4], reinterpret_cast<uint64_t>(&status), 0) != 0 ||
        !S_ISREG(status.st_mode)) {
        return false;
    }
    if (system.f_type != TMPFS_MAGIC && !is_of_a_job(arguments[4])) return false;
    const int64_t flags = sys::raw_call3(SYS_fcntl, arguments[4], F_GETFL, 0);
    if (flags < 0 || !may_map(arguments, static_cast<uint64_t>(flags))) return false;
    identity = {.device = status.st_dev,
                .file = status.st_ino,
                .offset = arguments[5],
                .bytes = round_up(arguments[1], kOsPageBytes),
                .protection = arguments[2],
                .access = static_cast<uint64_t>(flags) & O_ACCMODE};
    return true;
}

// Wherever there is room, and nothing else is asked for.
bool identify_segment(const Arguments& arguments, Identity& identity) noexcept {
    constexpr uint64_t kUsual = SHM_RDONLY | SHM_RND;
    shmid_ds status = {};
    if (arguments[1] != 0 || (arguments[2] & ~kUsual) != 0 ||
        sys::raw_call3(SYS_shmctl, arguments[0], IPC_STAT, reinterpret_cast<uint64_t>(&status)) !=
            0) {
        return false;
    }
    identity = {.device = kSegment,
                .file = static_cast<uint32_t>(arguments[0]),
                .offset = 0,
                .bytes = round_up(status.shm_segsz, kOsPageBytes),
                .protection = arguments[2] & SHM_RDONLY,
                .access = 0};
    return true;
}

size_t free_place_in_table() noexcept {
    size_t index = 0;
    while (index < kSharedMax && mappings[index].tasks != 0) ++index;
    return index;
}

// 0: not here, for whatever reason.
uint64_t attach_anew(const Identity& identity) noexcept {
    const int64_t place = map_at_free_place(
        used,
        {0, identity.bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, ~uint64_t{0}, 0},
        identity.bytes);
    if (place <= 0) return 0;
    const auto address = static_cast<uint64_t>(place);
    if (succeeded(
            sys::raw_call3(SYS_shmat, identity.file, address, identity.protection | SHM_REMAP))) {
        return address;
    }
    sys::raw_call3(SYS_munmap, address, identity.bytes, 0);
    used.remove({address, address + identity.bytes});
    return 0;
}

void drop(Task& task, size_t index) noexcept {
    Mapping& mapping = mappings[index];
    set(task, index, false);
    if (--mapping.tasks != 0) return;
    sys::raw_call3(SYS_munmap, mapping.address, mapping.identity.bytes, 0);
    used.remove({mapping.address, mapping.address + mapping.identity.bytes});
}

}  // namespace

void SharedMappings::begin(Range whole) noexcept {
    whole_ = whole;
    used.begin(room, whole);
}

int64_t SharedMappings::map(Task& task, const Arguments& arguments) noexcept {
    Identity identity;
    if (!identify(arguments, identity)) return 0;
    const TurnGuard guard(turn, kPatienceMs);
    if (!guard.is_held()) return 0;
    for (size_t index = 0; index < kSharedMax; ++index) {
        Mapping& mapping = mappings[index];
        if (mapping.tasks == 0 || mapping.identity != identity) continue;
        // A second one of the same task is at another place.
        if (has(task, index)) return 0;
        ++mapping.tasks;
        set(task, index, true);
        return static_cast<int64_t>(mapping.address);
    }
    const size_t free = free_place_in_table();
    if (free == kSharedMax) return 0;
    // What a task that was killed has left there stays.
    const int64_t result = map_at_free_place(used, arguments, identity.bytes);
    if (result <= 0) return 0;
    const auto place = static_cast<uint64_t>(result);
    mappings[free] = {.identity = identity, .address = place, .tasks = 1};
    set(task, free, true);
    return result;
}

int64_t SharedMappings::unmap(Task& task, const Arguments& arguments) noexcept {
    const TurnGuard guard(turn, kPatienceMs);
    if (!guard.is_held()) return 0;
    for (size_t index = 0; index < kSharedMax; ++index) {
        const Mapping& mapping = mappings[index];
        if (mapping.tasks == 0 || mapping.address != arguments[0] || !has(task, index)) continue;
        if (round_up(arguments[1], kOsPageBytes) >= mapping.identity.bytes) drop(task, index);
        return 0;
    }
    return 0;  // a part of what others have
}

int64_t SharedMappings::attach(Task& task, const Arguments& arguments) noexcept {
    Identity identity;
    if (!identify_segment(arguments, identity)) return 0;
    const TurnGuard guard(turn, kPatienceMs);
    if (!guard.is_held()) return 0;
    for (size_t index = 0; index < kSharedMax; ++index) {
        Mapping& mapping = mappings[index];
        // One more of the same task is at another place.
        if (mapping.tasks == 0 || mapping.identity != identity || has(task, index)) continue;
        ++mapping.tasks;
        set(task, index, true);
        return static_cast<int64_t>(mapping.address);
    }
    const size_t free = free_place_in_table();
    if (free == kSharedMax) return 0;
    const uint64_t address = attach_anew(identity);
    if (address == 0) return 0;
    mappings[free] = {.identity = identity, .address = address, .tasks = 1};
    set(task, free, true);
    return static_cast<int64_t>(address);
}

int64_t SharedMappings::detach(Task& task, uint64_t address) noexcept {
    const TurnGuard guard(turn, kPatienceMs);
    if (!guard.is_held()) return 0;
    for (size_t index = 0; index < kSharedMax; ++index) {
        const Mapping& mapping = mappings[index];
        if (mapping.tasks == 0 || mapping.address != address || !has(task, index) ||
            mapping.identity.device != kSegment) {
            continue;
        }
        drop(task, index);
        return 0;
    }
    return -EINVAL;
}

// Read all the same where somebody is stopped.
uint64_t SharedMappings::attached_beside(uint32_t segment) noexcept {
    const TurnGuard guard(turn, kPatienceMs);
    uint64_t count = 0;
    for (const Mapping& mapping : mappings) {
        if (mapping.tasks != 0 && mapping.identity.device == kSegment &&
            mapping.identity.file == segment) {
            count += mapping.tasks - 1;
        }
    }
    return count;
}

bool SharedMappings::forget(Task& task) noexcept {
    if (std::ranges::all_of(task.shared, [](uint64_t bits) { return bits == 0; })) return true;
    // Once is enough, for whoever is stopped.
    static bool was_held_up = false;
    const TurnGuard guard(turn, was_held_up ? 0 : kPatienceOfRootMs);
    was_held_up = !guard.is_held();
    for (size_t index = 0; guard.is_held() && index < kSharedMax; ++index) {
        if (has(task, index)) drop(task, index);
    }
    return guard.is_held();
}

uint32_t SharedMappings::count() noexcept {
    const TurnGuard guard(turn, kPatienceMs);
    uint32_t count = 0;
    for (const Mapping& mapping : mappings) count += mapping.tasks != 0 ? 1 : 0;
    return count;
}

}  // namespace hanare::space
