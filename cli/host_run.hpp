// SPDX-License-Identifier: Apache-2.0
//
// `hanare run -f HOSTS -n N`: the program's memory servers are those of a host file, and live as
// long as it does.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/host_servers.hpp"
#include "cli/run.hpp"

namespace hanare::cli {

struct HostFlags {
    std::optional<std::string> file;
    std::optional<std::string> count;
    std::optional<std::string> rsh;
    std::optional<std::string> remote;
};

class HostRun : public RunCompanion {
public:
    // Null without a host file.  Reads it, and adds to `overrides` what its first line says.
    static Result<std::unique_ptr<HostRun>> prepare(const HostFlags& flags,
                                                    const RunArguments& arguments,
                                                    config::Overrides& overrides);

    bool has_store() const override { return !plan_.hosts.empty(); }
    Result<void> check() override;
    Result<void> begin(config::Options& options) override;
    void end() noexcept override;

private:
    HostRun(HostServersPlan plan, std::string file)
        : plan_(std::move(plan)), file_(std::move(file)) {}

    const HostServersPlan plan_;
    const std::string file_;
    std::optional<HostServers> servers_;
};

}  // namespace hanare::cli
