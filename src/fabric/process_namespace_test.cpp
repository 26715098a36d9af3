// SPDX-License-Identifier: Apache-2.0
//
// Processes of one machine that do not know each other by the same numbers: nothing goes past the
// target's thread, and what goes there is right.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "fabric/fifo.hpp"
#include "fabric/local_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/test_calls.hpp"
#include "sys/test_support.hpp"

namespace hanare::fabric {
namespace {

constexpr size_t kPrivateBytes = 100'000;
const std::string kRefused = "refused";

struct Told {
    Capability shared, queue, foreign;
};

std::string address_for(pid_t process) { return "@hanare-namespaces-" + std::to_string(process); }

// Exposes memory of a file, a queue and memory of no file, and serves until it is killed.
[[noreturn]] void serve(const std::string& address, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const SharedBytes memory(4096);
    const SharedBytes queue_memory(8192);
    Fifo::format(queue_memory.all());
    const std::vector<std::byte> own(kPrivateBytes, std::byte{5});
    ExposedRegions regions;
    const auto expose = [&](std::span<std::byte> bytes, Rights rights, sys::FileDescriptor file) {
        return regions.capability(regions.expose(bytes, rights, std::move(file)).value(), rights)
            .value();
    };
    const Told told = {
        expose(memory.all(), kRead | kWrite, memory.file()),
        expose(queue_memory.all(), kPush | kPop, queue_memory.file()),
        expose({const_cast<std::byte*>(own.data()), own.size()}, kRead, {}),
    };
    const auto service = TcpService::open({.host = {}, .local_address = address}, regions).value();
    if (write(out, &told, sizeof told) != sizeof told) _exit(1);
    service->run();
    _exit(0);
}

std::string use(const std::string& address, const Told& told, bool may_attach) {
    const auto link = LocalLink::connect({.address = address, .timeout_ms = 5000}).value();
    std::vector<std::byte> data(64, std::byte{9});
    std::vector<std::byte> seen(64);
    std::vector<std::byte> foreign(kPrivateBytes);
    // Far more often than attaching takes where it is possible.
    for (int i = 0; i < 200; ++i) {
        if (run(*link, Put(told.shared, 0, data)) != HANARE_STATUS_OK ||
            run(*link, Get(told.shared, 0, seen)) != HANARE_STATUS_OK || seen != data) {
            return "wrong put or get";
        }
        if (run(*link, Push(told.queue, data)) != HANARE_STATUS_OK ||
            run(*link, Pop(told.queue, seen)) != HANARE_STATUS_OK || seen != data) {
            return "wrong push or pop";
        }
        foreign.assign(foreign.size(), std::byte{});
        if (run(*link, Get(told.foreign, 0, foreign)) != HANARE_STATUS_OK ||
            foreign != std::vector<std::byte>(kPrivateBytes, std::byte{5})) {
            return "wrong foreign memory";
        }
    }
    const uint64_t end_ns = sys::now_ns() + 5000 * kNsPerMs;
    bool is_attached = false;
    do {
        static_cast<void>(run(*link, Get(told.shared, 0, seen)));
        is_attached = link->is_attached(told.shared);
    } while (may_attach && !is_attached && sys::now_ns() < end_ns);
    return is_attached == may_attach ? "" : "attached or not, and should not or be so";
}

// Whoever is started from now on is in a namespace of its own.
bool leave_namespace() {
    return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

std::string in_child_of_this(const std::function<std::string()>& act) {
    return sys::testing::run_in_child(act);
}

// A target that is started first and, if so, in a namespace of its own.
std::string with_target(bool in_new_namespace, const std::function<std::string(Told)>& act) {
    const std::string address = address_for(getpid());
    int ends[2];
    if (pipe(ends) != 0) return "pipe failed";
    if (in_new_namespace && !leave_namespace()) return kRefused;
    const pid_t target = fork();
    if (target == 0) serve(address, ends[1]);
    close(ends[1]);
    Told told;
    const bool is_told = read(ends[0], &told, sizeof told) == static_cast<ssize_t>(sizeof told);
    const std::string wrong = is_told ? act(told) : "the target does not serve";
    kill(target, SIGKILL);
    waitpid(target, nullptr, 0);
    return wrong;
}

TEST(ProcessNamespaces, TheSame) {
    const std::string wrong = in_child_of_this([] {
        const std::string address = address_for(getpid());
        return with_target(false, [&](const Told& told) { return use(address, told, true); });
    });
    EXPECT_EQ(wrong, "");
}

// The source sees the target, by a number that the target does not know.
TEST(ProcessNamespaces, TheTargetIsInAnInnerOne) {
    const std::string wrong = in_child_of_this([] {
        const std::string address = address_for(getpid());
        return with_target(true, [&](const Told& told) { return use(address, told, false); });
    });
    if (wrong == kRefused) GTEST_SKIP() << "new namespaces of processes are not allowed here";
    EXPECT_EQ(wrong, "");
}

// The source does not see the target.
TEST(ProcessNamespaces, TheSourceIsInAnInnerOne) {
    const std::string wrong = in_child_of_this([] {
        const std::string address = address_for(getpid());
        return with_target(false, [&](const Told& told) {
            if (!leave_namespace()) return kRefused;
            return in_child_of_this([&] { return use(address, told, false); });
        });
    });
    if (wrong == kRefused) GTEST_SKIP() << "new namespaces of processes are not allowed here";
    EXPECT_EQ(wrong, "");
}

// The kernel names who has listened, but a child of it serves.
TEST(ProcessNamespaces, AChildServes) {
    const std::string wrong = in_child_of_this([]() -> std::string {
        const std::string address = address_for(getpid());
        std::vector<std::byte> own(kPrivateBytes, std::byte{1});
        ExposedRegions regions;
        const Capability key =
            regions.capability(regions.expose(own, kRead).value(), kRead).value();
        const auto service =
            TcpService::open({.host = {}, .local_address = address}, regions).value();
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            own.assign(own.size(), std::byte{2});
            service->run();
            _exit(0);
        }
        const auto link = LocalLink::connect({.address = address, .timeout_ms = 5000}).value();
        std::vector<std::byte> seen(kPrivateBytes);
        std::string wrong_bytes;
        for (int i = 0; i < 200 && wrong_bytes.empty(); ++i) {
            if (run(*link, Get(key, 0, seen)) != HANARE_STATUS_OK || seen[0] != std::byte{2}) {
                wrong_bytes = "memory of who does not serve";
            }
        }
        link->end();
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        return wrong_bytes;
    });
    EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace hanare::fabric
