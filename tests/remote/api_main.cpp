// SPDX-License-Identifier: Apache-2.0
//
// main() of tests of the API whose pools are on a memory server, which is here as long as they run;
// with HANARE_TEST_SEALED one that knows a secret, so that blocks are sealed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "api/scenario.hpp"
#include "remote/server_process.hpp"
#include "sys/test_support.hpp"

int main(int argc, char** argv) {
    using namespace hanare;
    setenv("HANARE_CONFIG", "", 1);
    if (argc >= 3 && std::strcmp(argv[1], "--scenario") == 0) {
        return api_test::run_registered_scenario(argv[2],
                                                 api_test::Arguments(argv + 3, argv + argc));
    }
    testing::InitGoogleTest(&argc, argv);
    std::optional<fabric::Secret> secret;
    const sys::testing::TemporaryDirectory directory;
    const std::string file = directory.path() + "/secret";
    if (std::getenv("HANARE_TEST_SEALED") != nullptr) {
        secret = fabric::Secret::make().value();
        umask(077);
        std::ofstream(file) << secret->text();
        setenv("HANARE_SECRET_FILE", file.c_str(), 1);
    }
    const test::ServerProcess server(2 * kGiB, 0, secret);
    setenv("HANARE_TEST_STORE", server.spec().c_str(), 1);
    const int status = RUN_ALL_TESTS();
    unlink(file.c_str());
    return status;
}
