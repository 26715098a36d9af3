// SPDX-License-Identifier: Apache-2.0
//
// `hanare pool add PID SPEC`: one more store for the pools of a running process whose store is made
// of several.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/run_report.hpp"
#include "cli/server_question.hpp"
#include "config/store_spec.hpp"
#include "control/addresses.hpp"
#include "control/client.hpp"
#include "control/protocol.hpp"
#include "sys/clock.hpp"
#include "sys/lock.hpp"

namespace hanare::cli {
namespace {

// Longer than a server has by default to answer.  A program answers nothing while it opens a store.
constexpr int kPatience_ms = 60'000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint32_t kPause_us = 20'000;

struct Wanted {
    int process_id = 0;
    std::string spec;
};

// Of a process that has pools of the C API, or is a program below `hanare run`.
std::optional<std::string> address_of(int process_id) {
    for (const control::Kind kind : {control::Kind::kPools, control::Kind::kProgram}) {
        const std::string name =
            std::string(control::kind_name(kind)) + "-" + std::to_string(process_id);
        for (const std::string& address : control::all_addresses()) {
            const size_t begin = address.find_last_of('/') + 1;
            const std::string_view last = std::string_view(address).substr(begin);
            if (last == name || last == name + ".sock") return address;
        }
    }
    return std::nullopt;
}

// Until the process has opened the store, or cannot.
Result<void> wait_until_added(const Wanted& wanted, const std::string& address) {
    const uint64_t end_ns = sys::now_ns() + kPatience_ms * kNsPerMs;
    for (;;) {
        const auto told = control::ask(address, control::kAdded, kPatience_ms);
        if (!told) {
            return fail(HANARE_STATUS_STORE_UNAVAILABLE, "process %d has ended, or: %.200s",
                        wanted.process_id, told.error().text);
        }
        const std::string& text = *told;
        const auto answer = nlohmann::json::parse(text, nullptr, false);
        if (!answer.is_object() || !answer.contains("waiting") || !answer.contains("wrong")) {
            return fail(HANARE_STATUS_INTERNAL, "process %d answers what makes no sense",
                        wanted.process_id);
        }
        if (answer["waiting"] == 0) {
            const auto wrong = answer["wrong"].get<std::string>();
            if (wrong.empty()) return {};
            return fail(HANARE_STATUS_STORE_UNAVAILABLE, "process %d cannot add it: %.200s",
                        wanted.process_id, wrong.c_str());
        }
        if (sys::now_ns() > end_ns) {
            return fail(HANARE_STATUS_TIMEOUT, "process %d is still about it", wanted.process_id);
        }
        sys::yield_for_us(kPause_us);
    }
}

// Directories do not depend on where the process is, and neither names of hosts that nobody knows
// nor silent servers hold it up.
Result<void> settle(config::StoreSpec& spec) {
    for (config::StoreSpec& member : spec.members) HANARE_TRY(settle(member));
    if (spec.kind == config::StoreKind::kServer) {
        const char* const secret_file = std::getenv("HANARE_SECRET_FILE");
        HANARE_TRY(check_not_silent(
            spec.server, secret_file ? std::optional<std::string>(secret_file) : std::nullopt));
    } else if (spec.kind == config::StoreKind::kFile) {
        std::error_code error;
        spec.directory = std::filesystem::absolute(spec.directory, error).string();
        if (error) {
            return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error.value(), "this directory");
        }
    }
    return {};
}

Result<void> add(const Wanted& wanted) {
    HANARE_TRY_ASSIGN(config::StoreSpec spec, config::parse_store_spec(wanted.spec));
    HANARE_TRY(settle(spec));
    const auto address = address_of(wanted.process_id);
    if (!address) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "process %d has no pool that can be asked, of the C API or of a program below "
                    "hanare run (hanare ps)",
                    wanted.process_id);
    }
    const std::string request = std::string(control::kAdd) + " " + config::format_store_spec(spec);
    const auto asked = control::ask(*address, request, kPatience_ms);
    if (!asked && asked.error().os_errno == ECONNREFUSED) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "process %d has ended", wanted.process_id);
    }
    if (!asked) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "process %d: %.250s", wanted.process_id,
                    asked.error().text);
    }
    return wait_until_added(wanted, *address);
}

}  // namespace

void add_pool(CLI::App& app) {
    CLI::App* const pool = app.add_subcommand("pool", "pools of running processes");
    pool->require_subcommand(1);
    CLI::App* const command = pool->add_subcommand(
        "add", "one more store for the pools of a process whose store is made of several");
    const auto wanted = std::make_shared<Wanted>();
    command->add_option("PID", wanted->process_id, "of the process, as hanare ps tells it");
    command->add_option("SPEC", wanted->spec, "of the store, as for --store");
    set_run(*command, [wanted] {
        if (wanted->process_id <= 0 || wanted->spec.empty()) {
            return report(fail(HANARE_STATUS_INVALID_ARGUMENT,
                               "hanare pool add needs PID and SPEC; see hanare pool add --help")
                              .error());
        }
        const auto added = add(*wanted);
        if (!added) return report(added.error());
        std::printf("process %d: %s has been added\n", wanted->process_id, wanted->spec.c_str());
        return kExitSuccess;
    });
}

}  // namespace hanare::cli
