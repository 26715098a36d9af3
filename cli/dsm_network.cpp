// SPDX-License-Identifier: Apache-2.0
#include "cli/dsm_network.hpp"

#include <fstream>
#include <iostream>

#include "bench/table.hpp"
#include "cli/fabric_network.hpp"
#include "cli/worker_lines.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

Result<std::string> make_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    if (file) return path;
    return fail(HANARE_STATUS_SYSTEM, "%.200s cannot be written", path.c_str());
}

}  // namespace

Result<DsmNetwork> DsmNetwork::make(const std::string& folder, unsigned processes,
                                    const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const std::string enter, sys::find_program("nsenter"));
    HANARE_TRY(enter_bench_network());
    HANARE_TRY_ASSIGN(sys::Child far_end, sys::Child::start({"hanare", "bench", "dsm", "--far"},
                                                            sys::Child::Input::kFromUs));
    WorkerLines said(far_end.output_fd(), interrupt.fd());
    HANARE_TRY(meet_target(far_end, said));
    HANARE_TRY(await_link(NetworkEnd::kSource));
    DsmNetwork network(std::move(far_end));
    HANARE_TRY_ASSIGN(
        const std::string script,
        make_file(folder + "/reach",
                  bench::format("host=$1; shift\n"
                                "[ \"$host\" = %s ] || exec sh -c \"$*\"\n"
                                "exec %s --net=/proc/%d/ns/net -- sh -c \"$*\"\n",
                                kVethTargetHost, enter.c_str(), network.far_end_.pid())));
    network.remote_shell_ = "/bin/sh " + script;
    const auto file_of_hosts = [&](const char* name, const char* slots) {
        const unsigned there = processes / 2;
        std::string text = bench::format("%s %s%u\n", kVethSourceHost, slots, processes - there);
        if (there > 0) text += bench::format("%s %s%u\n", kVethTargetHost, slots, there);
        return make_file(folder + name, text);
    };
    HANARE_TRY_ASSIGN(network.hosts_, file_of_hosts("/hosts", ""));
    HANARE_TRY_ASSIGN(network.mpi_hosts_, file_of_hosts("/mpi_hosts", "slots="));
    return network;
}

Result<void> DsmNetwork::be_far_end() {
    HANARE_TRY(meet_source());
    for (std::string line; std::getline(std::cin, line);) {
    }
    return {};
}

}  // namespace hanare::cli
