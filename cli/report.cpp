// SPDX-License-Identifier: Apache-2.0
//
// `hanare report`: the page is made by the Python package (python/hanare/report), which this
// process becomes.
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/python.hpp"
#include "sys/become_program.hpp"

namespace hanare::cli {
namespace {

struct ReportFlags {
    std::vector<std::string> files;
    std::string output = "report.html";
    std::optional<std::string> title;
    std::optional<std::string> python;
};

// An interpreter without the package says so in a line.
constexpr const char* kProgram =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "try:\n"
    "    from hanare.report import main\n"
    "except ModuleNotFoundError as error:\n"
    "    print(f'hanare: error: {sys.executable} has no module {error.name}: install the package "
    "'\n"
    "          'hanare[report] there, or name another interpreter by --python', file=sys.stderr)\n"
    "    sys.exit(70)\n"
    "sys.exit(main(sys.argv[1:]))\n";

Result<void> run(const ReportFlags& flags) {
    HANARE_TRY_ASSIGN(const std::string python, find_python(flags.python));
    std::vector<std::string> arguments = {python, "-c", kProgram, "--output=" + flags.output};
    if (flags.title) arguments.push_back("--title=" + *flags.title);
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), flags.files.begin(), flags.files.end());
    return std::unexpected(sys::become_program(arguments, 0));
}

}  // namespace

void add_report(CLI::App& app) {
    CLI::App* report_app = app.add_subcommand(
        "report", "a page of runs and measurements: time line, residency, advice, figures");
    auto flags = std::make_shared<ReportFlags>();
    report_app
        ->add_option("FILE", flags->files,
                     "of hanare run --stats FILE, or of hanare bench NAME --json FILE")
        ->required();
    report_app->add_option("-o,--output", flags->output, "the page (default report.html)");
    report_app->add_option("--title", flags->title, "of the page (default: what the files are of)");
    report_app->add_option("--python", flags->python,
                           "an interpreter that has the package hanare[report] (default "
                           "$HANARE_PYTHON, which the package's own command sets, else python3)");
    set_run(*report_app, [flags] {
        const Result<void> done = run(*flags);
        return done ? kExitSuccess : report(done.error());
    });
}

}  // namespace hanare::cli
