// SPDX-License-Identifier: Apache-2.0
//
// What `hanare doctor` examines, one function per check.  Findings are complete sentences for
// people; the only decision in them is `prevents`.
#pragma once

#include <string>
#include <vector>

#include "config/options.hpp"
#include "sys/platform.hpp"

namespace hanare::cli {

struct Finding {
    std::string check;
    std::string found;
    std::string use;        // what Hanare does with that
    std::string change;     // what the user can change; empty when there is nothing to gain
    bool prevents = false;  // Hanare cannot run
};

// The last one: opens a pool and uses it (doctor_trial.cpp).  Changes HANARE_* variables.
Finding check_pool(const config::Options& options);

// What `hanare run` needs (doctor_interception.cpp).  The first one runs a program.
Finding check_programs(const config::Options& options);
Finding check_seccomp(const sys::Platform& platform);
Finding check_user_dispatch(const sys::Platform& platform);
Finding check_ptrace(const sys::Platform& platform);

std::vector<Finding> examine(const config::Options& options, const sys::Platform& platform);

}  // namespace hanare::cli
