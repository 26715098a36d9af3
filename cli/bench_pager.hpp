// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench pager`: an array several times larger than local memory, on Hanare and on what the
// kernel offers, case by case.
#pragma once

#include <memory>
#include <string>

#include "config/options.hpp"

namespace hanare::cli {

struct PagerFlags {
    std::string size;
    std::string compare = "plain,mmap,mmap_sequential,mmap_random,swap,zram";
    std::string cases;
    std::string threads;
    std::string json;
    std::string worker;
    int rounds = 0;  // 0: by `quick`
    bool quick = false;
    std::shared_ptr<config::Overrides> overrides;
};

// Returns the exit status; does not return when a signal ended the run.
int run_bench_pager(const PagerFlags& flags);

}  // namespace hanare::cli
