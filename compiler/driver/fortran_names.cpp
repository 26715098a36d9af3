// SPDX-License-Identifier: Apache-2.0
#include "fortran_names.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

namespace hanare::driver {
namespace {

constexpr std::string_view kInputs = "*(.lbss .bss.dlm)";
// gfortran's name of the COMMON block without one.
constexpr std::string_view kBlank = "__BLNK__";

// gfortran's names: a, a.1 for what a procedure keeps, __module_MOD_a.
bool is_array(const std::string& symbol, const std::string& name) {
    if (symbol == name || symbol.ends_with("_MOD_" + name)) return true;
    return symbol.starts_with(name + ".") &&
           symbol.find_first_not_of("0123456789", name.size() + 1) == std::string::npos;
}

bool is_common(const std::string& symbol, const std::string& name) {
    return symbol == name || symbol == name + "_" || (name == "//" && symbol == kBlank);
}

bool is_a_name(const std::string& name) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_$";
    return name == "//" || name.find_first_not_of(kLetters) == std::string::npos;
}

std::string not_there(const std::string& name) {
    return "there is no array and no COMMON block '" + name +
           "' that lives as long as the program; give an array SAVE, or take the name out of the "
           "list";
}

std::string not_large(const std::string& name) {
    return "'" + name +
           "' has initial values or less than 64 KiB, and cannot be in far memory; take the name "
           "out of the list";
}

}  // namespace

Words split_names(const std::string& text) {
    Words names;
    std::string name;
    bool in_comment = false;
    for (const char c : text + "\n") {
        if (c == '\n') in_comment = false;
        if (c == '#') in_comment = true;
        const bool ends = in_comment || c == ',' || std::isspace(static_cast<unsigned char>(c));
        if (!ends) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (!ends || name.empty()) continue;
        if (name.size() > 2 && name.front() == '/' && name.back() == '/') {
            name = name.substr(1, name.size() - 2);
        }
        names.push_back(std::exchange(name, {}));
    }
    return names;
}

std::optional<Words> read_names(const std::string& path) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad()) return std::nullopt;
    return split_names(text);
}

std::string wrong_name(const Words& names) {
    const auto wrong = std::ranges::find_if_not(names, is_a_name);
    return wrong == names.end() ? "" : "'" + *wrong + "' is no name of an array or COMMON block";
}

std::string script_for(const std::string& script, const Words& names) {
    std::string inputs = "*(.lbss .bss.dlm";
    for (const std::string& name : names) {
        if (name == "//") continue;
        inputs += " .lbss." + name + " .lbss." + name + ".[0-9]* .lbss.__*_MOD_" + name;
    }
    if (names.empty()) inputs += " .lbss.* LARGE_COMMON";
    std::string result = script;
    const size_t place = result.find(kInputs);
    if (place != std::string::npos) result.replace(place, kInputs.size(), inputs + ")");
    return result;
}

NamedData find_named(const ProgramFile& program, const Words& names) {
    NamedData found;
    for (const std::string& name : names) {
        bool is_placed = false, is_known = false;
        for (const DataSymbol& symbol : program.data) {
            const bool may_be_common = is_common(symbol.name, name);
            if (!may_be_common && !is_array(symbol.name, name)) continue;
            is_known = true;
            is_placed |= symbol.section == ".dlm" || symbol.section == ".lbss";
            const bool is_new = std::ranges::none_of(
                found.common, [&](auto& other) { return other.name == symbol.name; });
            if (may_be_common && symbol.section == ".lbss" && is_new)
                found.common.push_back(symbol);
        }
        if (!is_placed) return {{}, is_known ? not_large(name) : not_there(name)};
    }
    return found;
}

}  // namespace hanare::driver
