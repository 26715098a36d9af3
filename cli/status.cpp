// SPDX-License-Identifier: Apache-2.0
//
// `hanare status` and `hanare drain`: what a memory server is doing, and that it lend nothing more.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/run_report.hpp"
#include "cli/server_json.hpp"
#include "cli/server_question.hpp"
#include "cli/server_secret.hpp"
#include "cli/table.hpp"
#include "config/server_address.hpp"
#include "fabric/tcp_link.hpp"
#include "lease/ask.hpp"
#include "sys/clock.hpp"
#include "sys/host_address.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::cli {
namespace {

using lease::Ask;

constexpr int kPatience_ms = 5000;
constexpr uint64_t kNsPerMs = 1'000'000;
// A server that claims to have more leases than this is believed no further.
constexpr size_t kRowsMax = 100'000;

struct QuestionFlags {
    std::optional<std::string> address;
    std::optional<std::string> secret_file;
    bool as_json = false;
};

// A server, how it is called, and the way to it.
struct Server {
    std::string url;
    bool knows_secret = false;
    std::unique_ptr<fabric::TcpLink> link;

    // The user can mend that: by another address or secret, or a server there.
    std::unexpected<Error> failed(const std::string& why) const {
        return fail(HANARE_STATUS_STORE_UNAVAILABLE, "%.100s %.150s", url.c_str(), why.c_str());
    }
    std::unexpected<Error> failed(hanare_status status) const;
};

// Of a question.
std::unexpected<Error> Server::failed(hanare_status status) const {
    switch (status) {
        case HANARE_STATUS_NOT_SUPPORTED:
            return failed("is no memory server, or one of another version of Hanare");
        case HANARE_STATUS_PEER_LOST:
            if (knows_secret) return failed("has ended the connection");
            return failed(
                "has ended the connection: it wants a secret (--secret-file), or is no "
                "memory server");
        case HANARE_STATUS_TIMEOUT:
            return failed("does not answer within " + std::to_string(kPatience_ms / 1000) + " s");
        case HANARE_STATUS_CORRUPT: return failed("answers with nonsense");
        case HANARE_STATUS_PERMISSION: return failed("does not take that from a tenant");
        default: return failed(std::string("refuses: ") + hanare_status_text(status));
    }
}

// Of connecting.
std::string why_unreachable(const Error& error, bool knows_secret) {
    switch (error.status) {
        case HANARE_STATUS_BAD_KEY: return "has another secret, or is no memory server";
        case HANARE_STATUS_PERMISSION:
            return "is on another machine, which needs a secret (--secret-file)";
        case HANARE_STATUS_PEER_LOST:
            if (knows_secret && error.os_errno == 0) {
                return "does not want a secret, has another one, or is no memory server";
            }
            [[fallthrough]];
        default: return std::string("cannot be reached: ") + error.text;
    }
}

Result<std::unique_ptr<fabric::TcpLink>> link_to(std::string host, uint16_t port,
                                                 const std::optional<fabric::Secret>& secret) {
    return fabric::TcpLink::connect(
        {.host = std::move(host), .port = port, .secret = secret, .timeout_ms = kPatience_ms});
}

Result<Server> connect(const QuestionFlags& flags) {
    HANARE_TRY_ASSIGN(const auto address, config::parse_server_address(*flags.address));
    HANARE_TRY_ASSIGN(const auto secret, read_secret(flags.secret_file));
    Server server{
        .url = config::server_url(address), .knows_secret = secret.has_value(), .link = nullptr};
    auto host = sys::look_up_host(address.host);
    if (!host) return server.failed("cannot be reached: " + std::string(host.error().text));
    auto link = link_to(std::move(*host), address.port, secret);
    if (!link) return server.failed(why_unreachable(link.error(), server.knows_secret));
    server.link = std::move(*link);
    return server;
}

struct Told {
    lease::Answer answer;
    std::vector<lease::StatusRow> rows;
};

// All leases, by as many questions as that takes.  Those that begin or end meanwhile may be
// missing.
Result<Told> ask_for_status(const Server& server) {
    const uint64_t deadline_ns = sys::now_ns() + uint64_t{kPatience_ms} * kNsPerMs;
    Told told;
    lease::Reply reply;
    do {
        const lease::Question question = {.what = Ask::kStatus,
                                          .first = static_cast<uint32_t>(told.rows.size())};
        const hanare_status status = lease::ask(*server.link, question, deadline_ns, reply);
        if (status != HANARE_STATUS_OK) return server.failed(status);
        told.answer = reply.answer;
        told.rows.insert(told.rows.end(), reply.rows.begin(), reply.rows.end());
        if (told.rows.size() > kRowsMax) return server.failed(HANARE_STATUS_CORRUPT);
    } while (!reply.rows.empty() && told.rows.size() < told.answer.extents);
    return told;
}

std::string text_of(const Server& server, const Told& told) {
    const lease::Answer& answer = told.answer;
    const bool is_draining = (answer.flags & lease::kDraining) != 0;
    std::string text = server.url + ": " + format_size(answer.total_bytes) + ", " +
                       format_size(answer.leased_bytes) + " leased, " +
                       format_size(answer.free_bytes) + " free" +
                       (is_draining ? ", draining" : "") + "\n";
    if (told.rows.empty()) return text;
    const bool has_tenants = std::ranges::any_of(
        told.rows, [](const lease::StatusRow& row) { return !lease::tenant_of(row).empty(); });
    std::vector<Table::Column> columns = {{"lease", 8},
                                          {"client", lease::kClientNameBytes},
                                          {"memory", 11},
                                          {"connections", 11},
                                          {"age", 9}};
    if (has_tenants) columns.push_back({"tenant", lease::kTenantNameBytes});
    Table table(columns);
    for (const lease::StatusRow& row : told.rows) {
        std::vector<std::string> cells = {
            std::to_string(row.number), std::string(lease::client_of(row)), format_size(row.bytes),
            std::to_string(row.connections), format_duration(row.age_s)};
        if (has_tenants) cells.emplace_back(lease::tenant_of(row));
        table.add_row(cells);
    }
    return text + table.text();
}

Result<void> print_status(const QuestionFlags& flags) {
    HANARE_TRY_ASSIGN(const Server server, connect(flags));
    HANARE_TRY_ASSIGN(const Told told, ask_for_status(server));
    std::fputs(
        (flags.as_json ? json_text(server_json(told.answer, told.rows), 1) : text_of(server, told))
            .c_str(),
        stdout);
    return {};
}

Result<void> drain(const QuestionFlags& flags) {
    HANARE_TRY_ASSIGN(const Server server, connect(flags));
    lease::Reply reply;
    const hanare_status status =
        lease::ask(*server.link, {.what = Ask::kDrain},
                   sys::now_ns() + uint64_t{kPatience_ms} * kNsPerMs, reply);
    if (status != HANARE_STATUS_OK) return server.failed(status);
    HANARE_TRY_ASSIGN(const Told told, ask_for_status(server));
    std::printf("%s lends nothing more; %s in %zu lease%s %s still there\n", server.url.c_str(),
                format_size(told.answer.leased_bytes).c_str(), told.rows.size(),
                told.rows.size() == 1 ? "" : "s", told.rows.size() == 1 ? "is" : "are");
    return {};
}

void add(CLI::App& app, const char* name, const char* help, bool has_json,
         Result<void> (*run)(const QuestionFlags&)) {
    CLI::App* const question = app.add_subcommand(name, help);
    auto flags = std::make_shared<QuestionFlags>();
    question->add_option("server", flags->address, "tcp://HOST[:PORT], port 7077 if there is none");
    question
        ->add_option("--secret-file", flags->secret_file,
                     "file with the server's secret, - for standard input")
        ->envname("HANARE_SECRET_FILE");
    if (has_json) question->add_flag("--json", flags->as_json, "print JSON");
    set_run(*question, [flags, run, name] {
        if (!flags->address) {
            return report(fail(HANARE_STATUS_INVALID_ARGUMENT,
                               "hanare %s needs a server, tcp://HOST[:PORT]", name)
                              .error());
        }
        const auto done = run(*flags);
        return done ? kExitSuccess : report(done.error());
    });
}

}  // namespace

Result<nlohmann::ordered_json> ask_server(const std::string& address,
                                          const std::optional<std::string>& secret_file) {
    HANARE_TRY_ASSIGN(const Server server,
                      connect({.address = address, .secret_file = secret_file}));
    HANARE_TRY_ASSIGN(const Told told, ask_for_status(server));
    return server_json(told.answer, told.rows);
}

Result<void> check_not_silent(const config::ServerAddress& address,
                              const std::optional<std::string>& secret_file) {
    HANARE_TRY_ASSIGN(auto host, sys::look_up_host(address.host));
    const auto secret = read_secret(secret_file).value_or(std::nullopt);
    Server server{
        .url = config::server_url(address), .knows_secret = secret.has_value(), .link = nullptr};
    auto link = link_to(std::move(host), address.port, secret);
    hanare_status status = link ? HANARE_STATUS_OK : link.error().status;
    if (link) {
        const uint64_t deadline_ns = sys::now_ns() + uint64_t{kPatience_ms} * kNsPerMs;
        const lease::Question question = {.what = Ask::kStatus, .first = UINT32_MAX};
        lease::Reply reply;
        status = lease::ask(**link, question, deadline_ns, reply);
    }
    if (status == HANARE_STATUS_TIMEOUT) return server.failed(status);
    return {};
}

void add_status(CLI::App& app) {
    add(app, "status", "what a memory server is doing", true, print_status);
}

void add_drain(CLI::App& app) {
    add(app, "drain", "has a memory server lend nothing more", false, drain);
}

}  // namespace hanare::cli
