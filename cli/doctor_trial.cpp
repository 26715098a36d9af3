// SPDX-License-Identifier: Apache-2.0
//
// The check that does what a program would do: opens a pool with the options as they are, stores a
// block and reads it back.  Pins make every failure a status; nothing here can raise SIGBUS.
#include <cstdlib>

#include "cli/doctor_checks.hpp"
#include "hanare/hanare.h"

namespace hanare::cli {

namespace {

// Not all options have a field in hanare_pool_options; all have a variable.
void set_environment(const config::Options& options) {
    for (const config::OptionRow& row : config::option_rows()) {
        setenv(row.environment.c_str(), config::value_text(options, row.id).c_str(), 1);
    }
    // What there is to warn of has been said.
    setenv("HANARE_LOG_LEVEL", "error", 1);
}

// Ends a pool that was opened.
class Pool {
public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        if (pool_ != nullptr) hanare_pool_close(pool_);
    }

    hanare_status store_and_read_back(uint64_t block_bytes, bool& same) {
        constexpr uint64_t kPattern = 0x9e3779b97f4a7c15;
        void* memory = nullptr;
        hanare_status status = hanare_pool_open(nullptr, &pool_);
        const auto then = [&status](auto call) {
            if (status == HANARE_STATUS_OK) status = call();
        };
        const auto with_pin = [&](hanare_access access, auto use) {
            then([&] { return hanare_pin(pool_, memory, block_bytes, access); });
            if (status != HANARE_STATUS_OK) return;
            use(*static_cast<volatile uint64_t*>(memory));
            status = hanare_unpin(pool_, memory, block_bytes);
        };
        then([&] { return hanare_alloc(pool_, block_bytes, nullptr, &memory); });
        with_pin(HANARE_ACCESS_WRITE, [](volatile uint64_t& word) { word = kPattern; });
        then([&] { return hanare_flush(pool_, memory, block_bytes); });
        then([&] { return hanare_advise(pool_, memory, block_bytes, HANARE_ADVICE_DONTNEED); });
        with_pin(HANARE_ACCESS_READ, [&](volatile uint64_t& word) { same = word == kPattern; });
        return status;
    }

private:
    hanare_pool* pool_ = nullptr;
};

}  // namespace

Finding check_pool(const config::Options& options) {
    set_environment(options);
    Finding finding;
    finding.check = "pool";
    bool same = false;
    Pool pool;
    if (pool.store_and_read_back(options.block_bytes, same) != HANARE_STATUS_OK) {
        char text[256] = "";
        hanare_last_error(text, sizeof text);
        finding.found = text;
    } else if (!same) {
        finding.found = "a block came back different";
    } else {
        finding.found = "opened; a block was stored and read back";
        finding.use = "the same in every program";
        return finding;
    }
    finding.use = "nothing: no program could use a pool with these options";
    finding.prevents = true;
    return finding;
}

}  // namespace hanare::cli
