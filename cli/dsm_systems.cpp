// SPDX-License-Identifier: Apache-2.0
#include "cli/dsm_systems.hpp"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "bench/table.hpp"
#include "cli/fabric_network.hpp"
#include "sys/file.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr const char* kPvmRoot = "/usr/lib/pvm3";
constexpr std::chrono::milliseconds kPvmStart{5000};
constexpr std::chrono::milliseconds kPvmTick{20};

// Which MPI a program was built with shows in the library that it names.
bool is_for_mpich(const fs::path& program) {
    std::ifstream file(program, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.find("libmpich.so") != text.npos;
}

// Without a network all processes are here.
Words mpi_launcher(const fs::path& program, bool is_tcp, const DsmNetwork* network) {
    if (is_for_mpich(program)) return {"mpiexec.mpich"};
    Words words = {"mpirun.openmpi", "--oversubscribe"};
    const auto set = [&](const char* name, const std::string& value) {
        words.insert(words.end(), {"--mca", name, value});
    };
    if (network == nullptr) {
        set("plm", "isolated");
    } else {
        set("plm_rsh_agent", network->remote_shell());
        set("oob_tcp_if_include", kVethNetwork);
        // Each of the two machines would give its first processor, which is the same.
        words.insert(words.end(), {"--hostfile", network->mpi_hosts(), "--bind-to", "none"});
    }
    set("pml", "ob1");
    set("btl", is_tcp ? "tcp,self" : "vader,self");
    if (is_tcp) set("btl_tcp_if_include", network == nullptr ? "lo" : kVethNetwork);
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
    return words;
}

Words pvm_environment(const std::string& place) {
    return {"PVM_ROOT=" + std::string(kPvmRoot), "PVM_ARCH=LINUX64", "PVM_TMP=" + place,
            "PVM_ALLOW_ROOT=1"};
}

}  // namespace

Result<DsmSystems> DsmSystems::make(fs::path folder, unsigned processes, bool is_veth,
                                    const sys::Interrupt& interrupt) {
    std::error_code error;
    HANARE_TRY_ASSIGN(auto place, sys::TemporaryFolder::make(
                                      fs::temp_directory_path(error).string(), "hanare-bench-dsm"));
    DsmSystems systems(std::move(folder), processes, std::move(place));
    if (is_veth) {
        HANARE_TRY_ASSIGN(systems.network_,
                          DsmNetwork::make(systems.directory(), processes, interrupt));
    }
    return systems;
}

fs::path DsmSystems::path_of(const bench::DsmSystem& system,
                             const bench::DsmProgram& program) const {
    return folder_ / (program.program + "-" + system.form);
}

std::string DsmSystems::obstacle(const bench::DsmSystem& system, const bench::DsmProgram& program) {
    const std::string form = system.form;
    const fs::path path = path_of(system, program);
    if (access(path.c_str(), X_OK) != 0) {
        const char* const package = form == "mpi" ? "libopenmpi-dev" : "pvm-dev";
        if (form == "seq" || form == "tmk") return path.filename().string() + " was not built";
        return bench::format("%s was not built; install %s and build Hanare again",
                             path.filename().c_str(), package);
    }
    if (form == "mpi") {
        if (network_ && is_for_mpich(path)) return "over veth with Open MPI only";
        const Words launcher = launcher_of(system, path);
        if (!sys::find_program(launcher[0])) return launcher[0] + " is not there";
    }
    if (form == "pvm" && network_) return "not over veth";
    if (form == "pvm" && !has_tried_pvm_) pvm_obstacle_ = start_pvm();
    return form == "pvm" ? pvm_obstacle_ : "";
}

// The daemon, which starts the tasks; it is there when its socket's file is.
std::string DsmSystems::start_pvm() {
    has_tried_pvm_ = true;
    const auto daemon = sys::find_program("pvmd");
    if (!daemon) return "pvmd is not there; install pvm";
    sys::FileDescriptor nothing;
    if (sys::open_unnamed(place_.path(), nothing) != 0) return "no file can be made for PVM";
    sys::MeasuredProgram::Launch launch;
    launch.path = *daemon;
    launch.arguments = {"pvmd", "-n127.0.0.1"};
    launch.environment = pvm_environment(place_.path());
    launch.input = nothing.number();
    launch.output = nothing.number();
    auto started = sys::MeasuredProgram::start(launch);
    if (!started) return started.error().text;
    pvm_.emplace(std::move(*started));
    const fs::path socket = fs::path(place_.path()) / ("pvmd." + std::to_string(getuid()));
    for (auto waited = kPvmTick; waited < kPvmStart; waited += kPvmTick) {
        if (fs::exists(socket)) return "";
        std::this_thread::sleep_for(kPvmTick);
    }
    pvm_.reset();
    return "PVM's daemon does not get ready";
}

Words DsmSystems::launcher_of(const bench::DsmSystem& system, const fs::path& program) const {
    const bool is_tcp = *system.medium == 't';
    const DsmNetwork* const network = is_tcp && network_ ? &*network_ : nullptr;
    Words words;
    if (system.form == std::string("mpi")) {
        words = mpi_launcher(program, is_tcp, network);
    } else {
        words = {"hanare", "launch"};
        if (network != nullptr) {
            words.insert(words.end(), {"--hosts", network->hosts(), "--ssh",
                                       network->remote_shell(), "--listen", kVethSourceHost});
        }
    }
    words.insert(words.end(), {"-n", std::to_string(processes_)});
    return words;
}

sys::MeasuredProgram::Launch DsmSystems::launch(const bench::DsmSystem& system,
                                                const bench::DsmProgram& program,
                                                bool is_quick) const {
    const fs::path path = path_of(system, program);
    const std::string form = system.form;
    const bool is_tcp = *system.medium == 't';
    sys::MeasuredProgram::Launch launch;
    Words words;
    if (form == "tmk") {
        words = launcher_of(system, path);
        words.emplace_back("--");
        launch.path = "/proc/self/exe";
        launch.environment = {is_tcp ? "HANARE_DSM_SHARED=off" : "HANARE_DSM_SHARED=on"};
    } else if (form == "mpi") {
        words = launcher_of(system, path);
        launch.path = sys::find_program(words[0]).value_or(words[0]);
        // Of MPICH alone.
        if (is_tcp && is_for_mpich(path)) launch.environment = {"UCX_TLS=tcp,self"};
    } else {
        launch.path = path.string();
        if (form == "pvm") launch.environment = pvm_environment(place_.path());
    }
    words.push_back(path.string());
    const Words& arguments = is_quick ? program.quick : program.arguments;
    words.insert(words.end(), arguments.begin(), arguments.end());
    if (form == "pvm") words.insert(words.end(), {"--", "-n", std::to_string(processes_)});
    launch.arguments = std::move(words);
    return launch;
}

}  // namespace hanare::cli
