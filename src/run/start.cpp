// SPDX-License-Identifier: Apache-2.0
//
// Where libhanare-run.so begins, in front of the program's main function: `hanare run` has named it
// in LD_PRELOAD and said in HANARE_* variables what it wants.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <link.h>

#include "base/units.hpp"
#include "hook/system_calls.hpp"
#include "intercept/intercept.hpp"
#include "pager/pool_options.hpp"
#include "run/attendant.hpp"
#include "run/control.hpp"
#include "run/servers.hpp"
#include "sys/signal_stack.hpp"
#include "telemetry/log.hpp"

namespace hanare::run {

namespace {

using telemetry::LogLevel;

constexpr uint64_t kBeginBytesMax = 8 * kMiB;
constexpr uint64_t kBeginShare = 64;  // of local memory
constexpr uint64_t kThresholdBytes = 128 * kKiB;
constexpr size_t kHandlerBytes = 64 * kKiB;

bool is_verbose() { return std::getenv("HANARE_RUN_VERBOSE") != nullptr; }

// The program is linked with the library, and so has pools of its own, or may have.
bool has_own_library() {
    const auto is_library = [](dl_phdr_info* module, size_t, void*) {
        const std::string_view path(module->dlpi_name);
        return path.substr(path.rfind('/') + 1).starts_with("libhanare.so") ? 1 : 0;
    };
    return dl_iterate_phdr(is_library, nullptr) != 0;
}

Result<intercept::SpaceOptions> load_space_options() {
    HANARE_TRY_ASSIGN(const config::Options options, config::load_from_environment());
    telemetry::apply_log_options(options);
    if (options.control == config::Switch::kOn) want_control();
    intercept::SpaceOptions space;
    HANARE_TRY(prepare_servers(options));
    HANARE_TRY_ASSIGN(space.pool, pager::pool_options(options, open_server));
    space.pool.starts_keeper = false;
    space.pool.watches_forks = false;
    // A pool of the program's own comes first, if there is to be one.
    space.begin_bytes = has_own_library()
                            ? kBeginBytesMax
                            : std::min(space.pool.local_bytes / kBeginShare, kBeginBytesMax);
    space.threshold_bytes = kThresholdBytes;
    return space;
}

// The first thread's faults must not need its stack, which may be far memory later.
void give_signal_stack() {
    stack_t current = {};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    stack_t stack = {};
    stack.ss_size = sys::signal_stack_bytes(kHandlerBytes);
    stack.ss_sp = sys::map_signal_stack(stack.ss_size);
    if (stack.ss_sp != nullptr) sigaltstack(&stack, nullptr);
}

Result<void> tell_what_is_caught() {
    HANARE_TRY(hook::catch_system_calls());
    const hook::RewriteReport report = hook::rewrite_report();
    telemetry::log(LogLevel::kWarn,
                   "%u system calls of %u modules are caught, %u are not; nothing is adopted "
                   "before the program asks for memory",
                   report.rewritten, report.modules, report.left);
    return {};
}

Result<void> start() {
    HANARE_TRY_ASSIGN(const intercept::SpaceOptions options, load_space_options());
    give_signal_stack();
    HANARE_TRY(intercept::begin(options));
    prepare_attendant(options.pool.local_bytes);
    return is_verbose() ? tell_what_is_caught() : hook::trap_system_calls();
}

[[gnu::constructor]] void begin_program() {
    const Result<void> started = start();
    if (!started) {
        telemetry::log(LogLevel::kWarn, "the program runs in plain memory: %s",
                       started.error().text);
    }
}

}  // namespace

}  // namespace hanare::run

// A program opens a pool of its own, whose tables must not be far.
extern "C" [[gnu::visibility("default")]] bool hanare_run_stand_aside() noexcept {
    hanare::intercept::Space* const space = hanare::intercept::space();
    return space == nullptr || space->stand_aside();
}
