// SPDX-License-Identifier: Apache-2.0
#include "compiler.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "child.hpp"

namespace hanare::driver {
namespace {

struct Choice {
    const char* variable;
    const char* first;
    const char* second;
};

Choice choice_of(Language language) {
    switch (language) {
        case Language::kC: return {"HANARE_CC", "gcc", "cc"};
        case Language::kCxx: return {"HANARE_CXX", "g++", "c++"};
        case Language::kFortran: break;
    }
    return {"HANARE_FC", "gfortran", "gfortran"};
}

// A path may have blanks; otherwise they are between words.
Words split_command(const std::string& text) {
    if (!find_program(text).empty()) return {text};
    std::istringstream stream(text);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

bool is_the_same_file(const std::string& one, const std::string& other) {
    std::error_code failed;
    return std::filesystem::equivalent(one, other, failed) && !failed;
}

std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

bool defines(const std::string& macros, const std::string& name) {
    return macros.find("#define " + name + " ") != std::string::npos;
}

bool model_is_wrong(const Compiler& compiler, const Arguments& arguments) {
    const std::string& model = arguments.code_model;
    if (model.empty() || model == "large") return false;
    return compiler.kind == Kind::kClang || model != "medium";
}

void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

void add_compile_options(Words& words, const Compiler& compiler, Language language,
                         const Places& places, bool only_preprocesses) {
    const bool is_clang = compiler.kind == Kind::kClang;
    add(words, {is_clang ? "-mcmodel=large" : "-mcmodel=medium", "-fdata-sections"});
    if (language == Language::kFortran) return;
    if (only_preprocesses) {
        // Its output may be no C at all, in which declarations would be in the way.
        const std::string section = is_clang ? ".bss.dlm" : ".lbss";
        add(words, {"-Ddlm=__attribute__((section(\"" + section + "\")))"});
        return;
    }
    add(words, {"-include", places.header, "-idirafter", places.includes});
}

void add_link_options(Words& words, const Compiler& compiler, const Places& places,
                      const Words& linker_options) {
    if (compiler.kind == Kind::kGnu) add(words, {"-B" + places.linkers + "/"});
    add(words, {"-L" + places.libraries});
    for (const std::string& option : linker_options) add(words, {"-Xlinker", option});
}

// The last of these counts: the linker is in any case the one that stands in for it.
void override_linker(Words& words, const Compiler& compiler, const Arguments& arguments,
                     const Places& places) {
    if (compiler.kind == Kind::kClang) {
        add(words, {"--ld-path=" + places.linkers + "/ld"});
    } else if (!arguments.linker.empty()) {
        add(words, {"-fuse-ld=bfd"});
    }
}

}  // namespace

Compiler choose_compiler(Language language, const Places& places) {
    const auto [variable, first, second] = choice_of(language);
    const char* const wanted = std::getenv(variable);
    Compiler compiler;
    if (wanted != nullptr && *wanted != '\0') {
        compiler.command = split_command(wanted);
    } else {
        compiler.command = {find_program(first).empty() ? second : first};
    }
    const std::string program =
        compiler.command.empty() ? "" : find_program(compiler.command.front());
    if (program.empty()) {
        say("there is no compiler '" + (wanted != nullptr ? wanted : std::string(first)) +
            "'; install it, or name another one in " + variable);
        return {};
    }
    if (is_the_same_file(program, places.program)) {
        say(std::string(variable) + " names '" + compiler.command.front() +
            "', which is this program itself; name the compiler behind it, such as " + first);
        return {};
    }
    return compiler;
}

bool ask(Compiler& compiler, const Arguments& arguments, Language language) {
    Words question = compiler.command;
    question.insert(question.end(), arguments.target.begin(), arguments.target.end());
    add(question, {"-dM", "-E", "-x", "c", "/dev/null"});
    const std::optional<std::string> macros = output_of(question);
    const std::string what = "'" + joined(compiler.command) + "'";
    const std::string variable = choice_of(language).variable;
    if (!macros.has_value()) {
        say(what + " does not say what it is (" + joined(question) +
            " fails); name gcc or clang in " + variable);
        return false;
    }
    if (!defines(*macros, "__GNUC__") || defines(*macros, "__INTEL_COMPILER")) {
        say(what + " is neither gcc nor clang; name one of them in " + variable);
        return false;
    }
    if (!defines(*macros, "__x86_64__") || defines(*macros, "__ILP32__")) {
        say(what + (arguments.target.empty() ? "" : " with " + joined(arguments.target)) +
            " does not make 64-bit programs for x86-64, and only they can have dlm arrays; build "
            "this with that compiler itself, without " +
            name());
        return false;
    }
    compiler.kind = defines(*macros, "__clang__") ? Kind::kClang : Kind::kGnu;
    if (compiler.kind == Kind::kClang && language == Language::kFortran) {
        say(what + " is not gfortran; name gfortran in " + variable);
        return false;
    }
    if (!model_is_wrong(compiler, arguments)) return true;
    say("code with -mcmodel=" + arguments.code_model +
        " cannot reach dlm arrays; leave it out: " + name() + " chooses the code model");
    return false;
}

Words command_line(const Compiler& compiler, const Arguments& arguments, Language language,
                   const Places& places, const Words& linker_options) {
    Words words = compiler.command;
    if (!arguments.has_input) {
        words.insert(words.end(), arguments.rest.begin(), arguments.rest.end());
        return words;
    }
    const bool is_clang = compiler.kind == Kind::kClang;
    const bool links = arguments.has_linkable && !arguments.stops_early && !arguments.only_answers;
    // Which of them a run needs, clang knows better.
    if (is_clang) add(words, {"--start-no-unused-arguments"});
    if (!arguments.colours_chosen && isatty(STDERR_FILENO) != 0) {
        add(words, {"-fdiagnostics-color=always"});
    }
    add_compile_options(words, compiler, language, places, arguments.only_preprocesses);
    if (links) add_link_options(words, compiler, places, linker_options);
    if (is_clang && links) override_linker(words, compiler, arguments, places);
    if (is_clang) add(words, {"--end-no-unused-arguments"});
    // Behind "--" there are files only.
    const auto files = std::ranges::find(arguments.rest, "--");
    for (auto word = arguments.rest.begin(); word != files; ++word) {
        const bool chooses_linker =
            word->starts_with("--ld-path=") || word->starts_with("-fuse-ld=");
        if (!(is_clang && links && chooses_linker)) words.push_back(*word);
    }
    if (!is_clang && links) override_linker(words, compiler, arguments, places);
    if (is_clang && !arguments.moves_freely) {
        // Without it clang 19 compares addresses of large arrays with 32 bits.
        add(words, {"--start-no-unused-arguments", "-fPIE", "--end-no-unused-arguments"});
    }
    if (!arguments.separates_data) add(words, {"-fdata-sections"});
    words.insert(words.end(), files, arguments.rest.end());
    return words;
}

std::string linker_of(const Compiler& compiler, const Arguments& arguments) {
    if (!arguments.linker_path.empty()) return arguments.linker_path;
    if (arguments.linker.find('/') != std::string::npos) return arguments.linker;
    Words question = compiler.command;
    add(question,
        {"-print-prog-name=ld" + (arguments.linker.empty() ? "" : "." + arguments.linker)});
    std::string answer = output_of(question).value_or("");
    while (!answer.empty() && answer.back() == '\n') answer.pop_back();
    return answer.empty() ? "ld" : answer;
}

}  // namespace hanare::driver
