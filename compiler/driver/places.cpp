// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>
#include <filesystem>

// HANARE_LIBRARY_PLACE and the others are the build's: from the folder of the program, or absolute.

namespace hanare::driver {

Places find_places() {
    std::error_code failed;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (failed) return {};
    const auto place = [&](const char* from_program) {
        return (program.parent_path() / from_program).lexically_normal().string();
    };
    Places places = {.program = program.string(),
                     .libraries = place(HANARE_LIBRARY_PLACE),
                     .header = {},
                     .includes = place(HANARE_INCLUDE_PLACE),
                     .script = place(HANARE_LIBRARY_PLACE "/hanare/dlm.ld"),
                     .linkers = place(HANARE_LINKER_PLACE)};
    places.header = places.includes + "/hanare/compat/dlm.h";
    return places;
}

bool is_of_the_system(const std::string& folder) {
    constexpr const char* kFolders[] = {"/lib",
                                        "/usr/lib",
                                        "/lib64",
                                        "/usr/lib64",
                                        "/lib/x86_64-linux-gnu",
                                        "/usr/lib/x86_64-linux-gnu"};
    return std::ranges::find(kFolders, folder) != std::end(kFolders);
}

}  // namespace hanare::driver
