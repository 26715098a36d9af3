// SPDX-License-Identifier: Apache-2.0
#include "bench/dsm_sweep.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "bench/table.hpp"

namespace hanare::bench {
namespace {

using Words = std::vector<std::string>;

// What a run says, in the order of the tables.
struct Column {
    const char* title;
    const char* key;
    const char* unit;
};
constexpr Column kColumns[] = {
    {"messages", "messages", "1"},
    {"bytes", "bytes", "B"},
    {"barrier messages", "barrier_messages", "1"},
    {"barrier bytes", "barrier_bytes", "B"},
    {"faults", "faults", "1"},
    {"fetched", "fetched_blocks", "1"},
    {"twins", "twins", "1"},
    {"diffs", "diffs", "1"},
    {"diff bytes", "diff_bytes", "B"},
    {"locks", "locks", "1"},
    {"from others", "remote_locks", "1"},
};

const DsmSystem* system_of(const std::string& name) {
    const auto* const found = std::ranges::find_if(
        kDsmSystems, [&](const DsmSystem& system) { return name == system.name; });
    return found == std::end(kDsmSystems) ? nullptr : found;
}

std::vector<double> values_of(const std::vector<DsmRun>& runs, const std::string& program,
                              const std::string& system, const std::string& key) {
    std::vector<double> values;
    for (const DsmRun& run : runs) {
        if (run.program != program || run.system != system || !run.failure.empty()) continue;
        if (const auto said = run.said.find(key); said != run.said.end()) {
            values.push_back(said->second);
        }
    }
    return values;
}

const DsmRun* find(const std::vector<DsmRun>& runs, const std::string& program,
                   const std::string& system, int round) {
    const auto found = std::ranges::find_if(runs, [&](const DsmRun& run) {
        return run.program == program && run.system == system && run.round == round;
    });
    return found == runs.end() || !found->failure.empty() ? nullptr : &*found;
}

// Its times by those of the other one in the same round.
std::vector<double> ratios_of(const std::vector<DsmRun>& runs, const std::string& program,
                              const std::string& system, const std::string& other) {
    std::vector<double> ratios;
    for (const DsmRun& run : runs) {
        if (run.program != program || run.system != system || !run.failure.empty()) continue;
        const DsmRun* const base = find(runs, program, other, run.round);
        if (base == nullptr || base->said.at("seconds") <= 0) continue;
        ratios.push_back(run.said.at("seconds") / base->said.at("seconds"));
    }
    return ratios;
}

std::string mpi_beside(const std::string& system) {
    const DsmSystem* const known = system_of(system);
    if (known == nullptr || *known->medium == '\0' || std::string("mpi") == known->form) return "";
    return std::string("memory") == known->medium ? "mpi" : "mpi_tcp";
}

std::string ratio_text(const std::vector<double>& ratios) {
    return ratios.empty() ? "" : format("%.2f", summarize(ratios).median);
}

std::string failure_of(const std::vector<DsmRun>& runs, const std::string& program,
                       const std::string& system) {
    for (const DsmRun& run : runs) {
        if (run.program == program && run.system == system && !run.failure.empty()) {
            return run.failure;
        }
    }
    return "";
}

// Programs in the order in which they have run.
Words programs_of(const std::vector<DsmRun>& runs) {
    Words names;
    for (const DsmRun& run : runs) {
        if (std::ranges::count(names, run.program) == 0) names.push_back(run.program);
    }
    return names;
}

Words row_of(const std::vector<DsmRun>& runs, const std::string& program,
             const std::string& system) {
    const auto seconds = values_of(runs, program, system, "seconds");
    Words row = {system};
    if (seconds.empty()) {
        row.resize(4 + std::size(kColumns));
        row.push_back(failure_of(runs, program, system));
        return row;
    }
    row.push_back(format("%.4f", summarize(seconds).median));
    row.push_back(ratio_text(ratios_of(runs, program, system, "seq")));
    row.push_back(ratio_text(ratios_of(runs, program, system, mpi_beside(system))));
    for (const Column& column : kColumns) {
        const auto values = values_of(runs, program, system, column.key);
        row.push_back(
            values.empty() ? "" : format_count(static_cast<uint64_t>(summarize(values).median)));
    }
    row.push_back(failure_of(runs, program, system));
    return row;
}

}  // namespace

const std::vector<DsmProgram>& dsm_programs() {
    static const std::vector<DsmProgram> programs = {
        {"ep", "ep", {"--log2", "25"}, {"--log2", "18"}},
        {"is-medium", "is", {}, {"--keys-log2", "16", "--max-log2", "11"}, true},
        {"is-large", "is", {"--max-log2", "15"}, {"--keys-log2", "15", "--max-log2", "15"}, true},
        {"fft", "fft", {}, {}},
        {"water-288", "water", {}, {"--molecules", "61"}},
        {"water-1728", "water", {"--molecules", "1728"}, {"--molecules", "128"}},
        {"sor-z",
         "sor",
         {"--zero", "1"},
         {"--zero", "1", "--rows", "65", "--columns", "514"},
         true},
        {"sor-nz", "sor", {}, {"--rows", "65", "--columns", "514"}, true},
        {"tsp", "tsp", {}, {"--cities", "13"}},
        {"qsort-quick", "quicksort", {}, {"--keys", "30000", "--leaf", "500"}},
        {"qsort-bubble",
         "quicksort",
         {"--bubble", "1"},
         {"--keys", "10000", "--leaf", "200", "--bubble", "1"}},
        {"jacobi", "jacobi", {}, {"--size", "203"}, true},
        {"jacobi-2048",
         "jacobi",
         {"--size", "2048", "--iterations", "50"},
         {"--size", "300"},
         true},
    };
    return programs;
}

std::string dsm_program_names() {
    std::string names;
    for (const DsmProgram& program : dsm_programs()) {
        names += (names.empty() ? "" : ", ") + program.name;
    }
    return names;
}

Result<std::vector<DsmProgram>> find_dsm_programs(const std::string& list) {
    std::vector<DsmProgram> found;
    std::stringstream names(list);
    for (std::string name; std::getline(names, name, ',');) {
        const auto& all = dsm_programs();
        const auto program = std::ranges::find(all, name, &DsmProgram::name);
        const bool is_twice = std::ranges::count(found, name, &DsmProgram::name) > 0;
        if (program == all.end() || is_twice) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "--programs: \"%.50s\" is unknown or named twice; there are %s",
                        name.c_str(), dsm_program_names().c_str());
        }
        found.push_back(*program);
    }
    if (!found.empty()) return found;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--programs: none is named; there are %s",
                dsm_program_names().c_str());
}

DsmRun parse_dsm_run(const std::string& output, unsigned processes) {
    DsmRun run;
    const size_t begin = output.starts_with("name=") ? 0 : output.find("\nname=") + 1;
    if (begin == 0 && !output.starts_with("name=")) {
        run.failure = "no result";
        return run;
    }
    std::map<std::string, std::string> words;
    std::stringstream line(output.substr(begin, output.find('\n', begin) - begin));
    for (std::string word; line >> word;) {
        const size_t equals = word.find('=');
        if (equals != word.npos) words[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (words["processes"] != std::to_string(processes)) {
        run.failure = "processes=" + words["processes"] + ": started by another MPI?";
    } else if (words["verified"] != "yes") {
        run.failure = "WRONG";
    }
    run.said["seconds"] = std::strtod(words["seconds"].c_str(), nullptr);
    for (const Column& column : kColumns) {
        const auto word = words.find(column.key);
        if (word != words.end()) run.said[column.key] = std::strtod(word->second.c_str(), nullptr);
    }
    const std::string& digest = words["digest"];
    if (digest.find_first_not_of('0') != digest.npos) run.digest = digest;
    return run;
}

std::string dsm_tables(const std::vector<DsmRun>& runs) {
    std::string text;
    for (const std::string& program : programs_of(runs)) {
        Words header = {program, "seconds", "by seq", "by mpi"};
        for (const Column& column : kColumns) header.emplace_back(column.title);
        header.emplace_back("");
        Table table(std::move(header));
        for (const DsmSystem& system : kDsmSystems) {
            const bool has_run = std::ranges::any_of(runs, [&](const DsmRun& run) {
                return run.program == program && run.system == system.name;
            });
            if (has_run) table.add_row(row_of(runs, program, system.name));
        }
        text += (text.empty() ? "" : "\n") + table.text();
    }
    return text;
}

std::vector<Record> dsm_records(const std::vector<DsmRun>& runs,
                                const std::vector<DsmProgram>& programs, bool is_quick,
                                unsigned processes) {
    std::vector<Record> records;
    for (const DsmProgram& program : programs) {
        for (const DsmSystem& system : kDsmSystems) {
            const nlohmann::json params = {
                {"processes", *system.medium == '\0' ? 1 : processes},
                {"medium", system.medium},
                {"arguments", is_quick ? program.quick : program.arguments}};
            const auto add = [&](const char* metric, const char* unit, std::vector<double> values) {
                if (values.empty()) return;
                records.push_back({"dsm", program.name, system.name, metric, unit,
                                   summarize(std::move(values)), params});
            };
            add("time", "s", values_of(runs, program.name, system.name, "seconds"));
            add("time_by_mpi", "1",
                ratios_of(runs, program.name, system.name, mpi_beside(system.name)));
            for (const Column& column : kColumns) {
                add(column.key, column.unit,
                    values_of(runs, program.name, system.name, column.key));
            }
        }
    }
    return records;
}

std::vector<std::string> dsm_differences(const std::vector<DsmRun>& runs) {
    Words different;
    for (const DsmRun& run : runs) {
        const DsmRun* const base = find(runs, run.program, "seq", run.round);
        if (!run.failure.empty() || base == nullptr || base->digest == run.digest) continue;
        different.push_back(run.program + ", " + run.system + ": another result, " + run.digest +
                            ", than the sequential one's, " + base->digest);
    }
    return different;
}

}  // namespace hanare::bench
