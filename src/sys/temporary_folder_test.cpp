// SPDX-License-Identifier: Apache-2.0
#include "sys/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hanare::sys {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolderTest, GoesWithItsContent) {
    std::string path;
    {
        auto folder = TemporaryFolder::make(fs::temp_directory_path(), "hanare-folder-test");
        ASSERT_TRUE(folder) << folder.error().text;
        TemporaryFolder moved = std::move(*folder);
        path = moved.path();
        struct stat about{};
        ASSERT_EQ(stat(path.c_str(), &about), 0);
        EXPECT_EQ(about.st_mode & 0777, 0700u);
        fs::create_directory(path + "/inner");
        std::ofstream(path + "/inner/file") << "x";
    }
    EXPECT_FALSE(fs::exists(path));
}

// As if the process that has made it had been killed: the guardian has been told of it, and of
// nothing since.
TEST(TemporaryFolderTest, ItsGuardianDeletesItForWhoCannot) {
    std::string path = fs::temp_directory_path() / "hanare-folder-test-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    std::ofstream(path + "/file") << "x";
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        guardian->watch(Undo::kFolder, path);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolderTest, WhereThereCanBeNone) {
    const auto folder = TemporaryFolder::make("/nonexistent", "x");
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().status, HANARE_STATUS_STORE_UNAVAILABLE);
}

}  // namespace
}  // namespace hanare::sys
