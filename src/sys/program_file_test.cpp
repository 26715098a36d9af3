// SPDX-License-Identifier: Apache-2.0
#include "sys/program_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

class ProgramFileTest : public ::testing::Test {
protected:
    ~ProgramFileTest() override {
        for (const size_t slot : slots_) testing::Leftovers::remove(slot);
    }
    std::string make(const std::string& name, const std::string& text, mode_t mode) {
        const std::string path = directory_.path() + "/" + name;
        slots_.push_back(testing::Leftovers::add(path));
        std::ofstream(path) << text;
        EXPECT_EQ(chmod(path.c_str(), mode), 0);
        return path;
    }
    // Errors come as the errno of exec.
    static int error_of(const std::string& name) {
        const auto found = find_program(name);
        return found ? 0 : found.error().os_errno;
    }
    // In a child, because it changes the environment.
    static std::string found_in(const std::string& path, const std::string& name) {
        return testing::run_in_child([&]() -> std::string {
            setenv("PATH", path.c_str(), 1);
            const auto found = find_program(name);
            return found ? *found : std::string("errno ") + std::to_string(found.error().os_errno);
        });
    }

    testing::TemporaryDirectory directory_;
    std::vector<size_t> slots_;
};

TEST_F(ProgramFileTest, SearchesAsExecvpDoes) {
    make("open", "", 0755);
    make("closed", "", 0644);
    const std::string place = directory_.path();
    const std::string missing = "errno " + std::to_string(ENOENT);
    EXPECT_EQ(found_in("/nonexistent:" + place, "open"), place + "/open");
    EXPECT_EQ(found_in(place + "/open/x:" + place, "open"), place + "/open");
    EXPECT_EQ(found_in("/nonexistent:" + place, "closed"), "errno " + std::to_string(EACCES));
    EXPECT_EQ(found_in(place, "absent"), missing);
    EXPECT_EQ(found_in("", "absent"), missing);
    EXPECT_EQ(found_in(place, ""), missing);
    EXPECT_EQ(testing::run_in_child([&]() -> std::string {
                  if (chdir(place.c_str()) != 0) return "chdir";
                  setenv("PATH", "/nonexistent::/bin", 1);
                  return find_program("open").value_or("nothing");
              }),
              "./open");
    EXPECT_EQ(testing::run_in_child([]() -> std::string {
                  unsetenv("PATH");
                  return find_program("true") ? "" : "not found";
              }),
              "");
}

TEST_F(ProgramFileTest, PathsAreTakenAsTheyAre) {
    EXPECT_EQ(error_of(make("open", "", 0755)), 0);
    EXPECT_EQ(error_of(make("closed", "", 0644)), EACCES);
    EXPECT_EQ(error_of(directory_.path() + "/absent"), ENOENT);
    EXPECT_EQ(error_of(directory_.path() + "/open/x"), ENOTDIR);
    EXPECT_EQ(error_of(directory_.path()), EACCES);
    const auto found = find_program(directory_.path());
    ASSERT_FALSE(found);
    EXPECT_NE(std::string(found.error().text).find("is a directory"), std::string::npos);
}

TEST_F(ProgramFileTest, Scripts) {
    const ProgramFile shell = inspect_program(make("a", "#! /bin/sh -e\nexit\n", 0755));
    EXPECT_TRUE(shell.is_script);
    EXPECT_EQ(shell.loaded, "/bin/sh");
    EXPECT_EQ(shell.elf.kind, ElfFile::Kind::kDynamic);
    EXPECT_TRUE(shell.missing.empty());
    const ProgramFile nested = inspect_program(make("b", "#!" + shell.path + "\n", 0755));
    EXPECT_EQ(nested.loaded, "/bin/sh");
    const ProgramFile orphan = inspect_program(make("c", "#!/nonexistent/x", 0755));
    EXPECT_EQ(orphan.missing, "/nonexistent/x");
    const ProgramFile circle =
        inspect_program(make("d", "#!" + directory_.path() + "/d\n", 0755));  // exec answers ELOOP
    EXPECT_TRUE(circle.is_script);
}

TEST_F(ProgramFileTest, TextAndOther) {
    const ProgramFile text = inspect_program(make("a", "echo hello\n", 0755));
    EXPECT_FALSE(text.is_script || text.is_binary);
    EXPECT_EQ(text.loaded, "/bin/sh");
    EXPECT_EQ(text.elf.kind, ElfFile::Kind::kDynamic);
    EXPECT_TRUE(inspect_program(make("b", std::string("\1\0\2", 3), 0755)).is_binary);
    EXPECT_FALSE(inspect_program(make("c", "", 0755)).is_binary);
    EXPECT_FALSE(inspect_program("/nonexistent").is_script);
}

TEST_F(ProgramFileTest, PrivilegesThatAreGained) {
    if (geteuid() != 0) GTEST_SKIP() << "files of other users can be made by root only";
    const std::string path = make("a", std::string("\1\0", 2), 04755);
    EXPECT_EQ(inspect_program(path).privileges, "");  // its owner's, who we are
    ASSERT_EQ(chown(path.c_str(), testing::kNobody, 0), 0);
    ASSERT_EQ(chmod(path.c_str(), 04755), 0);
    EXPECT_EQ(inspect_program(path).privileges, "is setuid");
    ASSERT_EQ(chown(path.c_str(), 0, testing::kNobody), 0);
    ASSERT_EQ(chmod(path.c_str(), 02755), 0);
    EXPECT_EQ(inspect_program(path).privileges, "is setgid");
    ASSERT_EQ(chmod(path.c_str(), 02745), 0);  // mandatory locking, once
    EXPECT_EQ(inspect_program(path).privileges, "");
}

}  // namespace
}  // namespace hanare::sys
