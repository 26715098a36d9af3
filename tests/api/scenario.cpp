// SPDX-License-Identifier: Apache-2.0
#include "api/scenario.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <map>
#include <sstream>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hanare::api_test {

namespace {

constexpr unsigned kScenarioLimit_s = 120;

std::map<std::string, ScenarioBody>& scenarios() {
    static std::map<std::string, ScenarioBody> known;
    return known;
}

std::string read_all(int descriptor) {
    std::string text;
    char part[1024];
    for (ssize_t got = 0; (got = read(descriptor, part, sizeof part)) != 0;) {
        if (got > 0) text.append(part, static_cast<size_t>(got));
        if (got < 0 && errno != EINTR) break;
    }
    return text;
}

}  // namespace

bool register_scenario(const char* name, ScenarioBody body) {
    return scenarios().emplace(name, body).second;
}

int run_registered_scenario(const std::string& name, const Arguments& arguments) {
    const auto found = scenarios().find(name);
    if (found == scenarios().end()) {
        std::fprintf(stderr, "no scenario %s\n", name.c_str());
        return 2;
    }
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(kScenarioLimit_s);  // a scenario that hangs dies of SIGALRM
    try {
        return found->second(arguments);
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "%s\n", exception.what());
        return 1;
    }
}

Outcome run_scenario(const std::string& name, const Arguments& arguments) {
    std::vector<std::string> texts = {"api_test", "--scenario", name};
    texts.insert(texts.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    int ends[2];
    Outcome outcome;
    if (pipe2(ends, O_CLOEXEC) != 0) return outcome;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDERR_FILENO);
        execv("/proc/self/exe", argv.data());
        _exit(127);
    }
    close(ends[1]);
    outcome.errors = read_all(ends[0]);
    close(ends[0]);
    while (waitpid(child, &outcome.wait_status, 0) < 0 && errno == EINTR) {
    }
    return outcome;
}

bool Outcome::exited_with(int code) const {
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == code;
}

bool Outcome::died_of(int signal_number) const {
    return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == signal_number;
}

std::vector<std::string> Outcome::lines() const {
    std::vector<std::string> result;
    std::istringstream stream(errors);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
}

std::string Outcome::describe() const {
    std::string text = WIFSIGNALED(wait_status)
                           ? "died of signal " + std::to_string(WTERMSIG(wait_status))
                           : "exit status " + std::to_string(WEXITSTATUS(wait_status));
    return text + ", standard error: \"" + errors + "\"";
}

}  // namespace hanare::api_test
