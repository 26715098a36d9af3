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

// Checks the store, and makes directories such that they do not depend on where the program goes.
Result<void> settle_spec(config::StoreSpec& store, const config::Options& options) {
    if (store.kind == config::StoreKind::kServer) return {};
    for (config::StoreSpec& member : store.members) HANARE_TRY(settle_spec(member, options));
    if (store.kind != config::StoreKind::kFile) return {};
    HANARE_TRY_ASSIGN(const StoreDirectory directory, examine_directory_of(store, options));
    HANARE_TRY(check_room(options, store, directory.report));
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::canonical(directory.path, error);
    if (error) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error.value(), "store %.150s",
                          directory.path.c_str());
    }
    store.directory = absolute.string();
    return {};
}

Result<void> settle_store(config::Options& options) {
    HANARE_TRY_ASSIGN(config::StoreSpec store, config::parse_store_spec(options.store));
    HANARE_TRY(settle_spec(store, options));
    options.store = config::format_store_spec(store);
    return {};
}

Result<config::Options> settle_options(const config::Overrides& overrides,
                                       RunCompanion* companion) {
    HANARE_TRY_ASSIGN(config::Options options, load_and_apply(overrides));
    HANARE_TRY(check_local(options));
    if (companion != nullptr) HANARE_TRY(companion->check());
    if (companion == nullptr || !companion->has_store()) HANARE_TRY(settle_store(options));
    return options;
}

Result<void> prepare_broker(RunPlan& plan, const OpenRunBroker& open) {
    if (plan.broker != nullptr) return {};
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(plan.options.store));
    if (!config::uses_servers(store)) return {};
    HANARE_TRY_ASSIGN(plan.broker, open(plan.options));
    return {};
}

}  // namespace

int run_program(const RunFlags& flags, const config::Overrides& overrides,
                const RunArguments& arguments, const OpenRunBroker& open_broker,
                RunCompanion* companion) {
    if (arguments.program.empty()) {
        return report(fail(HANARE_STATUS_INVALID_ARGUMENT,
                           "hanare run needs a program: hanare run [OPTIONS] [--] PROG [ARGS...]; "
                           "see hanare run --help")
                          .error());
    }
    auto options = settle_options(overrides, companion);
    if (!options) return report(options.error());
    RunPlan plan;
    plan.flags = flags;
    plan.options = std::move(*options);
    if (companion == nullptr || !companion->has_store()) {
        const auto prepared = prepare_broker(plan, open_broker);
        if (!prepared) return report(prepared.error());
    }
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
    if (companion != nullptr) {
        const auto begun = companion->begin(plan.options);
        if (!begun) return report(begun.error());
        const auto prepared = prepare_broker(plan, open_broker);
        if (!prepared) return report(prepared.error());
    }
    const auto status = run_session(plan, arguments);
    if (companion != nullptr) companion->end();
    if (status) sys::ForegroundProgram::end_as(*status);
    // What exec refuses is the program's; a failed fork or a missing descriptor is ours.
    const bool is_of_program =
        status.error().os_errno != 0 && status.error().status == HANARE_STATUS_INVALID_ARGUMENT;
    return is_of_program ? report_not_started(plan.program, status.error())
                         : report(status.error());
}

}  // namespace hanare::cli
