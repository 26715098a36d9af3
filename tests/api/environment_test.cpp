// SPDX-License-Identifier: Apache-2.0
//
// Less than a root shell on a bare machine: an ordinary user, and seccomp filters as containers
// have them.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBytes = 48 * kBlock;

// From now on this system call fails with EPERM.
bool refuse_system_call(uint32_t number) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

API_TEST_SCENARIO(without_standard_descriptors) {
    const int errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    for (int number = 0; number <= STDERR_FILENO; ++number) close(number);
    int taken = 0;
    {
        FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes, 8);
        uint64_t* const words = pool.alloc_words(kBytes);
        fill(words, kBytes, 1);
        must(hanare_flush(pool.get(), nullptr, 0));
        for (int number = 0; number <= STDERR_FILENO; ++number) {
            taken += fcntl(number, F_GETFD) != -1;
        }
        taken += mismatches(words, kBytes, 1) != 0;
    }
    dup2(errors, STDERR_FILENO);
    SCENARIO_CHECK(taken == 0);
    return 0;
}

class DescriptorTest : public EngineTest {};
API_TEST_WITH_ENGINES(DescriptorTest);

TEST_P(DescriptorTest, ClosedStandardOnesAreNotTaken) {
    const Outcome outcome = run_scenario("without_standard_descriptors", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

class SeccompTest : public EngineTest {};
API_TEST_WITH_ENGINES(SeccompTest);

API_TEST_SCENARIO(without_io_uring) {
    setenv("HANARE_LOG_LEVEL", "info", 1);
    SCENARIO_CHECK(refuse_system_call(SYS_io_uring_setup));
    FarPool pool({arguments[0].c_str(), kBlock}, kFramesMin, kBytes, 8);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    must(hanare_flush(pool.get(), nullptr, 0));
    SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
    SCENARIO_CHECK(pool.stats().prefetch_reads > 0);
    return 0;
}

TEST_P(SeccompTest, WorksWithoutIoUring) {
    const Outcome outcome = run_scenario("without_io_uring", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_NE(outcome.errors.find("io_uring refused: Operation not permitted"), std::string::npos)
        << outcome.errors;
}

// Root gets it from /dev/userfaultfd for engine thread; others: ThreadEngineIsRefusedInOneLine.
bool needs_userfaultfd(const std::string& engine) {
    return engine != "segv-remap" && engine != "thread";
}

API_TEST_SCENARIO(without_userfaultfd) {
    SCENARIO_CHECK(refuse_system_call(SYS_userfaultfd));
    const sys::testing::TemporaryDirectory directory;
    PoolConfig config;
    config.engine = arguments[0];
    config.store = "file:" + directory.path();
    config.options.local_bytes = 16 * kMiB;
    hanare_pool* pool = nullptr;
    SCENARIO_CHECK(fails_with(HANARE_STATUS_NOT_SUPPORTED,
                              {"userfaultfd", "refused", "Operation not permitted"},
                              hanare_pool_open(config.c_options(), &pool)));
    SCENARIO_CHECK(pool == nullptr);
    return 0;
}

TEST_P(SeccompTest, SaysThatUserfaultfdIsRefused) {
    if (!needs_userfaultfd(GetParam())) {
        GTEST_SKIP() << GetParam() << " does without the system call";
    }
    const Outcome outcome = run_scenario("without_userfaultfd", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

// As a container's default profile does.
bool refuse_what_containers_do() {
    return refuse_system_call(SYS_userfaultfd) && refuse_system_call(SYS_io_uring_setup);
}

API_TEST_SCENARIO(auto_in_a_container) {
    setenv("HANARE_LOG_LEVEL", "info", 1);
    SCENARIO_CHECK(refuse_what_containers_do());
    SCENARIO_CHECK(geteuid() != 0 || sys::testing::become_nobody());
    SCENARIO_CHECK(setenv("TMPDIR", arguments[0].c_str(), 1) == 0);
    FarPool pool({"auto", kBlock}, kFramesMin, kBytes, 8);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
    SCENARIO_CHECK(pool.stats().write_backs > 0 && pool.stats().read_bytes > 0);
    return 0;
}

class ContainerTest : public testing::Test {
protected:
    // Where the ordinary user may write.
    void SetUp() override {
        if (geteuid() != 0) return;
        ASSERT_EQ(chown(directory_.path().c_str(), sys::testing::kNobody, sys::testing::kNobody),
                  0);
    }
    sys::testing::TemporaryDirectory directory_;
};

TEST_F(ContainerTest, AutomaticChoiceFindsWhatWorks) {
    const Outcome outcome = run_scenario("auto_in_a_container", {directory_.path()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_NE(outcome.errors.find("engine segv-remap"), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("io_uring refused: Operation not permitted"), std::string::npos)
        << outcome.errors;
}

API_TEST_SCENARIO(thread_in_a_container) {
    SCENARIO_CHECK(refuse_what_containers_do());
    SCENARIO_CHECK(geteuid() != 0 || sys::testing::become_nobody());
    SCENARIO_CHECK(setenv("TMPDIR", arguments[0].c_str(), 1) == 0);
    if (access("/dev/userfaultfd", R_OK | W_OK) == 0) {
        std::fprintf(stderr, "/dev/userfaultfd is open to everybody\n");
        return kScenarioSkipped;
    }
    const std::string refusal = engine_refusal("thread");
    SCENARIO_CHECK(refusal.find("userfaultfd for system calls is refused") != std::string::npos);
    SCENARIO_CHECK(refusal.find("Operation not permitted") != std::string::npos);
    SCENARIO_CHECK(refusal.find('\n') == std::string::npos);
    return 0;
}

TEST_F(ContainerTest, ThreadEngineIsRefusedInOneLine) {
    const Outcome outcome = run_scenario("thread_in_a_container", {directory_.path()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

API_TEST_SCENARIO(tests_as_nobody) {
    if (arguments.size() > 2) SCENARIO_CHECK(refuse_what_containers_do());
    SCENARIO_CHECK(geteuid() != 0 || sys::testing::become_nobody());
    SCENARIO_CHECK(setenv("TMPDIR", arguments[0].c_str(), 1) == 0);
    testing::GTEST_FLAG(filter) = arguments[1];
    int count = 1;
    char name[] = "api_test";
    char* argv[] = {name, nullptr};
    testing::InitGoogleTest(&count, argv);
    const int result = RUN_ALL_TESTS();
    SCENARIO_CHECK(testing::UnitTest::GetInstance()->successful_test_count() > 20);
    return result;
}

// Scenarios are programs of their own, which an ordinary user must be able to load.
bool others_may_load_the_library() {
    if (geteuid() != 0) return true;
    Dl_info library = {};
    if (dladdr(reinterpret_cast<void*>(hanare_pool_open), &library) == 0) return false;
    const std::string path = library.dli_fname;
    return sys::testing::run_in_child([&]() -> std::string {
               if (!sys::testing::become_nobody()) return "still root";
               return access(path.c_str(), R_OK) == 0 ? "" : "closed";
           })
        .empty();
}

TEST_F(ContainerTest, TestsPassThere) {
    std::string tests =
        "*DataTest.*segv_remap_[46]*:*AdviceTest.*segv*:*PinTest.*segv*:*SystemCallTest.*segv*:"
        "*RegionsTest.*segv*:*FlushTest.*segv*";
    if (others_may_load_the_library()) {
        tests += ":*ThreadsTest.*segv*:*ForkTest.*segv*";
    } else {
        std::puts("without ThreadsTest and ForkTest: the build directory is closed to others");
    }
    const Outcome outcome =
        run_scenario("tests_as_nobody", {directory_.path(), tests, "in a container"});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

using OrdinaryUserTest = ContainerTest;

TEST_F(OrdinaryUserTest, TheBasicTestsPass) {
    const Outcome outcome =
        run_scenario("tests_as_nobody", {directory_.path(),
                                         "DataTest.*_4K:DataTest.*_256K:AdviceTest.*:PinTest.*:"
                                         "SystemCallTest.*:-*.ThreadsThatPin*"});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
