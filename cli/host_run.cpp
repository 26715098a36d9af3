// SPDX-License-Identifier: Apache-2.0
#include "cli/host_run.hpp"

#include <algorithm>

#include "cli/remote_shell.hpp"
#include "config/rules.hpp"
#include "job/environment.hpp"
#include "sys/text_file.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr uint32_t kHostsMax = 100'000;

const config::Override* find(const config::Overrides& overrides, OptionId option) {
    const auto found = std::ranges::find(overrides, option, &config::Override::option);
    return found == overrides.end() ? nullptr : &*found;
}

Result<void> refuse_without_file(const HostFlags& flags) {
    const std::pair<const char*, const std::optional<std::string>*> surplus[] = {
        {"-n", &flags.count}, {"--rsh", &flags.rsh}, {"--remote", &flags.remote}};
    for (const auto& [name, value] : surplus) {
        if (*value) return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s needs -f, a host file", name);
    }
    return {};
}

// The servers are the store, and have a secret of their own.
Result<void> refuse_beside_servers(const config::Overrides& overrides) {
    for (const OptionId option : {OptionId::store, OptionId::secret_file}) {
        const config::Override* const given = find(overrides, option);
        if (given == nullptr) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%.50s and -f exclude each other: the servers of the host file are the store",
                    given->source.c_str() + std::string_view("flag ").size());
    }
    return {};
}

Result<std::vector<config::MemoryHost>> read_hosts(const HostFlags& flags) {
    std::optional<uint32_t> count;
    if (flags.count) {
        HANARE_TRY_ASSIGN(count, job::parse_number("-n", *flags.count, 1, kHostsMax));
    }
    auto text = sys::read_text_file(*flags.file);
    if (!text) return fail(HANARE_STATUS_INVALID_ARGUMENT, "-f: %.240s", text.error().text);
    HANARE_TRY_ASSIGN(auto hosts, config::parse_memory_hosts(*flags.file, *text));
    return config::first_hosts(*flags.file, std::move(hosts), count);
}

}  // namespace

Result<std::unique_ptr<HostRun>> HostRun::prepare(const HostFlags& flags,
                                                  const RunArguments& arguments,
                                                  config::Overrides& overrides) {
    if (!flags.file) {
        HANARE_TRY(refuse_without_file(flags));
        return nullptr;
    }
    HANARE_TRY_ASSIGN(auto hosts, read_hosts(flags));
    if (hosts.size() > 1) HANARE_TRY(refuse_beside_servers(overrides));
    if (find(overrides, OptionId::local_bytes) == nullptr) {
        overrides.push_back({OptionId::local_bytes, config::exact_size(hosts.front().bytes),
                             "host file " + hosts.front().where});
    }
    hosts.erase(hosts.begin());
    HostServersPlan plan;
    plan.hosts = std::move(hosts);
    plan.rsh = words_of(flags.rsh.value_or("ssh"));
    if (plan.rsh.empty()) {
        return config::bad_value("--rsh", *flags.rsh, "is empty", "a command, such as ssh -p 2222");
    }
    HANARE_TRY_ASSIGN(plan.program, own_path());
    if (flags.remote) plan.program = *flags.remote;
    plan.ignores_file_size_signal = arguments.ignores_file_size_signal;
    return std::unique_ptr<HostRun>(new HostRun(std::move(plan), *flags.file));
}

Result<void> HostRun::check() {
    if (plan_.hosts.empty()) return {};
    return HostServers::check(plan_);
}

Result<void> HostRun::begin(config::Options& options) {
    if (plan_.hosts.empty()) return {};
    HANARE_TRY_ASSIGN(HostServers servers, HostServers::start(plan_));
    servers_.emplace(std::move(servers));
    const auto set = [&](OptionId id, std::string& value, const std::string& text) {
        value = text;
        options.sources[static_cast<size_t>(id)] = "host file " + file_;
    };
    set(OptionId::store, options.store, servers_->store());
    set(OptionId::secret_file, options.secret_file, servers_->secret_file());
    return {};
}

void HostRun::end() noexcept {
    if (servers_) servers_->end();
    servers_.reset();
}

}  // namespace hanare::cli
