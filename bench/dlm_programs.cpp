// SPDX-License-Identifier: Apache-2.0
//
// The sizes of bench/dlm that `hanare bench dlm` knows; the paper's are among them.
#include <algorithm>
#include <sstream>

#include "bench/dlm_sweep.hpp"

namespace hanare::bench {
namespace {

using Programs = std::vector<DlmProgram>;

DlmProgram npb(const char* name, const char* size, std::vector<std::string> sources) {
    sources.emplace_back("npb/npb_random.c");
    return {name, size, std::move(sources), {std::string("NPB_CLASS=") + size}, {}};
}

DlmProgram himeno(const char* size, std::vector<std::string> defines, const char* iterations) {
    return {"himeno", size, {"himeno.c"}, std::move(defines), {"--iterations", iterations}};
}

Programs make_programs() {
    Programs all = {
        {"matv", "8192", {"matv.c"}, {"N=8192"}, {}},
        {"matv", "16384", {"matv.c"}, {"N=16384"}, {}},  // the paper's Fig. 3
        {"stream", "16M", {"stream.c"}, {"N=16000000"}, {"--repeat", "3"}},
        {"stream", "100M", {"stream.c"}, {"N=100000000"}, {"--repeat", "3"}},  // the paper's
        {"stream2", "16M", {"stream2.c"}, {"N=16000000"}, {"--repeat", "3"}},
        {"stream2", "100M", {"stream2.c"}, {"N=100000000"}, {"--repeat", "3"}},
        himeno("S", {"SMALL"}, "10"),
        himeno("M", {}, "10"),
        himeno("L", {"LARGE"}, "5"),  // the paper's
    };
    for (const char* size : {"W", "A", "B"}) {  // the paper's are B
        all.push_back(npb("ft", size, {"npb/ft.c", "npb/ft_lines.c"}));
        all.push_back(npb("is", size, {"npb/is.c"}));
        all.push_back(npb("cg", size, {"npb/cg.c", "npb/cg_matrix.c"}));
    }
    return all;
}

Programs::const_iterator find(const std::string& name, const std::string& size) {
    return std::ranges::find_if(dlm_programs(), [&](const DlmProgram& program) {
        return program.name == name && program.size == size;
    });
}

}  // namespace

const Programs& dlm_programs() {
    static const Programs all = make_programs();
    return all;
}

const char* default_dlm_programs(bool is_quick) {
    return is_quick ? "matv:8192,stream:16M,himeno:M,is:A,cg:A"
                    : "matv:16384,stream:100M,stream2:100M,himeno:M,ft:A,is:A,cg:A";
}

std::string dlm_program_names() {
    std::string names;
    for (const DlmProgram& program : dlm_programs()) {
        names += (names.empty() ? "" : ", ") + program.name + ":" + program.size;
    }
    return names;
}

Result<Programs> find_dlm_programs(const std::string& list) {
    Programs found;
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t colon = std::min(part.find(':'), part.size());
        const std::string size = colon < part.size() ? part.substr(colon + 1) : "";
        const auto program = find(part.substr(0, colon), size);
        if (program == dlm_programs().end()) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "--programs: \"%.50s\" is unknown; there are %s", part.c_str(),
                        dlm_program_names().c_str());
        }
        found.push_back(*program);
    }
    if (!found.empty()) return found;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--programs: none is named; there are %s",
                dlm_program_names().c_str());
}

}  // namespace hanare::bench
