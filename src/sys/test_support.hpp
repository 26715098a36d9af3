// SPDX-License-Identifier: Apache-2.0
//
// What tests of several folders need from Linux: directories that vanish, children that run a check
// under other rights, and a seed that can be replayed.  Included by *_test.cpp only.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <grp.h>
#include <random>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/prng.hpp"

namespace hanare::sys::testing {

inline constexpr unsigned kNobody = 65534;

// HANARE_TEST_SEED, or a new one; printed, so that a failure can be repeated.
inline uint64_t test_seed() {
    const char* const text = std::getenv("HANARE_TEST_SEED");
    const uint64_t seed =
        text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
    std::printf("HANARE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    return seed;
}

// Paths that a signal which ends the program removes, the newest first.
class Leftovers {
public:
    static size_t add(const std::string& path) {
        install_handlers();
        for (size_t i = 0; i < paths_.size(); ++i) {
            if (paths_[i][0] == '\0' && path.size() < paths_[i].size()) {
                std::memcpy(paths_[i].data(), path.c_str(), path.size() + 1);
                return i;
            }
        }
        std::fprintf(stderr, "no room to remember %s\n", path.c_str());
        std::abort();
    }
    static void remove(size_t slot) {
        remove_path(paths_[slot].data());
        paths_[slot][0] = '\0';
    }

private:
    static void remove_path(const char* path) {
        unlink(path);
        rmdir(path);
    }
    static void on_signal(int number) {
        for (size_t i = paths_.size(); i-- > 0;) remove_path(paths_[i].data());
        std::signal(number, SIG_DFL);
        std::raise(number);
    }
    static void install_handlers() {
        static const bool installed = [] {
            for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, on_signal);
            return true;
        }();
        static_cast<void>(installed);
    }

    static inline std::array<std::array<char, 256>, 16> paths_ = {};
};

// An empty directory on a real disk ($TMPDIR, else /var/tmp).
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        const char* const parent = std::getenv("TMPDIR");
        const bool is_set = parent != nullptr && *parent != '\0';
        // The process is named, so that nobody takes it for something left behind.
        path_ = std::string(is_set ? parent : "/var/tmp") + "/hanare-test-" +
                std::to_string(getpid()) + "-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr) {
            std::perror(path_.c_str());
            std::abort();
        }
        slot_ = Leftovers::add(path_);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() { Leftovers::remove(slot_); }

    const std::string& path() const { return path_; }

    size_t entry_count() const {
        DIR* const directory = opendir(path_.c_str());
        size_t count = 0;
        while (const dirent* entry = readdir(directory)) {
            if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
                ++count;
        }
        closedir(directory);
        return count;
    }

private:
    std::string path_;
    size_t slot_ = 0;
};

// A child process that runs `check`, which returns "" for success, else what is wrong.  It dies
// with the thread that made it.  Made while no other thread starts or allocates: AddressSanitizer's
// child would wait for that thread's locks for ever.
class CheckedChild {
public:
    explicit CheckedChild(const std::function<std::string()>& check) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            std::perror("pipe2");
            std::abort();
        }
        std::fflush(nullptr);
        child_ = fork();
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const std::string text = check();
            const bool told =
                write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
            _exit(told ? 0 : 1);
        }
        close(ends[1]);
        report_ = ends[0];
    }
    CheckedChild(const CheckedChild&) = delete;
    CheckedChild& operator=(const CheckedChild&) = delete;
    ~CheckedChild() {
        if (report_ >= 0) static_cast<void>(result());
    }

    // Waits for its end; once.
    std::string result() {
        std::string text;
        char part[256];
        for (ssize_t got = 0; (got = read(report_, part, sizeof part)) != 0;) {
            if (got > 0) text.append(part, static_cast<size_t>(got));
            if (got < 0 && errno != EINTR) break;
        }
        close(std::exchange(report_, -1));
        int status = 0;
        while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFSIGNALED(status)) text += "child died of signal " + std::to_string(WTERMSIG(status));
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) text += "child could not report";
        return text;
    }

private:
    pid_t child_ = -1;
    int report_ = -1;
};

inline std::string run_in_child(const std::function<std::string()>& check) {
    return CheckedChild(check).result();
}

// In a child: gives up root for good.
inline bool become_nobody() {
    return setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
           setresuid(kNobody, kNobody, kNobody) == 0;
}

// In a child: mounts made from now on are seen by this process only and end with it.
inline bool enter_private_mounts() {
    return unshare(CLONE_NEWNS) == 0 &&
           mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Whether a child may mount file systems for itself; containers often refuse.
inline bool private_mounts_work() {
    return run_in_child([] {
               return enter_private_mounts() &&
                              mount("none", "/var/tmp", "tmpfs", 0, "size=1m") == 0
                          ? std::string()
                          : std::string("refused");
           })
        .empty();
}

}  // namespace hanare::sys::testing
