// SPDX-License-Identifier: Apache-2.0
#include "sys/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

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

TEST(TemporaryFolderTest, ItsGuardianDeletesItForWhoCannot) {
    std::string path;
    {
        auto guardian = Guardian::start();
        ASSERT_TRUE(guardian) << guardian.error().text;
        auto folder =
            TemporaryFolder::make(fs::temp_directory_path(), "hanare-folder-test", &*guardian);
        ASSERT_TRUE(folder) << folder.error().text;
        path = folder->path();
        std::ofstream(path + "/file") << "x";
        // As if this process had been killed: the object never ends.
        new TemporaryFolder(std::move(*folder));
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
