// SPDX-License-Identifier: Apache-2.0
//
// Compiles the programs of bench/dlm as they are wanted, plain and by hanare-cc, in a folder of its
// own, which goes with the object.  Used by the main thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bench/dlm_sweep.hpp"
#include "sys/temporary_folder.hpp"

namespace hanare::cli {

class DlmBuilds {
public:
    // NOT_FOUND where the sources or hanare-cc are not there.
    static Result<DlmBuilds> make(const std::string& directory, sys::Guardian* guardian);

    // Paths of the executables; the first call compiles.  The arrays of `mapped` are in an unnamed
    // file in the folder that the variable DLM_FOLDER names.
    Result<std::string> plain(const bench::DlmProgram& program, int interrupt_fd);
    Result<std::string> far(const bench::DlmProgram& program, int interrupt_fd);
    Result<std::string> mapped(const bench::DlmProgram& program, int interrupt_fd);

private:
    DlmBuilds(sys::TemporaryFolder folder, std::string sources, std::string driver)
        : folder_(std::move(folder)), sources_(std::move(sources)), driver_(std::move(driver)) {}
    enum class Kind { kPlain, kFar, kMapped };
    Result<std::string> build(const bench::DlmProgram& program, Kind kind, int interrupt_fd);

    sys::TemporaryFolder folder_;
    std::string sources_;
    std::string driver_;
};

}  // namespace hanare::cli
