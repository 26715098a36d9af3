// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_setting.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/block_device.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr uint64_t kDefaultLocal = 512 * kMiB;
constexpr config::Range kRoundsAllowed(1, 99);
constexpr config::Range kPatienceAllowed_s(1, 86400);
constexpr const char* kSystems[] = {"plain", "mmap", "mmap-seq", "swap", "hanare"};

// The size that a store SPEC may name.
Result<void> check_store_size(const config::Options& options, const bench::DemoPlan& plan,
                              uint64_t free_bytes) {
    HANARE_TRY_ASSIGN(const config::StoreSpec store, config::parse_store_spec(options.store));
    const bool is_small = store.size_bytes < plan.store_bytes;
    if (store.size_bytes == 0 || (!is_small && store.size_bytes <= free_bytes)) return {};
    const std::string source = options.sources[static_cast<size_t>(OptionId::store)];
    return config::bad_value(
        "store (" + source + ")", options.store,
        is_small ? "is too small for a matrix of " + format_size(plan.matrix_bytes)
                 : "is more than the " + format_size(free_bytes) + " that are free there",
        "a size of " + config::exact_size(plan.store_bytes) + " or more, or none");
}

}  // namespace

Result<std::vector<std::string>> parse_systems(const std::string& list) {
    std::vector<std::string> systems;
    std::istringstream parts(list);
    for (std::string name; std::getline(parts, name, ',');) {
        const bool known =
            std::find(std::begin(kSystems), std::end(kSystems), name) != std::end(kSystems);
        if (!known || std::find(systems.begin(), systems.end(), name) != systems.end()) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "--systems %s: '%s' is unknown or named twice; allowed are plain, mmap, "
                        "mmap-seq, swap and hanare",
                        list.c_str(), name.c_str());
        }
        systems.push_back(name);
    }
    if (!systems.empty() && !list.ends_with(',')) return systems;
    return config::bad_value("--systems", list, "lacks a name",
                             "one or more of plain, mmap, mmap-seq, swap and hanare");
}

Result<DemoSetting> make_setting(const DemoFlags& flags) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    DemoSetting setting;
    HANARE_TRY_ASSIGN(setting.rounds, kRoundsAllowed.parse("--rounds", flags.rounds));
    HANARE_TRY_ASSIGN(setting.patience_s, kPatienceAllowed_s.parse("--patience", flags.patience_s));
    DemoJob& job = setting.job;
    job.store = options.store;
    job.block_bytes = options.block_bytes;
    job.engine = config::value_text(options, OptionId::engine);
    job.read_ahead_blocks = options.read_ahead_blocks;
    HANARE_TRY_ASSIGN(job.directory, store_directory(options));
    if (const auto device = sys::block_device_of(job.directory)) job.device = *device;

    bench::DemoRequest request;
    HANARE_TRY_ASSIGN(request.matrix_bytes, parse_size("--size", flags.size));
    const std::string& source = options.sources[static_cast<size_t>(OptionId::local_bytes)];
    request.local_is_default = source == "default";
    request.local_bytes = request.local_is_default ? kDefaultLocal : options.local_bytes;
    request.local_name = "local (" + source + ")";
    request.block_bytes = options.block_bytes;
    request.directory = job.directory;
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(job.directory));
    HANARE_TRY_ASSIGN(setting.plan, bench::plan_demo(request, room));
    HANARE_TRY(check_store_size(options, setting.plan, room.free_disk_bytes));
    job.n = setting.plan.n;
    job.local_bytes = setting.plan.hanare_local_bytes;
    return setting;
}

}  // namespace hanare::cli
