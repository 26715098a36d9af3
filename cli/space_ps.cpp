// SPDX-License-Identifier: Apache-2.0
//
// `hanare space ps`: this user's spaces and their tasks, from what the kernel says of their roots.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/processes.hpp"
#include "cli/space_ps.hpp"
#include "cli/table.hpp"
#include "sys/text_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kRootProgram = "hanare-space-root";

struct Space {
    int root = 0;
    uint64_t resident_bytes = 0;
    uint64_t page_table_bytes = 0;
    std::vector<std::pair<int, std::string>> tasks;  // process and program
};

std::string place(int process, const char* file) {
    return "/proc/" + std::to_string(process) + "/" + file;
}

// Of the kernel's "NAME: N kB"; 0 where there is none.
uint64_t figure(const std::string& status, const std::string& name) {
    const size_t at = status.find("\n" + name + ":");
    if (at == status.npos) return 0;
    return std::strtoull(status.c_str() + at + name.size() + 2, nullptr, 10) * kKiB;
}

std::string program_of(int process) {
    auto name = sys::read_text_file(place(process, "comm"));
    if (!name) return "?";
    return printable(name->substr(0, name->find('\n')));
}

// The root of a space, but no proxy.
bool is_root(int process) {
    std::error_code error;
    const fs::path program = fs::read_symlink(place(process, "exe"), error);
    if (error || program.filename() != kRootProgram) return false;
    const auto words = sys::read_text_file(place(process, "cmdline"));
    if (!words) return false;
    const size_t first = words->find('\0');
    if (first == words->npos) return false;
    const std::string_view what(words->c_str() + first + 1);
    // Tasks have the words of their root.
    const auto status = sys::read_text_file(place(process, "status"));
    if (!status || (what != "run" && what != "serve")) return false;
    const size_t parent = status->find("\nPPid:");
    const int parent_id =
        parent == status->npos ? 0 : std::atoi(status->c_str() + parent + std::strlen("\nPPid:"));
    const fs::path above = fs::read_symlink(place(parent_id, "exe"), error);
    const auto mine = sys::read_text_file(place(process, "maps"));
    const auto theirs = sys::read_text_file(place(parent_id, "maps"));
    return error || above.filename() != kRootProgram || !mine || !theirs || *mine != *theirs;
}

std::optional<Space> space_of(int process) {
    if (!is_root(process)) return std::nullopt;
    const auto status = sys::read_text_file(place(process, "status"));
    const std::string number = std::to_string(process);
    const auto children =
        sys::read_text_file(place(process, ("task/" + number + "/children").c_str()));
    if (!status || !children) return std::nullopt;
    Space space = {process, figure(*status, "VmRSS"), figure(*status, "VmPTE"), {}};
    std::istringstream numbers(*children);
    for (int task = 0; numbers >> task;) space.tasks.emplace_back(task, program_of(task));
    return space;
}

std::vector<Space> find_spaces() {
    std::vector<Space> spaces;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename().string();
        int process = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
        if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
        if (auto space = space_of(process)) spaces.push_back(std::move(*space));
    }
    return spaces;
}

std::string text_of(const std::vector<Space>& spaces) {
    Table table({{"space", 8}, {"task", 8}, {"program", 16}, {"memory", 10}, {"page tables", 11}});
    for (const Space& space : spaces) {
        table.add_row({std::to_string(space.root), "",
                       std::to_string(space.tasks.size()) + " tasks",
                       format_size(space.resident_bytes), format_size(space.page_table_bytes)});
        for (const auto& [task, program] : space.tasks) {
            table.add_row({"", std::to_string(task), program, "", ""});
        }
    }
    return table.text();
}

ordered_json json_of(const std::vector<Space>& spaces) {
    ordered_json all = ordered_json::array();
    for (const Space& space : spaces) {
        ordered_json tasks = ordered_json::array();
        for (const auto& [task, program] : space.tasks) {
            tasks.push_back({{"process_id", task}, {"program", program}});
        }
        all.push_back({{"root", space.root},
                       {"resident_bytes", space.resident_bytes},
                       {"page_table_bytes", space.page_table_bytes},
                       {"tasks", std::move(tasks)}});
    }
    return {{"spaces", std::move(all)}};
}

}  // namespace

void print_spaces(bool as_json) {
    const std::vector<Space> spaces = find_spaces();
    std::fputs((as_json ? json_of(spaces).dump(1) + "\n" : text_of(spaces)).c_str(), stdout);
}

}  // namespace hanare::cli
