// SPDX-License-Identifier: Apache-2.0
//
// `hanare server`: lends this machine's memory until a signal ends it.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/http_pages.hpp"
#include "cli/server_json.hpp"
#include "cli/server_secret.hpp"
#include "cli/server_tenants.hpp"
#include "config/rules.hpp"
#include "config/server_address.hpp"
#include "lease/messages.hpp"
#include "server/memory_server.hpp"
#include "server/metrics_text.hpp"
#include "sys/event.hpp"
#include "sys/host_address.hpp"
#include "sys/interrupt.hpp"
#include "sys/memory_limits.hpp"
#include "sys/pipe.hpp"
#include "sys/service_manager.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::cli {
namespace {

using config::ServerAddress;
using server::MemoryServer;

constexpr int kSecret_ms = 60'000;

struct ServerFlags {
    std::optional<std::string> memory;
    std::optional<std::string> listen;
    std::optional<std::string> secret_file;
    std::optional<std::string> quota;
    std::vector<std::string> tenants;
    std::optional<std::string> metrics;
    bool wants_huge_pages = false;
    bool is_authenticated_only = false;
    bool is_attached = false;
};

struct ServerPlan {
    MemoryServer::Settings settings;
    std::optional<ServerAddress> metrics;
};

// Where to listen, as numbers.
Result<ServerAddress> listen_address(const char* flag, const std::string& text) {
    HANARE_TRY_ASSIGN(ServerAddress address, config::parse_listen_address(flag, text));
    auto numeric = sys::look_up_host(address.host);
    if (!numeric) return fail(numeric.error().status, "%s: %.230s", flag, numeric.error().text);
    address.host = std::move(*numeric);
    return address;
}

Result<uint64_t> memory_size(const std::optional<std::string>& text) {
    if (!text) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "hanare server needs --memory SIZE, what it lends; see hanare server --help");
    }
    HANARE_TRY_ASSIGN(const uint64_t bytes, parse_lent_size("--memory", *text));
    const auto limit = sys::effective_memory_limit();
    if (!limit || bytes <= limit->bytes) return bytes;
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "--memory: %s is more than there is here: %s (%.120s)", format_size(bytes).c_str(),
                format_size(limit->bytes).c_str(), limit->origin.c_str());
}

Result<std::optional<fabric::Secret>> secret_of(const ServerFlags& flags) {
    if (!flags.is_attached) return read_secret(flags.secret_file);
    if (flags.secret_file) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--attached and --secret-file exclude each other: the secret comes by standard "
                    "input");
    }
    auto secret = read_secret_line(kSecret_ms);
    if (secret) return std::move(*secret);
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--attached: standard input: %.200s",
                secret.error().text);
}

Result<ServerPlan> plan_of(const ServerFlags& flags) {
    ServerPlan plan;
    MemoryServer::Settings& settings = plan.settings;
    HANARE_TRY_ASSIGN(ServerAddress address,
                      listen_address("--listen", flags.listen.value_or("127.0.0.1:7077")));
    const bool has_secret = flags.secret_file || flags.is_attached;
    if (!has_secret && !sys::is_loopback(address.host)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--listen: at %.100s others than this machine may come, which needs a secret; "
                    "--secret-file FILE names it",
                    address.host.c_str());
    }
    settings.host = std::move(address.host);
    settings.port = address.port;
    HANARE_TRY_ASSIGN(settings.memory_bytes, memory_size(flags.memory));
    if (flags.quota) {
        HANARE_TRY_ASSIGN(settings.quota_bytes, parse_lent_size("--quota", *flags.quota));
    }
    if (flags.metrics) {
        HANARE_TRY_ASSIGN(plan.metrics, listen_address("--metrics", *flags.metrics));
    }
    settings.wants_huge_pages = flags.wants_huge_pages;
    if (flags.is_authenticated_only) {
        if (!has_secret) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "--auth-only needs --secret-file");
        }
        settings.protection = fabric::Protection::kAuthenticated;
    }
    HANARE_TRY_ASSIGN(settings.secret, secret_of(flags));
    HANARE_TRY_ASSIGN(settings.tenants, read_tenants(flags.tenants, settings.secret));
    return plan;
}

// Whatever prevents the server from starting, such as a port that is in use, is for the user to
// mend.
int cannot_start(const char* flag, const Error& error) {
    std::fprintf(stderr, "hanare: error: %s: %s\n", flag, error.text);
    return kExitBadUsage;
}

Result<std::unique_ptr<HttpPages>> serve_pages(const ServerAddress& address,
                                               const MemoryServer& server) {
    return HttpPages::serve(
        address.host, address.port,
        {{"/metrics",
          {.type = "text/plain; version=0.0.4; charset=utf-8",
           .text = [&server] { return server::metrics_text(server.status()); }}},
         {"/status", {.type = "application/json", .text = [&server] {
                          using nlohmann::ordered_json;
                          return server_json(server.status())
                                     .dump(1, ' ', false, ordered_json::error_handler_t::replace) +
                                 "\n";
                      }}}});
}

// A service manager that cannot be told is no reason to end.
void tell(const std::string& assignments) {
    if (const auto told = sys::tell_service_manager(assignments); !told) {
        std::fprintf(stderr, "hanare server: %s\n", told.error().text);
    }
}

// False where nobody can read it; standard output then shows that it has failed.
bool say_where(const MemoryServer& server, const ServerPlan& plan, const HttpPages* pages) {
    const std::string offer = config::server_url({plan.settings.host, server.port()}) + " offers " +
                              format_size(server.status().total_bytes);
    std::printf("hanare server: %s\n", offer.c_str());
    if (pages != nullptr) {
        std::printf("hanare server: http://%s/metrics\n",
                    config::host_and_port({plan.metrics->host, pages->port()}).c_str());
    }
    if (std::fflush(stdout) != 0) return false;
    tell("READY=1\nSTATUS=" + offer);
    return true;
}

void say_what_was_cut_off(const server::LeaseTable::Status& status) {
    if (status.leases.empty()) {
        std::fputs("hanare server: ended; no lease was cut off\n", stderr);
        return;
    }
    const bool is_one = status.leases.size() == 1;
    std::fprintf(stderr, "hanare server: ended; %zu lease%s of %s %s cut off\n",
                 status.leases.size(), is_one ? "" : "s", format_size(status.leased_bytes).c_str(),
                 is_one ? "was" : "were");
}

// Until a signal asks for the end, or who is attached has gone: true.
bool stay(const sys::Interrupt& interrupt, bool is_attached) {
    const int watched = is_attached ? STDIN_FILENO : -1;
    while (!sys::Interrupt::requested()) {
        if (!sys::wait_until_readable(interrupt.fd(), watched, -1).second) continue;
        // What comes behind the secret means nothing.
        std::byte ignored[1];
        if (!sys::read_exactly(watched, ignored, 0)) return true;
    }
    return false;
}

int run_server(const ServerFlags& flags) {
    const auto plan = plan_of(flags);
    if (!plan) return report(plan.error());
    const sys::Interrupt interrupt;
    const auto server = MemoryServer::open(plan->settings);
    if (!server) return cannot_start("--listen", server.error());
    std::unique_ptr<HttpPages> pages;
    if (plan->metrics) {
        auto served = serve_pages(*plan->metrics, **server);
        if (!served) return cannot_start("--metrics", served.error());
        pages = std::move(*served);
    }
    if (const auto started = (*server)->start(); !started) return report(started.error());
    if (!say_where(**server, *plan, pages.get())) return kExitInternalFailure;
    const bool is_left = stay(interrupt, flags.is_attached);
    tell("STOPPING=1");
    pages.reset();
    const server::LeaseTable::Status last = (*server)->status();
    (*server)->stop();
    if (!is_left) say_what_was_cut_off(last);
    return kExitSuccess;
}

}  // namespace

void add_server(CLI::App& app) {
    CLI::App* const server =
        app.add_subcommand("server", "lends this machine's memory to programs on others");
    auto flags = std::make_shared<ServerFlags>();
    server->add_option("--memory", flags->memory, "how much, such as 512M or 8G (required)");
    server->add_option("--listen", flags->listen,
                       "ADDR:PORT, where clients come (default 127.0.0.1:7077; port 0: one that "
                       "is free)");
    server->add_option("--secret-file", flags->secret_file,
                       "file with the secret that clients have to know, - for standard input; "
                       "off this machine there has to be one");
    server->add_option("--quota", flags->quota, "what one client may have (default all)");
    server
        ->add_option("--tenant", flags->tenants,
                     "NAME:SIZE:FILE, somebody with a secret of his own, in FILE, and what all "
                     "his clients may have together; as often as there are such")
        ->allow_extra_args(false);
    server->add_flag("--huge-pages", flags->wants_huge_pages,
                     "memory in huge pages, where the kernel gives them");
    server->add_option(
        "--metrics", flags->metrics,
        "ADDR:PORT, where GET /metrics (Prometheus) and /status (JSON) are answered");
    server->add_flag("--auth-only", flags->is_authenticated_only,
                     "also accept clients that do not want what goes over the network sealed");
    server->add_flag("--attached", flags->is_attached,
                     "the secret is the first line of standard input, and the server ends when "
                     "that does: how hanare run -f starts it");
    server->footer(
        "Prints a line once it can be used, and serves until SIGINT or SIGTERM; what clients have\n"
        "in it is gone then. `hanare drain` before that lends nothing more.\n"
        "A secret: (umask 077; head -c 32 /dev/urandom >FILE).\n"
        "Exit status: 0; 2 when it cannot start; 70 for a failure of Hanare.");
    set_run(*server, [flags] { return run_server(*flags); });
}

}  // namespace hanare::cli
