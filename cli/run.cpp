// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include <cstdio>
#include <filesystem>

#include "base/units.hpp"
#include "cli/outcome.hpp"
#include "cli/run_environment.hpp"
#include "cli/run_session.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/file.hpp"
#include "sys/foreground_program.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr uint64_t kBlocksMin = 16;  // hanare/pool.h

std::string named(const config::Options& options, const char* key, OptionId id) {
    return std::string(key) + " (" + options.sources[static_cast<size_t>(id)] + ")";
}

Result<void> check_local(const config::Options& options) {
    const uint64_t least = kBlocksMin * options.block_bytes;
    if (options.local_bytes > least) return {};
    return config::bad_value(named(options, "local", OptionId::local_bytes),
                             config::exact_size(options.local_bytes),
                             "does not hold 16 blocks and their tables",
                             "more than " + config::exact_size(least) + ", or smaller blocks");
}

// Not one block, or not the size that was asked for, would go in.
Result<void> check_room(const config::Options& options, const config::StoreSpec& store,
                        const sys::DirectoryReport& report) {
    const uint64_t wanted = std::max(store.size_bytes, options.block_bytes);
    if (report.room_known && report.free_bytes < wanted) {
        return fail(HANARE_STATUS_STORE_FULL,
                    "%.100s: %s are free in %.100s, too little for %s; free some room there or "
                    "name another directory (--store file:DIR)",
                    named(options, "store", OptionId::store).c_str(),
                    format_size(report.free_bytes).c_str(), store.directory.c_str(),
                    format_size(wanted).c_str());
    }
    return sys::check_file_bytes("a store file", wanted);
}

// Checks the store, and makes its directory one that does not depend on where the program goes.
Result<void> settle_store(config::Options& options) {
    HANARE_TRY_ASSIGN(const StoreDirectory directory, examine_store_directory(options));
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    HANARE_TRY(check_room(options, store, directory.report));
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::canonical(directory.path, error);
    if (error) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error.value(), "store %.150s",
                          directory.path.c_str());
    }
    options.store = config::file_store_spec(absolute.string());
    if (store.size_bytes != 0) options.store += "?size=" + config::exact_size(store.size_bytes);
    return {};
}

Result<config::Options> settle_options(const config::Overrides& overrides) {
    HANARE_TRY_ASSIGN(config::Options options, load_and_apply(overrides));
    HANARE_TRY(check_local(options));
    HANARE_TRY(settle_store(options));
    return options;
}

}  // namespace

int run_program(const RunFlags& flags, const config::Overrides& overrides,
                const RunArguments& arguments) {
    if (arguments.program.empty()) {
        return report(fail(HANARE_STATUS_INVALID_ARGUMENT,
                           "hanare run needs a program: hanare run [OPTIONS] [--] PROG [ARGS...]; "
                           "see hanare run --help")
                          .error());
    }
    auto options = settle_options(overrides);
    if (!options) return report(options.error());
    RunPlan plan;
    plan.flags = flags;
    plan.options = std::move(*options);
    if (flags.stats) {
        auto file = sys::OutputFile::open("--stats", *flags.stats);
        if (!file) return report(file.error());
        plan.stats = std::move(*file);
    }
    auto program = choose_program(arguments.program.front());
    if (!program) return report_not_found(program.error());
    plan.program = std::move(*program);
    if (plan.program.preload) {
        auto library = find_run_library();
        if (!library) return report(library.error());
        plan.library = std::move(*library);
    }
    if (!plan.program.note.empty()) {
        std::fprintf(stderr, "hanare: note: %s\n", plan.program.note.c_str());
    }
    const auto status = run_session(plan, arguments);
    if (status) sys::ForegroundProgram::end_as(*status);
    // What exec refuses is the program's; a failed fork or a missing descriptor is ours.
    const bool is_of_program =
        status.error().os_errno != 0 && status.error().status == HANARE_STATUS_INVALID_ARGUMENT;
    return is_of_program ? report_not_started(plan.program, status.error())
                         : report(status.error());
}

}  // namespace hanare::cli
