// SPDX-License-Identifier: Apache-2.0
//
// Options from real environments and real files.  Each test starts without any HANARE_* variable.
#include "config/options.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "config/rules.hpp"
#include "config/store_spec.hpp"
#include "sys/file.hpp"
#include "sys/memory_limits.hpp"
#include "sys/test_support.hpp"

namespace hanare::config {
namespace {

class OptionsTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::vector<std::string> names;
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string variable(*entry);
            if (variable.starts_with("HANARE_"))
                names.push_back(variable.substr(0, variable.find('=')));
        }
        for (const std::string& name : names) unsetenv(name.c_str());
        unsetenv("TMPDIR");
        setenv("HOME", "/nonexistent", 1);
        unsetenv("XDG_CONFIG_HOME");
    }

    // A configuration file without a name on disk, so that nothing can be left behind.
    std::string config_file(const std::string& text) {
        const int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        EXPECT_GE(file, 0);
        EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        const std::string path = "/proc/self/fd/" + std::to_string(file);
        setenv("HANARE_CONFIG", path.c_str(), 1);
        files_.emplace_back(file);
        return path;
    }

    static std::string source(const Options& options, OptionId id) {
        return options.sources[static_cast<size_t>(id)];
    }

    static std::string note(const Options& options, OptionId id) {
        return options.notes[static_cast<size_t>(id)];
    }

    static std::string error_text(const Overrides& overrides = {}) {
        const Result<Options> options = load_options(overrides);
        if (options) return "no error";
        EXPECT_EQ(options.error().status, HANARE_STATUS_INVALID_ARGUMENT);
        return options.error().text;
    }

private:
    std::vector<sys::FileDescriptor> files_;
};

TEST_F(OptionsTest, AHomeThatMayNotBeSearchedHoldsNoFile) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    EXPECT_EQ(sys::testing::run_in_child([]() -> std::string {
                  const sys::testing::TemporaryDirectory home;
                  if (chmod(home.path().c_str(), 0700) != 0) return "chmod failed";
                  setenv("HOME", home.path().c_str(), 1);
                  return sys::testing::run_in_child([]() -> std::string {
                      if (!sys::testing::become_nobody()) return "cannot become nobody";
                      const Result<Options> options = load_options();
                      return options ? "" : options.error().text;
                  });
              }),
              "");
}

TEST_F(OptionsTest, DefaultsAreThoseOfTheTable) {
    const Result<Options> options = load_options();
    ASSERT_TRUE(options.has_value()) << options.error().text;
    EXPECT_EQ(options->block_bytes, 256 * kKiB);
    EXPECT_EQ(options->engine, Engine::kAuto);
    EXPECT_EQ(options->read_ahead_blocks, 256u);
    EXPECT_EQ(options->replacement, Replacement::kSecondChance);
    EXPECT_EQ(options->background, Background::kOn);
    EXPECT_EQ(options->io, Io::kAuto);
    EXPECT_TRUE(options->use_direct);
    EXPECT_FALSE(options->allow_tmpfs);
    EXPECT_EQ(options->control, Switch::kOn);
    EXPECT_EQ(options->syscalls, Switch::kOff);
    EXPECT_EQ(options->log_level, LogLevel::kWarn);
    EXPECT_EQ(options->store, "file:/var/tmp");
    EXPECT_TRUE(options->warnings.empty());
    for (const OptionRow& row : option_rows()) EXPECT_EQ(source(*options, row.id), "default");
}

TEST_F(OptionsTest, TheEnvironmentIsEnoughWhereItHasLocalAndStore) {
    EXPECT_FALSE(load_from_environment());
    setenv("HANARE_LOCAL", "64M", 1);
    EXPECT_FALSE(load_from_environment());
    setenv("HANARE_STORE", "file:/x", 1);
    const auto options = load_from_environment();
    ASSERT_TRUE(options) << options.error().text;
    EXPECT_EQ(options->local_bytes, 64 * kMiB);
    EXPECT_EQ(options->store, "file:/x");
    setenv("HANARE_BLOCK", "x", 1);
    EXPECT_FALSE(load_from_environment());
}

TEST_F(OptionsTest, LocalIsFourFifthsOfTheLimit) {
    const Result<Options> options = load_options();
    const auto limit = sys::effective_memory_limit();
    ASSERT_TRUE(options.has_value() && limit.has_value());
    // MemAvailable moves between the two calls.
    const double expected = 0.8 * static_cast<double>(limit->bytes);
    EXPECT_NEAR(static_cast<double>(options->local_bytes), expected, 0.1 * expected);
    EXPECT_EQ(options->local_bytes % kMiB, 0u);
    EXPECT_TRUE(options->notes[0].starts_with("auto: 80 % of ")) << options->notes[0];
}

TEST_F(OptionsTest, SmallPoolsHaveSmallBlocks) {
    const auto block_bytes = [](const char* local, Overrides flags = {}) {
        flags.push_back({OptionId::local_bytes, local, "flag --local"});
        return load_options(flags).value().block_bytes;
    };
    EXPECT_EQ(block_bytes("1M"), 64 * kKiB);
    EXPECT_EQ(block_bytes("4M"), 128 * kKiB);
    EXPECT_EQ(block_bytes("15M"), 128 * kKiB);
    EXPECT_EQ(block_bytes("16M"), 256 * kKiB);
    EXPECT_EQ(block_bytes("1M", {{OptionId::block_bytes, "1M", "flag --block"}}), kMiB);
    EXPECT_EQ(block_bytes("15M", {{OptionId::block_bytes, "auto", "flag --block"}}), 128 * kKiB);
}

TEST_F(OptionsTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
    const std::string path =
        config_file("block = \"64K\"\nread_ahead = 1\nio = 'sync'\ndirect = false\n");
    setenv("HANARE_BLOCK", "128K", 1);
    setenv("HANARE_READ_AHEAD", "2", 1);
    const Overrides flags = {{OptionId::block_bytes, "1M", "flag --block"}};
    const Result<Options> options = load_options(flags);
    ASSERT_TRUE(options.has_value()) << options.error().text;
    EXPECT_EQ(options->block_bytes, kMiB);
    EXPECT_EQ(source(*options, OptionId::block_bytes), "flag --block");
    EXPECT_EQ(options->read_ahead_blocks, 2u);
    EXPECT_EQ(source(*options, OptionId::read_ahead_blocks), "environment HANARE_READ_AHEAD");
    EXPECT_EQ(options->io, Io::kSync);
    EXPECT_EQ(source(*options, OptionId::io), "file " + path);
    EXPECT_FALSE(options->use_direct);
    EXPECT_EQ(options->engine, Engine::kAuto);
    EXPECT_EQ(source(*options, OptionId::engine), "default");
}

TEST_F(OptionsTest, BadValuesNameOptionValueSourceAndWhatIsAllowed) {
    const struct {
        OptionId id;
        const char* value;
        const char* expected;
    } cases[] = {
        {OptionId::local_bytes, "-1G",
         "local (flag --x): '-1G' is not positive; allowed is auto or a positive size such as"},
        {OptionId::local_bytes, "", "local (flag --x): '' is empty; allowed is auto or"},
        {OptionId::block_bytes, "2K",
         "block (flag --x): '2K' is too small; allowed is auto or a power of two "
         "from 4K to 4M"},
        {OptionId::block_bytes, "8M", "'8M' is too large"},
        {OptionId::block_bytes, "12K", "'12K' is not a power of two"},
        {OptionId::block_bytes, "big", "'big' is not a size"},
        {OptionId::engine, "turbo",
         "engine (flag --x): 'turbo' is unknown; allowed is auto, sigbus-move, "
         "sigbus-copy, segv-remap, thread or shared"},
        {OptionId::engine, "AUTO", "'AUTO' is unknown"},
        {OptionId::read_ahead_blocks, "-1",
         "'-1' is not a whole number; allowed is a number from 0 to 1024"},
        {OptionId::read_ahead_blocks, "1025", "'1025' is out of range"},
        {OptionId::read_ahead_blocks, "99999999999999999999", "is out of range"},
        {OptionId::read_ahead_blocks, "1.5", "is not a whole number"},
        {OptionId::read_ahead_blocks, "", "is not a whole number"},
        {OptionId::replacement, "lru",
         "replacement (flag --x): 'lru' is unknown; allowed is second_chance or round_robin"},
        {OptionId::background, "never",
         "background (flag --x): 'never' is unknown; allowed is on or off"},
        {OptionId::control, "1", "control (flag --x): '1' is unknown; allowed is on or off"},
        {OptionId::use_direct, "2",
         "direct (flag --x): '2' is neither true nor false; allowed is true,"},
        {OptionId::log_level, "loud", "allowed is error, warn, info or debug"},
        {OptionId::store, "/scratch",
         "store (flag --x): '/scratch' lacks the kind; write file:DIR; allowed is auto, "
         "file:DIR[?size=SIZE], tcp://HOST[:PORT][?size=SIZE], tier(A,B)"},
        {OptionId::io, "aio", "io (flag --x): 'aio' is unknown; allowed is auto, uring or sync"},
    };
    for (const auto& [id, value, expected] : cases) {
        const std::string text = error_text({{id, value, "flag --x"}});
        EXPECT_NE(text.find(expected), std::string::npos) << text;
    }
    setenv("HANARE_BLOCK", "3K", 1);
    EXPECT_EQ(error_text(),
              "block (environment HANARE_BLOCK): '3K' is not a power of two; allowed is "
              "auto or a power of two from 4K to 4M");
}

TEST_F(OptionsTest, BadValueIsAnErrorEvenWhenItLoses) {
    setenv("HANARE_BLOCK", "junk", 1);
    const std::string text = error_text({{OptionId::block_bytes, "1M", "flag --block"}});
    EXPECT_NE(text.find("environment HANARE_BLOCK"), std::string::npos) << text;
}

TEST_F(OptionsTest, UnknownVariablesAreReportedWithTheNearestName) {
    setenv("HANARE_BLOK", "1M", 1);
    setenv("HANARE_SOMETHING_ELSE", "1", 1);
    const Result<Options> options = load_options();
    ASSERT_TRUE(options.has_value());
    ASSERT_EQ(options->warnings.size(), 2u);
    EXPECT_EQ(options->warnings[0],
              "the environment variable 'HANARE_BLOK' is unknown and has no effect; "
              "did you mean 'HANARE_BLOCK'?");
    EXPECT_EQ(options->warnings[1],
              "the environment variable 'HANARE_SOMETHING_ELSE' is unknown and has no effect");
}

TEST_F(OptionsTest, TheCommonPrefixMakesNoVariableNear) {
    const struct {
        const char* name;
        const char* suggestion;
    } cases[] = {{"HANARE_ENGIN", "; did you mean 'HANARE_ENGINE'?"},
                 {"HANARE_READAHEAD", "; did you mean 'HANARE_READ_AHEAD'?"},
                 {"HANARE_CONFG", "; did you mean 'HANARE_CONFIG'?"},
                 {"HANARE_FOO", ""},
                 {"HANARE_LENGTH", ""},
                 {"HANARE_", ""}};
    for (const auto& [name, suggestion] : cases) {
        setenv(name, "x", 1);
        const Result<Options> options = load_options();
        unsetenv(name);
        ASSERT_TRUE(options.has_value());
        ASSERT_EQ(options->warnings.size(), 1u) << name;
        EXPECT_EQ(options->warnings[0], "the environment variable '" + std::string(name) +
                                            "' is unknown and has no effect" + suggestion);
    }
}

TEST_F(OptionsTest, VariablesOfBuildAndTestsAreNoNoise) {
    for (const char* name :
         {"HANARE_BINARY", "HANARE_TEST_SEED", "HANARE_TEST_SANITIZER", "HANARE_NO_BOOTSTRAP",
          "HANARE_OS_RELEASE", "HANARE_STRESS_WRITES", "HANARE_FUZZ_ARTIFACTS", "HANARE_RUN_PAGE",
          "HANARE_CC", "HANARE_CXX", "HANARE_FC", "HANARE_SPACE", "HANARE_SPACE_TASK",
          "HANARE_SPACE_TASKS", "HANARE_SPACE_VERBOSE", "HANARE_SPACE_MAPPINGS"}) {
        setenv(name, "1", 1);
    }
    const Result<Options> options = load_options();
    ASSERT_TRUE(options.has_value());
    EXPECT_TRUE(options->warnings.empty()) << options->warnings.front();
}

TEST_F(OptionsTest, FileErrorsNameFileAndLine) {
    const std::string path = config_file("block = '64K'\n\nblok = 3\n");
    EXPECT_EQ(error_text(), "file " + path + ":3: unknown option 'blok'; did you mean 'block'?");
    const std::string bad = config_file("block = \n");
    EXPECT_TRUE(error_text().starts_with("file " + bad + ":1: not valid TOML: ")) << error_text();
    config_file("read_ahead = 1.5\n");
    EXPECT_NE(
        error_text().find(":1: the value of 'read_ahead' is neither text, nor a whole number"),
        std::string::npos);
    config_file("[pool]\nblock = '64K'\n");
    EXPECT_NE(error_text().find(":1: a table or an array is not allowed"), std::string::npos);
    config_file("block = 3\n");
    EXPECT_NE(error_text().find("'3' is not a power of two"), std::string::npos);
}

TEST_F(OptionsTest, TheNamedFileMustExist) {
    setenv("HANARE_CONFIG", "/nonexistent/hanare.toml", 1);
    EXPECT_NE(error_text().find("/nonexistent/hanare.toml: No such file"), std::string::npos);
    setenv("HANARE_CONFIG", "", 1);  // no file at all
    EXPECT_TRUE(load_options().has_value());
    setenv("HANARE_CONFIG", "/", 1);
    EXPECT_NE(error_text().find("cannot read the configuration file /"), std::string::npos);
    setenv("HANARE_CONFIG", "/dev/zero", 1);
    EXPECT_NE(error_text().find("exceeds 1 MiB"), std::string::npos);
}

TEST_F(OptionsTest, LibraryTakesStoreFromTmpdir) {
    setenv("TMPDIR", "/some/where", 1);
    const Result<Options> options = load_options();
    ASSERT_TRUE(options.has_value());
    EXPECT_EQ(options->store, "file:/some/where");
    unsetenv("TMPDIR");
}

TEST_F(OptionsTest, TmpdirIsTakenLiterally) {
    for (const char* directory : {"/odd?size=1G", "/odd?directory", "/%3F%25%", "/a b?", "?"}) {
        setenv("TMPDIR", directory, 1);
        const Result<Options> options = load_options();
        ASSERT_TRUE(options.has_value()) << options.error().text;
        const Result<StoreSpec> spec = parse_store_spec(options->store);
        ASSERT_TRUE(spec.has_value()) << spec.error().text;
        EXPECT_EQ(spec->directory, directory);
        EXPECT_EQ(spec->size_bytes, 0u);
        EXPECT_EQ(note(*options, OptionId::store),
                  "auto: directory " + std::string(directory) + ", from $TMPDIR");
    }
    unsetenv("TMPDIR");
}

TEST_F(OptionsTest, NotesSayWhichDirectoryIsTaken) {
    const auto noted = [](const char* store) {
        const Result<Options> options = load_options({{OptionId::store, store, "flag --store"}});
        return options ? note(*options, OptionId::store) : options.error().text;
    };
    EXPECT_EQ(noted("auto"), "auto: directory /var/tmp, $TMPDIR is not set");
    EXPECT_EQ(noted("file:"), "directory /var/tmp, $TMPDIR is not set");
    EXPECT_EQ(noted("file:/scratch"), "");
    setenv("TMPDIR", "", 1);
    EXPECT_EQ(noted("auto"), "auto: directory /var/tmp, $TMPDIR is empty");
    setenv("TMPDIR", "/some/where", 1);
    EXPECT_EQ(noted("file:?size=1G"), "directory /some/where, from $TMPDIR");
    unsetenv("TMPDIR");
}

// What `hanare info` prints can be given back.
TEST_F(OptionsTest, EveryPrintedValueParsesToItself) {
    const Result<Options> options = load_options();
    ASSERT_TRUE(options.has_value());
    Overrides overrides;
    for (const OptionRow& row : option_rows()) {
        overrides.push_back({row.id, value_text(*options, row.id), "flag " + row.flag});
    }
    const Result<Options> again = load_options(overrides);
    ASSERT_TRUE(again.has_value()) << again.error().text;
    for (const OptionRow& row : option_rows()) {
        EXPECT_EQ(value_text(*again, row.id), value_text(*options, row.id)) << row.key;
    }
    EXPECT_EQ(again->local_bytes, options->local_bytes);
}

TEST_F(OptionsTest, NamesFollowTheKey) {
    const OptionRow& row = option_rows()[static_cast<size_t>(OptionId::read_ahead_blocks)];
    EXPECT_EQ(row.key, "read_ahead");
    EXPECT_EQ(row.environment, "HANARE_READ_AHEAD");
    EXPECT_EQ(row.flag, "--read-ahead");
    EXPECT_EQ(row.allowed, "a number from 0 to 1024");
    EXPECT_EQ(option_rows().size(), kOptionCount);
}

TEST(ExactSize, IsShortAndExact) {
    EXPECT_EQ(exact_size(1), "1");
    EXPECT_EQ(exact_size(4097), "4097");
    EXPECT_EQ(exact_size(256 * kKiB), "256K");
    EXPECT_EQ(exact_size(3 * kGiB), "3G");
    EXPECT_EQ(exact_size(5 * kMiB + kKiB), "5121K");
}

}  // namespace
}  // namespace hanare::config
