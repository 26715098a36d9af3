// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "config/store_spec.hpp"
#include "sys/memory_limits.hpp"
#include "sys/process_usage.hpp"

namespace hanare::cli {

namespace {

using config::Engine;
using config::OptionId;
using config::Options;
using sys::Platform;

constexpr uint64_t kBlocksMin = 16;  // hanare/pool.h

std::string limit_text(const sys::ResourceLimit& limit) {
    return limit.soft == UINT64_MAX ? "unlimited" : format_size(limit.soft);
}

Finding check_kernel(const Platform& platform) {
    const bool lacks_move = platform.userfault.available && !platform.userfault.move;
    return {"kernel", platform.kernel_release,
            "nothing: what the kernel offers is tried out below, its number does not matter",
            lacks_move ? "6.8 or newer has UFFDIO_MOVE, which saves a copy per fault" : ""};
}

std::string why_no_userfault(const Platform& platform) {
    if (platform.userfault.os_errno == ENOSYS && !platform.is_filtered) {
        return "a kernel with CONFIG_USERFAULTFD";
    }
    if (platform.is_filtered) {
        return "a seccomp profile that allows userfaultfd (docker run --security-opt "
               "seccomp=FILE; a container's default profile refuses it)";
    }
    return "kernel 5.11 or newer, or sysctl vm.unprivileged_userfaultfd=1";
}

struct EngineNeed {
    Engine engine;
    const char* name;
    bool is_met;
    const char* change;  // where it is not
};

constexpr char kForSystemCalls[] =
    "root (CAP_SYS_PTRACE), access to /dev/userfaultfd or sysctl vm.unprivileged_userfaultfd=1";

// In the order in which automatic choice tries them (pager/engines.cpp); it never goes beyond
// segv-remap, which always works.
std::vector<EngineNeed> engine_needs(const Platform& platform) {
    const sys::Userfault::Support& support = platform.userfault;
    const bool can_copy = support.available && support.sigbus && support.write_protect;
    return {{Engine::kSigbusMove, "sigbus-move", can_copy && support.move, "kernel 6.8 or newer"},
            {Engine::kSigbusCopy, "sigbus-copy", can_copy, "kernel 5.7 or newer"},
            {Engine::kSegvRemap, "segv-remap", true, ""},
            {Engine::kThread, "thread", support.system_calls_errno == 0, kForSystemCalls},
            {Engine::kShared, "shared", can_copy && support.shared_memory, "kernel 5.19 or newer"}};
}

// The engine that will be used, or the one that was asked for.
EngineNeed chosen_engine(const Options& options, const Platform& platform) {
    const auto needs = engine_needs(platform);
    for (const EngineNeed& need : needs) {
        if (options.engine == need.engine) return need;
        if (options.engine == Engine::kAuto && need.is_met) return need;
    }
    return needs.back();
}

Finding check_userfault(const Options& options, const Platform& platform) {
    const sys::Userfault::Support& support = platform.userfault;
    Finding finding;
    finding.check = "userfaultfd";
    if (!support.available) {
        finding.found = std::string("refused: ") + std::strerror(support.os_errno);
    } else {
        finding.found =
            support.system_calls_errno == 0 ? "works, kernel mode too" : "works, user mode only";
        if (support.sigbus) finding.found += ", SIGBUS";
        if (support.write_protect) finding.found += ", write protection";
        if (support.move) finding.found += ", MOVE";
        if (support.shared_memory) finding.found += ", shared memory";
    }
    const EngineNeed chosen = chosen_engine(options, platform);
    finding.change = !support.available ? why_no_userfault(platform) : chosen.change;
    if (!support.available && chosen.engine == Engine::kThread) {
        finding.change += "; " + std::string(chosen.change);
    }
    if (!chosen.is_met) {
        finding.use = std::string("nothing: engine ") + chosen.name + " was asked for and needs it";
        finding.change += "; or engine = auto";
        finding.prevents = true;
        return finding;
    }
    finding.use = std::string("serves faults with engine ") + chosen.name;
    if (chosen.engine == Engine::kSegvRemap) {
        finding.use += ", by page protection, with mappings per block (see max_map_count)";
    }
    if (chosen.engine == Engine::kThread) {
        finding.use += ", in threads of its own, which makes every fault some 10 us longer";
    }
    if (chosen.engine == Engine::kShared) {
        finding.use += ", from a file of memory that other processes may map";
    }
    const EngineNeed best = engine_needs(platform).front();
    if (best.is_met) {
        finding.change = "";
    } else if (support.available) {
        finding.change = std::string(best.change) + " for the faster " + best.name;
    }
    return finding;
}

Finding check_system_calls(const Options& options, const Platform& platform) {
    const int refusal = platform.userfault.system_calls_errno;
    const bool are_served = chosen_engine(options, platform).engine == Engine::kThread;
    Finding finding;
    finding.check = "system calls";
    finding.found = refusal == 0
                        ? "their faults can be had"
                        : std::string("their faults are refused: ") + std::strerror(refusal);
    if (are_served) {
        finding.use = "serves their faults: they may be given absent memory";
    } else if (options.syscalls == config::Switch::kOn) {
        finding.use = "catches them, so that they may be given absent memory";
    } else {
        finding.use =
            "under hanare run, catches them; of programs that use the API, lets them fail with "
            "EFAULT on absent memory: hanare_pin first, or syscalls = on";
        if (refusal == 0) finding.use += ", or engine = thread";
        if (refusal != 0) finding.change = std::string("for engine thread: ") + kForSystemCalls;
    }
    return finding;
}

Finding check_uring(const Options& options, const Platform& platform) {
    Finding finding;
    finding.check = "io_uring";
    if (platform.uring_errno == 0) {
        finding.found = "works";
        finding.use = options.io == config::Io::kSync
                          ? "nothing: io = sync was asked for"
                          : "reads ahead and writes back with many transfers in flight";
        return finding;
    }
    finding.found = std::string("refused: ") + std::strerror(platform.uring_errno);
    finding.prevents = options.io == config::Io::kUring;
    finding.use = finding.prevents
                      ? "nothing: io = uring was asked for"
                      : "writes back, and reads what the keeper reads, one transfer at a time";
    if (platform.io_uring_disabled.value_or(0) != 0) {
        finding.change = "sysctl kernel.io_uring_disabled=0";
    } else {
        finding.change = platform.is_filtered ? "a seccomp profile that allows io_uring"
                                              : "kernel 5.11 or newer with CONFIG_IO_URING";
    }
    if (finding.prevents) finding.change += ", or io = auto";
    return finding;
}

Finding check_memory(const Options& options) {
    Finding finding;
    finding.check = "memory limit";
    const auto limit = sys::effective_memory_limit();
    finding.found = limit ? format_size(limit->bytes) + ", " + limit->origin : limit.error().text;
    finding.use = "a pool uses " + format_size(options.local_bytes) + " of local memory (" +
                  options.sources[static_cast<size_t>(OptionId::local_bytes)] + ")";
    // Their descriptors take a little more.
    if (options.local_bytes <= kBlocksMin * options.block_bytes) {
        finding.use += ", which does not hold 16 blocks and their tables";
        finding.change = "local more than " + format_size(kBlocksMin * options.block_bytes) +
                         ", or smaller blocks";
        finding.prevents = true;
    } else if (limit && options.local_bytes > limit->bytes) {
        finding.use += ", more than the limit: the kernel may kill the program";
        finding.change = "local at most " + format_size(limit->bytes / 5 * 4);
    }
    return finding;
}

// What keeps even one block, or the size that was asked for, out of the store.
void refuse_without_room(const config::StoreSpec& spec, const sys::DirectoryReport& report,
                         const Options& options, const Platform& platform, Finding& finding) {
    const uint64_t wanted = std::max(spec.size_bytes, options.block_bytes);
    const std::string what = spec.size_bytes != 0 ? format_size(spec.size_bytes) + " were asked for"
                                                  : "not one block can be stored";
    if (report.room_known && report.free_bytes < wanted) {
        finding.use = "refuses it: no room, " + what;
        finding.change = "free some room there, or store = file:DIR elsewhere";
        if (spec.size_bytes != 0) finding.change += ", or a smaller size";
        finding.prevents = true;
    } else if (platform.file_bytes.soft < wanted) {
        finding.use = "refuses it: files may have " + limit_text(platform.file_bytes) + ", " + what;
        finding.change = "ulimit -f unlimited";
        finding.prevents = true;
    }
}

Finding check_store(const Options& options, const Platform& platform) {
    Finding finding;
    finding.check = "store";
    finding.use = "keeps absent blocks in an unnamed file there";
    const auto spec = config::parse_store_spec(options.store);
    if (spec && spec->kind == config::StoreKind::kServer) {
        finding.found = "memory server " + config::server_url(spec->server);
        finding.use = "keeps absent blocks there; `hanare status` says whether it is up";
        return finding;
    }
    if (spec && spec->kind != config::StoreKind::kFile) {
        finding.found = config::format_store_spec(*spec);
        finding.use =
            "keeps absent blocks in all of them; hanare run says whether they can be used";
        return finding;
    }
    const auto report = spec ? sys::probe_directory(spec->directory)
                             : Result<sys::DirectoryReport>(std::unexpected(spec.error()));
    if (!report) {
        finding.found = report.error().text;
        finding.use = "nothing: absent blocks have no place";
        finding.change = "store = file:DIR with a directory that you may write to";
        finding.prevents = true;
        return finding;
    }
    finding.found = spec->directory + ": " + report->file_system;
    if (report->room_known) finding.found += ", " + format_size(report->free_bytes) + " free";
    finding.found += report->direct_errno == 0 ? ", O_DIRECT works" : ", no O_DIRECT";
    if (report->in_memory && !options.allow_tmpfs) {
        finding.use = "refuses it: blocks there would occupy memory after all";
        finding.change = "store = file:DIR on a disk, or allow_tmpfs = true";
        finding.prevents = true;
        return finding;
    }
    if (!options.use_direct) {
        finding.use += ", through the page cache: direct = false was asked for";
    } else if (report->direct_errno != 0) {
        finding.use += ", through the page cache, which takes memory and time";
        finding.change = "a directory on ext4, xfs or btrfs";
    }
    refuse_without_room(*spec, *report, options, platform, finding);
    return finding;
}

Finding check_cgroup(const Platform& platform) {
    if (platform.cgroup_refusal.empty()) {
        return {"memory cgroup",
                "version " + std::to_string(platform.cgroup_version) + ", may be created",
                "nothing; demo and bench pager give every limited system one of equal size", ""};
    }
    return {
        "memory cgroup", "may not be created: " + platform.cgroup_refusal,
        "nothing; demo and bench pager run Hanare by its own budget, and leave out mmap and swap",
        "for these: root, or a delegated cgroup (systemd-run --user --scope -p Delegate=yes)"};
}

Finding check_swap(const Platform& platform) {
    std::string found = platform.swap_bytes == 0
                            ? "none"
                            : format_size(platform.swap_free_bytes) + " free of " +
                                  format_size(platform.swap_bytes);
    found += platform.may_swapon ? "; swapon is allowed" : "; swapon is not allowed";
    const bool compares = platform.may_swapon && platform.cgroup_refusal.empty();
    return {"swap", found,
            compares ? "nothing; demo and bench pager compare with a swap file of their own"
                     : "nothing; demo and bench pager leave out kernel swap",
            compares ? "" : "for these: root"};
}

Finding check_huge_pages(const Platform& platform) {
    const bool has = platform.huge_pages == "madvise" || platform.huge_pages == "always";
    return {"huge pages", platform.huge_pages.empty() ? "none" : platform.huge_pages,
            std::string("keeps far memory in small pages, so that blocks move page by page") +
                (has ? "; engines that move pages take frames from huge pages, whose parts are "
                       "neighbours"
                     : "; frames are scattered over memory, which slows transfers"),
            has ? "" : "a kernel with transparent huge pages, set to madvise or always"};
}

Finding check_mappings(const Options& options, const Platform& platform) {
    constexpr uint64_t kFew = 1000;
    const uint64_t max = platform.max_map_count.value_or(0);
    Finding finding = {"max_map_count", max == 0 ? "unknown" : std::to_string(max),
                       "needs two mappings per region and ten per pool, however many faults "
                       "there are",
                       max != 0 && max < kFew ? "sysctl vm.max_map_count=65530" : ""};
    if (max == 0 || chosen_engine(options, platform).engine != Engine::kSegvRemap) return finding;
    // As pager/mapping_budget.cpp counts.
    const uint64_t usable = max - max / 8;
    const uint64_t needed = 2 * options.local_bytes / options.block_bytes;
    uint64_t block_bytes = options.block_bytes;
    while (2 * options.local_bytes / block_bytes > usable) block_bytes *= 2;
    finding.use = "needs two mappings per block of local memory, " + std::to_string(needed);
    if (block_bytes != options.block_bytes) {
        finding.use += ": large regions get blocks of " + format_size(block_bytes) +
                       " instead of " + format_size(options.block_bytes);
        finding.change = "sysctl vm.max_map_count=" + std::to_string(needed / 7 * 8 + kFew);
    }
    return finding;
}

Finding check_overcommit(const Platform& platform) {
    constexpr uint64_t kNever = 2;
    const bool is_strict = platform.overcommit_memory == kNever;
    return {"overcommit",
            platform.overcommit_memory ? "mode " + std::to_string(*platform.overcommit_memory)
                                       : "unknown",
            is_strict ? "regions and the budget count against the commit limit, so large ones are "
                        "refused, and hanare run reserves fewer addresses"
                      : "reserves regions larger than memory; hanare run reserves 1.25 TiB of "
                        "addresses",
            is_strict ? "sysctl vm.overcommit_memory=0" : ""};
}

Finding check_limits(const Platform& platform) {
    constexpr uint64_t kFewFiles = 64;
    Finding finding;
    finding.check = "limits";
    finding.found =
        "address space " + limit_text(platform.address_bytes) + ", file size " +
        limit_text(platform.file_bytes) + ", locked memory " + limit_text(platform.locked_bytes) +
        ", " +
        (platform.open_files.soft == UINT64_MAX ? "unlimited"
                                                : std::to_string(platform.open_files.soft)) +
        " open files";
    finding.use =
        "regions and the budget need address space, a pool one file and up to four descriptors "
        "(engine thread up to 13, engine shared one more per region), a process two for hanare ps; "
        "locks nothing";
    if (platform.address_bytes.soft != UINT64_MAX) finding.change = "ulimit -v unlimited";
    if (platform.file_bytes.soft != UINT64_MAX) {
        finding.change += finding.change.empty() ? "" : "; ";
        finding.change += "ulimit -f unlimited";
    }
    if (platform.open_files.soft < kFewFiles) {
        finding.change += finding.change.empty() ? "" : "; ";
        finding.change += "ulimit -n 1024";
    }
    return finding;
}

Finding check_sigbus(const Options& options, const Platform& platform) {
    const char* const found = platform.sigbus_blocked   ? "blocked by the parent process"
                              : platform.sigbus_ignored ? "ignored by the parent process"
                                                        : "free";
    const bool also_segv = chosen_engine(options, platform).engine == Engine::kSegvRemap;
    return {"SIGBUS", found,
            std::string("claims and unblocks it") + (also_segv ? ", and SIGSEGV" : "") +
                "; the program's own handler is called in turn",
            ""};
}

Finding check_cpus(const Options& options) {
    Finding finding;
    finding.check = "CPUs";
    finding.found = std::to_string(sys::allowed_cpus()) + " may be used";
    if (options.background != config::Background::kOff) {
        finding.use = "the keeper thread reads, cleans and frees ahead of need (background = on)";
        return finding;
    }
    finding.use = "faulting threads evict and read ahead themselves (background = off)";
    finding.change = "background = on overlaps transfers with the program's work";
    return finding;
}

Finding check_user(const Platform& platform) {
    return {"user", platform.user_id == 0 ? "root" : "user id " + std::to_string(platform.user_id),
            "needs no privilege", ""};
}

}  // namespace

std::vector<Finding> examine(const Options& options, const Platform& platform) {
    return {check_kernel(platform),
            check_userfault(options, platform),
            check_system_calls(options, platform),
            check_uring(options, platform),
            check_memory(options),
            check_store(options, platform),
            check_cgroup(platform),
            check_swap(platform),
            check_huge_pages(platform),
            check_mappings(options, platform),
            check_overcommit(platform),
            check_limits(platform),
            check_sigbus(options, platform),
            check_cpus(options),
            check_user(platform),
            check_programs(options),
            check_seccomp(platform),
            check_user_dispatch(platform),
            check_ptrace(platform),
            check_pool(options)};
}

}  // namespace hanare::cli
