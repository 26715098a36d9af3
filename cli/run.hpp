// SPDX-License-Identifier: Apache-2.0
//
// `hanare run`: an unmodified program with its memory in a pool.  What happens, in order:
// front.cpp, or run_subcommand.cpp, parts the command line, run.cpp checks all that can be wrong,
// run_program.cpp finds the program and looks at it, run_environment.cpp says how the library gets
// into it, run_session.cpp starts it and stays with it, run_watch.cpp keeps account, run_report.cpp
// tells.  Where the store has memory servers, `hanare` becomes hanare-tools after the first checks,
// which has what connects to them (server_broker.cpp).
// Single-threaded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/options.hpp"

namespace hanare::cli {

// What main() knows and the program is to have.
struct RunArguments {
    std::vector<std::string> program;       // its name and arguments
    bool ignores_file_size_signal = false;  // SIGXFSZ, before we ignored it
};

struct RunFlags {
    std::optional<std::string> stats;
    bool progress = false;
    bool verbose = false;
    bool quiet = false;
};

// Between options and the program, where that is needed.
inline constexpr std::string_view kRunArgumentsEnd = "--";

// What lives as long as the program does, such as memory servers of its own.
class RunCompanion {
public:
    virtual ~RunCompanion() = default;
    // Whether begin() will say what the store is.
    virtual bool has_store() const = 0;
    // Whatever can be wrong with it, before anything is started.
    virtual Result<void> check() = 0;
    // The program begins next; what is set here is for it.
    virtual Result<void> begin(config::Options& options) = 0;
    // The program has ended.
    virtual void end() noexcept = 0;
};

// What makes connections to memory servers for the program (cli/server_broker.cpp).
class RunBroker {
public:
    virtual ~RunBroker() = default;
    // For the program's environment.
    virtual std::string place() const = 0;
    // By a thread of its own, once the program has been forked.
    virtual Result<void> start() = 0;
};
// Fails where a server is not as it should be.
using OpenRunBroker =
    std::function<Result<std::unique_ptr<RunBroker>>(const config::Options& options)>;

// Returns, with an exit status, only when the program never began.  `open_broker` is called where
// the store is a memory server, or has some.
int run_program(const RunFlags& flags, const config::Overrides& overrides,
                const RunArguments& arguments, const OpenRunBroker& open_broker,
                RunCompanion* companion = nullptr);

}  // namespace hanare::cli
