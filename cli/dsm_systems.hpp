// SPDX-License-Identifier: Apache-2.0
//
// The systems of `hanare bench dsm`: whether each can run a program here, and what is started for
// it.  PVM gets a daemon of its own, in a folder of its own, which goes with the object.  Used by
// the main thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/dsm_sweep.hpp"
#include "cli/dsm_network.hpp"
#include "sys/interrupt.hpp"
#include "sys/measured_program.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {

class DsmSystems {
public:
    // `folder` has the programs.  With `is_veth` this process enters a network of its own, half of
    // the processes of what goes over TCP are in another one, and PVM is left out; for a process
    // without other threads.
    static Result<DsmSystems> make(std::filesystem::path folder, unsigned processes, bool is_veth,
                                   const sys::Interrupt& interrupt);

    const std::string& directory() const { return place_.path(); }
    // What keeps the system from running the program; empty: nothing.
    std::string obstacle(const bench::DsmSystem& system, const bench::DsmProgram& program);
    sys::MeasuredProgram::Launch launch(const bench::DsmSystem& system,
                                        const bench::DsmProgram& program, bool is_quick) const;

private:
    DsmSystems(std::filesystem::path folder, unsigned processes, sys::TemporaryFolder place)
        : folder_(std::move(folder)), processes_(processes), place_(std::move(place)) {}

    std::filesystem::path path_of(const bench::DsmSystem& system,
                                  const bench::DsmProgram& program) const;
    std::string start_pvm();
    std::vector<std::string> launcher_of(const bench::DsmSystem& system,
                                         const std::filesystem::path& program) const;

    std::filesystem::path folder_;
    unsigned processes_;
    sys::TemporaryFolder place_;
    std::optional<DsmNetwork> network_;
    bool has_tried_pvm_ = false;
    std::string pvm_obstacle_;
    std::optional<sys::MeasuredProgram> pvm_;
};

}  // namespace hanare::cli
