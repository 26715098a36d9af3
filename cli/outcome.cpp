// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "sys/file.hpp"
#include "telemetry/log.hpp"

namespace hanare::cli {
namespace {

// Output that did not arrive is a failure, whatever the subcommand thinks.
int with_output_written(int status) {
    const bool failed = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed) return status;
    std::fprintf(stderr, "hanare: error: cannot write to standard output: %s\n",
                 std::strerror(errno));
    return kExitInternalFailure;
}

}  // namespace

Result<config::Options> load_and_apply(const config::Overrides& overrides) {
    HANARE_TRY_ASSIGN(config::Options options, config::load_options(overrides));
    telemetry::apply_log_options(options);
    // The library and what we start would warn of them again.
    for (const std::string& name : config::unknown_variables()) unsetenv(name.c_str());
    return options;
}

int report(const Error& error) {
    std::fprintf(stderr, "hanare: error: %s\n", error.text);
    switch (error.status) {
        case HANARE_STATUS_INVALID_ARGUMENT:
        case HANARE_STATUS_NOT_SUPPORTED:
        case HANARE_STATUS_NOT_FOUND:
        case HANARE_STATUS_STORE_UNAVAILABLE:
        case HANARE_STATUS_LIMIT: return kExitBadUsage;
        default: return kExitInternalFailure;
    }
}

int run_command(const std::function<int(bool ignores_file_size_signal)>& command) {
    // What is opened must not become a standard stream; nobody could be told of a failure.
    if (sys::open_missing_standard() != 0) return kExitInternalFailure;
    // A file beyond `ulimit -f` is then an error like others, here and in what we start.
    const bool ignores_file_size_signal = std::signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
    try {
        return with_output_written(command(ignores_file_size_signal));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hanare: error: internal failure: %s; please report it\n",
                     error.what());
    } catch (...) {
        std::fputs("hanare: error: internal failure of unknown kind; please report it\n", stderr);
    }
    return kExitInternalFailure;
}

}  // namespace hanare::cli
