// SPDX-License-Identifier: Apache-2.0
//
// main() of the test programs: all tests, or one scenario (scenario.hpp).
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "api/scenario.hpp"

int main(int argc, char** argv) {
    setenv("HANARE_CONFIG", "", 1);  // the tests are not for the user's own configuration file
    if (argc >= 3 && std::strcmp(argv[1], "--scenario") == 0) {
        return hanare::api_test::run_registered_scenario(
            argv[2], hanare::api_test::Arguments(argv + 3, argv + argc));
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
