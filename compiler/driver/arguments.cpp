// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string_view>

namespace hanare::driver {
namespace {

constexpr size_t kNestingMax = 50;

// Options of gcc, clang and gfortran whose operand is the next word.
constexpr std::string_view kWithOperand[] = {
    "-o",
    "-x",
    "-I",
    "-L",
    "-D",
    "-U",
    "-B",
    "-T",
    "-u",
    "-e",
    "-z",
    "-A",
    "-J",
    "-h",
    "-include",
    "-imacros",
    "-isystem",
    "-idirafter",
    "-iquote",
    "-iprefix",
    "-isysroot",
    "-iwithprefix",
    "-imultilib",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-mllvm",
    "-arch",
    "-aux-info",
    "--param",
    "-dumpbase",
    "-dumpdir",
    "-dumpbase-ext",
    "-wrapper",
    "-specs",
    "-target",
    "--sysroot",
    "-include-pch",
    "-cxx-isystem",
    "-iwithprefixbefore",
    "--entry",
    "-rpath",
    "-G",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-ivfsoverlay",
    "-Xanalyzer",
    "-working-directory",
};

bool starts(std::string_view word, std::initializer_list<std::string_view> beginnings) {
    return std::ranges::any_of(beginnings, [&](auto text) { return word.starts_with(text); });
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

bool is_header(std::string_view name) {
    constexpr std::string_view kEndings[] = {".h",   ".hh", ".hpp", ".hxx", ".hp",
                                             ".h++", ".H",  ".tcc", ".gch"};
    return std::ranges::any_of(kEndings, [&](auto end) { return name.ends_with(end); });
}

// As gcc reads its @FILEs: words apart by blanks, '...' and "..." and \ keep characters.
Words split_file(std::istream& file) {
    Words words;
    std::string word;
    bool in_word = false;
    char quote = '\0';
    for (int c = file.get(); c != EOF; c = file.get()) {
        const char letter = static_cast<char>(c);
        if (letter == '\\' && file.peek() != EOF) {
            word += static_cast<char>(file.get());
            in_word = true;
        } else if (quote != '\0') {
            if (letter == quote) {
                quote = '\0';
            } else {
                word += letter;
            }
        } else if (letter == '\'' || letter == '"') {
            quote = letter;
            in_word = true;
        } else if (std::string_view(" \t\n\v\f\r").find(letter) != std::string_view::npos) {
            if (in_word) words.push_back(word);
            word.clear();
            in_word = false;
        } else {
            word += letter;
            in_word = true;
        }
    }
    if (in_word) words.push_back(word);
    return words;
}

class Reader {
public:
    explicit Reader(bool is_fortran) : is_fortran_(is_fortran) {}

    Arguments read(const Words& words) {
        look_at(words, 0);
        return std::move(result_);
    }

private:
    bool is_fortran_;
    bool only_options_ = true;   // no "--" yet
    std::string_view language_;  // of -x
    Arguments result_;

    void look_at(const Words& words, size_t depth) {
        for (size_t i = 0; i < words.size(); ++i) {
            const size_t first = i;
            if (depth == 0 && only_options_ && take_own(words, i)) continue;
            if (!look_into_file(words[i], depth)) {
                const bool has_operand =
                    only_options_ && i + 1 < words.size() &&
                    std::ranges::find(kWithOperand, words[i]) != std::end(kWithOperand);
                look_at_word(words[i], has_operand ? words[i + 1] : std::string_view());
                if (has_operand) ++i;
            }
            if (depth != 0) continue;
            for (size_t kept = first; kept <= i; ++kept) result_.rest.push_back(words[kept]);
        }
    }

    bool look_into_file(const std::string& word, size_t depth) {
        if (word.size() < 2 || word[0] != '@' || depth >= kNestingMax) return false;
        std::ifstream file(word.substr(1));
        if (!file) return false;
        look_at(split_file(file), depth + 1);
        return true;
    }

    bool take_own(const Words& words, size_t& i) {
        const std::string& word = words[i];
        for (auto& [option, flag] : std::initializer_list<std::pair<std::string_view, bool*>>{
                 {"--dry-run", &result_.dry_run},
                 {"--verbose", &result_.verbose},
                 {"--help", &result_.help}}) {
            if (word != option) continue;
            *flag = true;
            return true;
        }
        return take_list("--dlm", words, i, result_.dlm_names) ||
               take_list("--dlm-list", words, i, result_.dlm_list);
    }

    bool take_list(const std::string& option, const Words& words, size_t& i,
                   std::optional<std::string>& value) {
        const std::string& word = words[i];
        if (word.starts_with(option + "=")) {
            value = word.substr(option.size() + 1);
        } else if (word == option && i + 1 < words.size()) {
            value = words[++i];
        } else if (word != option) {
            return false;
        }
        if (!is_fortran_) {
            result_.error = option +
                            " is for Fortran; here the word dlm before a declaration "
                            "says the same";
        } else if (!value.has_value() || value->empty()) {
            result_.error = option + " needs " +
                            (option == "--dlm" ? "names: --dlm a,b" : "a file: --dlm-list FILE");
        }
        return true;
    }

    void look_at_word(std::string_view word, std::string_view operand) {
        if (word == "--" && only_options_) {
            only_options_ = false;
        } else if (only_options_ && word.size() > 1 && word[0] == '-') {
            look_at_option(word, operand);
        } else {
            note_input(word);
        }
    }

    void note_input(std::string_view word) {
        result_.has_input = true;
        const bool header =
            language_.ends_with("-header") || (language_.empty() && is_header(word));
        if (!header) result_.has_linkable = true;
    }

    void look_at_option(std::string_view word, std::string_view operand) {
        const auto after = [&](std::string_view beginning) {
            return word.substr(beginning.size());
        };
        if (word.starts_with("-x")) {
            language_ = word == "-x" ? operand : after("-x");
            if (language_ == "none") language_ = {};
        } else if (is_one_of(word, {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--compile",
                                    "--assemble", "--preprocess", "-emit-pch", "--precompile"})) {
            result_.stops_early = true;
            result_.only_preprocesses |= word == "-E";
        } else if (starts(word,
                          {"-print-", "--print-", "-dumpversion", "-dumpmachine", "-dumpspecs",
                           "-dumpfullversion", "--version", "--help", "--target-help"})) {
            result_.only_answers = true;
        } else if (is_one_of(word, {"-m32", "-mx32", "-m16", "-m64"}) ||
                   starts(word, {"--target="})) {
            result_.target.emplace_back(word);
        } else if (word == "-target") {
            result_.target.insert(result_.target.end(), {std::string(word), std::string(operand)});
        } else {
            look_at_setting(word, after);
        }
    }

    template <typename After>
    void look_at_setting(std::string_view word, After after) {
        if (word.starts_with("-mcmodel=")) {
            result_.code_model = after("-mcmodel=");
        } else if (word.starts_with("-fuse-ld=")) {
            result_.linker = after("-fuse-ld=");
        } else if (word.starts_with("--ld-path=")) {
            result_.linker_path = after("--ld-path=");
        } else if (is_one_of(word, {"-fdata-sections", "-fno-data-sections"})) {
            result_.separates_data = word == "-fdata-sections";
        } else if (is_one_of(word, {"-fPIC", "-fpic", "-fPIE", "-fpie"})) {
            result_.moves_freely = true;
        } else if (is_one_of(word, {"-fno-PIC", "-fno-pic", "-fno-PIE", "-fno-pie"})) {
            result_.moves_freely = false;
        } else if (starts(word, {"-fdiagnostics-color", "-fno-diagnostics-color",
                                 "-fcolor-diagnostics", "-fno-color-diagnostics"})) {
            result_.colours_chosen = true;
        } else if (word.starts_with("-l")) {
            result_.has_input = result_.has_linkable = true;
        }
    }
};

}  // namespace

Arguments read_arguments(const Words& words, bool is_fortran) {
    return Reader(is_fortran).read(words);
}

Words expand_files(const Words& words) {
    Words result;
    for (const std::string& word : words) {
        std::ifstream file;
        if (word.size() > 1 && word[0] == '@') file.open(word.substr(1));
        const Words more = file.is_open() ? split_file(file) : Words{word};
        result.insert(result.end(), more.begin(), more.end());
    }
    return result;
}

std::string text_of_file(const Words& words) {
    std::string text;
    for (const std::string& word : words) {
        if (word.empty()) text += "''";
        for (const char letter : word) {
            if (std::string_view(" \t\n\v\f\r\\'\"").find(letter) != std::string_view::npos) {
                text += '\\';
            }
            text += letter;
        }
        text += '\n';
    }
    return text;
}

}  // namespace hanare::driver
