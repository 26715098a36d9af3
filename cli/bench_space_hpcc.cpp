// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_space_hpcc.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

// What the HPC Challenge reads (hpccinf.txt): line by line what is to be solved and how, one of
// each.
constexpr const char* kInput =
    "HPL\nas a task and as a process\nHPL.out\n8 device out\n1 problem\n1500 N\n1 block size\n"
    "80 NB\n0 row-major\n1 grid\n1 P\n2 Q\n16.0 threshold\n1\n2 PFACT\n1\n4 NBMIN\n1\n2 NDIV\n"
    "1\n1 RFACT\n1\n1 BCAST\n1\n1 DEPTH\n2 SWAP\n64 swapping threshold\n0 L1\n0 U\n"
    "1 equilibration\n8 alignment\n##### separator\n0 more sizes for PTRANS\n1200\n"
    "0 more block sizes for PTRANS\n40\n";

}  // namespace

Result<std::optional<sys::TemporaryFolder>> make_hpcc_folder() {
    if (!sys::find_program("hpcc")) {
        std::fprintf(stderr, "hanare: hpcc is not there; install hpcc to have it measured\n");
        return std::nullopt;
    }
    std::error_code error;
    const fs::path above = fs::temp_directory_path(error);
    HANARE_TRY_ASSIGN(auto folder, sys::TemporaryFolder::make(above.string(), "hanare-hpcc"));
    const fs::path path = folder.path();
    std::ofstream input(path / "hpccinf.txt");
    if (!(input << kInput).flush()) {
        return fail(HANARE_STATUS_SYSTEM, "%.150s: cannot write there", path.c_str());
    }
    fs::create_symlink("/proc/self/fd/1", path / "hpccoutf.txt", error);
    if (error) return fail_errno(HANARE_STATUS_SYSTEM, error.value(), "%.150s", path.c_str());
    return std::optional<sys::TemporaryFolder>(std::move(folder));
}

std::string hpcc_case(const sys::TemporaryFolder& folder) { return "hpcc@" + folder.path(); }

std::optional<std::pair<std::string, double>> hpcc_time(const std::string& line) {
    for (const auto& [key, name] :
         {std::pair("HPL_time=", "hpcc-hpl"), std::pair("PTRANS_time=", "hpcc-ptrans"),
          std::pair("MPIRandomAccess_time=", "hpcc-randomaccess")}) {
        const std::string_view begin = key;
        if (!line.starts_with(begin)) continue;
        return std::pair(std::string(name), std::strtod(line.c_str() + begin.size(), nullptr));
    }
    return std::nullopt;
}

}  // namespace hanare::cli
