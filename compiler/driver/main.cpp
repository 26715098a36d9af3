// SPDX-License-Identifier: Apache-2.0
//
// hanare-cc, hanare-c++, hanare-fortran, dlmc: a compiler that knows the word `dlm`; and `ld`,
// which that compiler runs as its linker.  Which of them, says the name it is called by.  No
// threads.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "arguments.hpp"
#include "child.hpp"
#include "compiler.hpp"
#include "linker.hpp"
#include "places.hpp"

namespace hanare::driver {
namespace {

constexpr const char* kHelp = R"(usage: %s [--dry-run] [--verbose] COMPILER-ARGUMENTS...

Compiles and links programs with arrays in far memory, as the compiler behind it would:

    dlm double a[N][N];           (in the source: the word before the declaration)
    %s -O2 prog.c -o prog
    HANARE_LOCAL=2G HANARE_STORE=file:/var/tmp ./prog

%s
  --dry-run      print the command, and run nothing
  --verbose      print the commands, and run them
  --help         this text; all other arguments are the compiler's

HANARE_CC, HANARE_CXX and HANARE_FC name the compilers (default: gcc, g++, gfortran).
Settings at run time: `hanare info`.
)";
constexpr const char* kFortranHelp = R"(
  --dlm NAME,... arrays in far memory: SAVE arrays, those of modules and of the main program, and
                 COMMON blocks, by name (default: all of 64 KiB and more)
  --dlm-list FILE
                 the same, in a file: names between blanks, '#' before a comment
)";

Language language_of(std::string_view name) {
    if (name.find("fortran") != std::string_view::npos) return Language::kFortran;
    return name.find("++") != std::string_view::npos ? Language::kCxx : Language::kC;
}

int help(Language language) {
    const char* const own = name().c_str();
    std::printf(kHelp, own, own, language == Language::kFortran ? kFortranHelp : "");
    return std::fflush(stdout) == 0 ? 0 : kFailed;
}

// What the linker's stand-in needs to know.
Words linker_options(const Compiler& compiler, const Arguments& arguments, Language language) {
    Words options = {kLinkerName + name(), kLinkerPath + linker_of(compiler, arguments)};
    if (arguments.verbose) options.push_back(kLinkerVerbose);
    if (language != Language::kFortran) return options;
    if (!arguments.dlm_names.has_value() && !arguments.dlm_list.has_value()) {
        options.push_back(kLinkerAll);
    }
    if (arguments.dlm_names.has_value()) options.push_back(kLinkerNames + *arguments.dlm_names);
    if (arguments.dlm_list.has_value()) options.push_back(kLinkerList + *arguments.dlm_list);
    return options;
}

int compile(const Words& words) {
    const Places places = find_places();
    if (places.program.empty()) return fail("/proc/self/exe cannot be read; mount /proc");
    const Language language = language_of(name());
    const Arguments arguments = read_arguments(words, language == Language::kFortran);
    if (!arguments.error.empty()) return fail(arguments.error);
    if (arguments.help) return help(language);
    Compiler compiler = choose_compiler(language, places);
    if (compiler.command.empty()) return kFailed;
    Words options;
    if (arguments.has_input) {
        if (!ask(compiler, arguments, language)) return kFailed;
        options = linker_options(compiler, arguments, language);
    }
    const Words command = command_line(compiler, arguments, language, places, options);
    if (arguments.dry_run || arguments.verbose) show(command);
    if (arguments.dry_run) return 0;
    if (!arguments.has_input || language == Language::kFortran) return become(command);
    const std::optional<int> status = run(command, Errors::kWatched);
    return status.has_value() ? end_as(*status) : kFailed;
}

}  // namespace
}  // namespace hanare::driver

int main(int count, char** words) {
    using namespace hanare::driver;
    std::string name = count > 0 ? words[0] : "hanare-cc";
    name.erase(0, name.rfind('/') + 1);
    const Words arguments(words + (count > 0 ? 1 : 0), words + count);
    if (name == "ld" || name == "ld.bfd") return link(arguments);
    set_name(name);
    return compile(arguments);
}
