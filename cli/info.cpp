// SPDX-License-Identifier: Apache-2.0
//
// `hanare info`: every option with its value, where the value comes from, what is allowed and what
// it means; and what the tables of blocks take.
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

#include "base/bookkeeping.hpp"
#include "base/units.hpp"
#include "cli/commands.hpp"
#include "hanare/hanare.h"

namespace hanare::cli {

namespace {

constexpr uint64_t kTebibyte = 1024 * kGiB;
// Of an unmodified program's block that the store has.
constexpr uint64_t kProgramBlockBytes = kBlockEntryBytes + kAdoptedBlockBytes + kStoredSlotBytes;

void print_bookkeeping(const config::Options& options) {
    const uint64_t blocks = kTebibyte / options.block_bytes;
    const auto count = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes); };
    std::printf(
        "\nTables take %llu bytes of local memory for each block in use (below hanare run %llu): "
        "%s (%s) for 1 TiB\n"
        "of them.  Apart from that: %llu for the map of its parts, %llu for the checksum of each "
        "part (4 KiB, or a\n"
        "64th of the block), and %llu for each 4 KiB that a memory server keeps sealed.\n",
        count(kBlockEntryBytes), count(kProgramBlockBytes),
        format_size(blocks * kBlockEntryBytes).c_str(),
        format_size(blocks * kProgramBlockBytes).c_str(), count(kBlockMapBytes),
        count(kPartChecksumBytes), count(kSealBytes));
}

nlohmann::ordered_json bookkeeping() {
    return {{"block_bytes", kBlockEntryBytes}, {"program_block_bytes", kProgramBlockBytes},
            {"map_bytes", kBlockMapBytes},     {"part_checksum_bytes", kPartChecksumBytes},
            {"sealed_4k_bytes", kSealBytes},   {"block_bytes_max", kBookkeepingMax}};
}

void print_text(const config::Options& options) {
    size_t key_width = 6;
    size_t value_width = 5;
    size_t source_width = 6;
    for (const config::OptionRow& row : config::option_rows()) {
        const auto index = static_cast<size_t>(row.id);
        key_width = std::max(key_width, row.key.size());
        value_width = std::max(value_width, config::value_text(options, row.id).size());
        source_width = std::max(source_width, options.sources[index].size());
    }
    const auto print = [&](const std::string& key, const std::string& value,
                           const std::string& source, const std::string& meaning) {
        std::printf("%-*s  %-*s  %-*s  %s\n", static_cast<int>(key_width), key.c_str(),
                    static_cast<int>(value_width), value.c_str(), static_cast<int>(source_width),
                    source.c_str(), meaning.c_str());
    };
    std::printf("hanare %s\n\n", hanare_version());
    print("option", "value", "source", "meaning");
    for (const config::OptionRow& row : config::option_rows()) {
        const auto index = static_cast<size_t>(row.id);
        std::string meaning(row.doc);
        if (!options.notes[index].empty()) meaning += " [" + options.notes[index] + "]";
        print(std::string(row.key), config::value_text(options, row.id), options.sources[index],
              meaning);
    }
    std::printf(
        "\nEach option is a flag (--read-ahead 8), a variable (HANARE_READ_AHEAD=8) and a key of "
        "the\n"
        "configuration file (read_ahead = 8); the first of these that is given wins.\n");
    print_bookkeeping(options);
}

void print_json(const config::Options& options) {
    nlohmann::ordered_json document;
    document["version"] = hanare_version();
    document["options"] = nlohmann::ordered_json::array();
    for (const config::OptionRow& row : config::option_rows()) {
        const auto index = static_cast<size_t>(row.id);
        document["options"].push_back({{"option", row.key},
                                       {"value", config::value_text(options, row.id)},
                                       {"source", options.sources[index]},
                                       {"note", options.notes[index]},
                                       {"default", row.default_text},
                                       {"allowed", row.allowed},
                                       {"doc", row.doc},
                                       {"environment", row.environment},
                                       {"flag", row.flag}});
    }
    document["warnings"] = options.warnings;
    document["bookkeeping"] = bookkeeping();
    // Values may hold any bytes; JSON holds UTF-8 only.
    std::puts(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace

void add_info(CLI::App& app) {
    CLI::App* const info = app.add_subcommand("info", "every option, its value and its source");
    const auto overrides = add_option_flags(*info);
    const auto as_json = std::make_shared<bool>(false);
    info->add_flag("--json", *as_json, "print JSON");
    set_run(*info, [overrides, as_json] {
        const Result<config::Options> options = load_and_apply(*overrides);
        if (!options) return report(options.error());
        if (*as_json) {
            print_json(*options);
        } else {
            print_text(*options);
        }
        return kExitSuccess;
    });
}

}  // namespace hanare::cli
