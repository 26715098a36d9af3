// SPDX-License-Identifier: Apache-2.0
#include "linker.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>

#include "arguments.hpp"
#include "child.hpp"
#include "fortran_names.hpp"
#include "places.hpp"
#include "program_file.hpp"

namespace hanare::driver {
namespace {

struct Request {
    Words rest;  // the linker's own
    std::string linker = "ld";
    std::string output = "a.out";
    bool verbose = false;
    bool makes_object = false;   // ld -r
    bool makes_library = false;  // ld -shared
    bool makes_dynamic = false;  // it names the program's loader
    bool has_libc = false;       // else nothing of ours has a place in it
    bool has_script = false;     // of its own
    bool has_sanitizer = false;  // one that lays claim to addresses
    bool came_by_file = false;   // @FILE: it may be too long for a command
    bool all_large = false;      // Fortran without names
    std::optional<std::string> list;
    Words names;
};

bool take_own(Request& request, std::string_view word) {
    const auto after = [&](const std::string& option) {
        return std::string(word.substr(option.size()));
    };
    if (word.starts_with(kLinkerName)) {
        set_name(after(kLinkerName));
    } else if (word.starts_with(kLinkerPath)) {
        request.linker = after(kLinkerPath);
    } else if (word.starts_with(kLinkerNames)) {
        const Words more = split_names(after(kLinkerNames));
        request.names.insert(request.names.end(), more.begin(), more.end());
    } else if (word.starts_with(kLinkerList)) {
        request.list = after(kLinkerList);
    } else if (word == kLinkerVerbose) {
        request.verbose = true;
    } else if (word == kLinkerAll) {
        request.all_large = true;
    } else {
        return false;
    }
    return true;
}

// As gcc and clang link those of addresses, threads and uninitialised memory.
bool is_sanitizer(const std::string& word) {
    for (const char* const name : {"asan", "tsan", "msan"}) {
        if (word == std::string("-l") + name) return true;
        if (word.find(std::string("libclang_rt.") + name) != std::string::npos) return true;
    }
    return false;
}

Request read_request(const Words& arguments) {
    const Words words = expand_files(arguments);
    Request request;
    request.came_by_file = words != arguments;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (take_own(request, word)) continue;
        request.has_sanitizer |= is_sanitizer(word);
        request.rest.push_back(word);
        if ((word == "-o" || word == "--output") && i + 1 < words.size()) {
            request.output = words[i + 1];
        } else if (word.starts_with("--output=")) {
            request.output = word.substr(9);
        } else if (word == "-r" || word == "-i" || word == "--relocatable") {
            request.makes_object = true;
        } else if (word == "-shared" || word == "--shared" || word == "-Bshareable") {
            request.makes_library = true;
        } else if (word == "-lc") {
            request.has_libc = true;
        } else if (word == "-T" || word == "--script" || word.starts_with("--script=") ||
                   (word.starts_with("-T") && word.size() > 2 && !word.starts_with("-Ttext") &&
                    !word.starts_with("-Tdata") && !word.starts_with("-Tbss"))) {
            request.has_script = true;
        } else if (word.starts_with("-dynamic-linker") || word.starts_with("--dynamic-linker")) {
            request.makes_dynamic = true;
        }
    }
    return request;
}

void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

// A file that only this process and those that it starts can name; it goes with them.
// As compilers do: never a device.
void remove_output(const std::string& path) {
    struct stat status;
    if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) unlink(path.c_str());
}

std::optional<std::string> file_in_memory(const std::string& content) {
    const int file = memfd_create("hanare-link", 0);
    if (file < 0) return std::nullopt;
    for (size_t written = 0; written < content.size();) {
        const ssize_t bytes = write(file, content.data() + written, content.size() - written);
        if (bytes <= 0) return std::nullopt;
        written += static_cast<size_t>(bytes);
    }
    return "/proc/self/fd/" + std::to_string(file);
}

bool is_gnu_ld(const std::string& linker) {
    const std::string file = linker.substr(linker.rfind('/') + 1);
    return file == "ld" || file == "ld.bfd" || file.ends_with("-ld") || file.ends_with("-ld.bfd");
}

class Link {
public:
    explicit Link(Request request) : request_(std::move(request)), places_(find_places()) {}

    int run() {
        if (places_.program.empty()) return fail("/proc/self/exe cannot be read; mount /proc");
        // Fortran's arrays in a library stay there: they are in no list.
        if (request_.makes_object || (request_.makes_library && request_.all_large)) {
            return finish(start(plain_command()));
        }
        if (!prepare_script()) return kFailed;
        if (!is_gnu_ld(request_.linker)) return link_with_other();
        // Whose script has no place for ours has no dlm arrays.
        if (request_.has_script &&
            start(command(request_.linker, false), Errors::kHidden).value_or(1) != 0) {
            return finish(start(plain_command()));
        }
        if (const int status = link_once(false); status != 0 || was_interrupted()) return status;
        if (!look()) return 0;
        if (const std::string why = refusal(); !why.empty()) return refuse(why);
        if (is_by_name() && !find_common()) return kFailed;
        return link_again();
    }

private:
    Request request_;
    Places places_;
    ProgramFile program_;
    std::string script_;
    std::string common_;  // an object file with COMMON blocks

    bool is_fortran() const { return request_.all_large || is_by_name(); }
    bool is_by_name() const { return !request_.names.empty(); }

    bool prepare_script() {
        script_ = places_.script;
        if (request_.list.has_value()) {
            const std::optional<Words> names = read_names(*request_.list);
            if (!names.has_value()) {
                say("the list '" + *request_.list + "' cannot be read; --dlm-list needs a file");
                return false;
            }
            request_.names.insert(request_.names.end(), names->begin(), names->end());
        }
        if (!is_fortran()) return true;
        if (const std::string wrong = wrong_name(request_.names); !wrong.empty()) {
            say(wrong);
            return false;
        }
        std::ifstream file(places_.script);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const std::optional<std::string> made = file_in_memory(script_for(text, request_.names));
        if (made.has_value()) script_ = *made;
        if (!made.has_value()) say("no memory for the linker's script");
        return made.has_value();
    }

    Words plain_command() const {
        Words command = {request_.linker};
        command.insert(command.end(), request_.rest.begin(), request_.rest.end());
        return command;
    }

    // Without `dlm` arrays and calls of dlm_alloc, what this makes is what the plain command makes.
    Words command(const std::string& linker, bool with_runtime) const {
        Words words = {linker, "-T", script_};
        if (with_runtime) {
            // Before the C library, of which it has some functions itself.
            add(words, {"-L" + places_.libraries, "--push-state", "--no-as-needed", "-lhanare",
                        "--pop-state"});
            if (program_.dlm_bytes > 0) add(words, {"-u", "hanare_dlm_start"});
            if (!is_of_the_system(places_.libraries)) add(words, {"-rpath", places_.libraries});
        }
        for (const std::string& word : request_.rest) {
            // The first time, a program's symbols tell what of the names is there.
            const bool strips = word == "-s" || word == "--strip-all";
            if (!(strips && is_by_name() && !with_runtime)) words.push_back(word);
        }
        if (with_runtime && !common_.empty()) words.push_back(common_);
        if (request_.has_libc && (request_.makes_library || request_.makes_dynamic)) {
            add(words, {"-L" + places_.libraries});
            if (!request_.makes_library) add(words, {"-ldlm"});
            add(words, {"--push-state", "--as-needed", "-lhanare", "-lc", "--pop-state"});
        }
        return words;
    }

    std::optional<int> start(const Words& words, Errors errors = Errors::kShown) {
        if (request_.verbose) show(words);
        if (!request_.came_by_file) return driver::run(words, errors);
        const std::optional<std::string> file =
            file_in_memory(text_of_file(Words(words.begin() + 1, words.end())));
        return driver::run(file.has_value() ? Words{words[0], "@" + *file} : words, errors);
    }

    // A program that was to be interrupted is none.
    int finish(std::optional<int> status) {
        if (was_interrupted()) remove_output(request_.output);
        if (!status.has_value()) return kFailed;
        if (*status != 0) return end_as(*status);
        return was_interrupted() ? fail("interrupted") : 0;
    }

    int link_once(bool with_runtime) {
        return finish(start(command(request_.linker, with_runtime)));
    }

    // Whether there is anything to do for what was linked.
    bool look() {
        program_ = {};
        struct stat status;
        if (stat(request_.output.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
        const std::optional<ProgramFile> program = look_at_program(request_.output);
        if (!program.has_value()) return false;
        program_ = *program;
        if (request_.makes_library) return program_.dlm_bytes > 0;
        return program_.dlm_bytes > 0 || program_.needs_library || is_by_name();
    }

    std::string refusal() const {
        if (program_.dlm_bytes == 0) return "";
        if (request_.makes_library) {
            return "dlm arrays cannot be in a shared library; define them in the executable, and "
                   "in the library declare them 'extern dlm'";
        }
        if (request_.has_sanitizer) {
            return "the sanitizers of addresses, threads and memory need the addresses of dlm "
                   "arrays for themselves; leave out -fsanitize=, or build with -Ddlm= and the "
                   "compiler itself";
        }
        if (program_.has_loader) return "";
        return "a statically linked program cannot have dlm arrays: far memory is in libhanare.so; "
               "leave out -static and -static-pie";
    }

    int refuse(const std::string& why) {
        remove_output(request_.output);
        return fail(why);
    }

    bool find_common() {
        const NamedData named = find_named(program_, request_.names);
        if (!named.error.empty()) {
            static_cast<void>(refuse(named.error));
            return false;
        }
        if (named.common.empty()) return true;
        const std::optional<std::string> made = file_in_memory(common_object(named.common));
        common_ = made.value_or("");
        for (const DataSymbol& block : named.common) program_.dlm_bytes += block.bytes;
        if (!made.has_value()) static_cast<void>(refuse("no memory for an object file"));
        return made.has_value();
    }

    int link_again() {
        if (const int status = link_once(true); status != 0) return status;
        const bool wanted = program_.dlm_bytes > 0;
        const std::optional<ProgramFile> program = look_at_program(request_.output);
        if (!wanted) return 0;
        if (!program.has_value() || program->dlm_bytes == 0) {
            return refuse("the linker has not placed the dlm arrays; use GNU ld 2.40 or later");
        }
        const std::string why = hide_segment(request_.output);
        return why.empty() ? 0 : refuse("'" + request_.output + "' is of no use: " + why);
    }

    // Whether there are `dlm` arrays, GNU ld finds out, if it can link this at all.
    int link_with_other() {
        const std::optional<int> found = start(command("ld", false), Errors::kHidden);
        if (found == 0 && look() && (program_.dlm_bytes > 0 || is_by_name())) {
            return refuse("'" + request_.linker +
                          "' cannot place dlm arrays, only GNU ld can; leave out -fuse-ld");
        }
        if (was_interrupted()) return kFailed;
        return finish(start(plain_command()));
    }
};

}  // namespace

int link(const Words& arguments) { return Link(read_request(arguments)).run(); }

}  // namespace hanare::driver
