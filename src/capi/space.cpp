// SPDX-License-Identifier: Apache-2.0
//
// hanare_space_*: spaces that this process has, and what it does as a task of one.
#include "hanare/space.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/arguments.hpp"
#include "capi/guard.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/local_socket.hpp"
#include "sys/program_file.hpp"
#include "task/directory.hpp"
#include "task/request.hpp"
#include "task/root_connection.hpp"

struct hanare_space {
    struct Task {
        pid_t process = 0;
        hanare::sys::FileDescriptor socket;
    };

    std::string address;
    hanare::sys::FileDescriptor keeper;  // the root lives as long as this is open
    const pid_t owner = getpid();
    std::mutex lock;
    std::vector<std::shared_ptr<Task>> tasks;    // not waited for yet
    std::vector<hanare::sys::EventFd*> waiters;  // for any: told of tasks that begin
};

namespace hanare::capi {
namespace {

namespace fs = std::filesystem;
using SpaceTask = std::shared_ptr<hanare_space::Task>;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int kAnswerMs = 30'000;
constexpr int kLookEveryMs = 100;
constexpr uint64_t kEndMs = 10'000;
constexpr const char* kRootProgram = "hanare-space-root";

// Where it is installed, seen from this library, and where it is built.
Result<std::string> root_program() {
    Dl_info info = {};
    if (dladdr(reinterpret_cast<const void*>(&hanare_space_create), &info) == 0) {
        return fail(HANARE_STATUS_NOT_SUPPORTED, "nobody says where libhanare.so is");
    }
    std::error_code error;
    const fs::path directory = fs::absolute(info.dli_fname, error).parent_path();
    for (const char* const place : {HANARE_TOOLS_DIRECTORY, "cli", "."}) {
        const fs::path found = directory / place / kRootProgram;
        if (access(found.c_str(), X_OK) == 0) return found.string();
    }
    return fail(HANARE_STATUS_NOT_SUPPORTED,
                "%s is missing beside %.150s: built without a static C library, or not installed",
                kRootProgram, directory.c_str());
}

// Two spaces of a process differ, and so do those of processes.
std::string next_name() {
    static std::atomic<uint32_t> count{0};
    return "of-process-" + std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1));
}

Result<hanare_space*> create(const hanare_space_options* given) {
    HANARE_TRY(copy_options("hanare_space_create", given));
    HANARE_TRY_ASSIGN(const std::string program, root_program());
    auto space = std::make_unique<hanare_space>();
    space->address = task::address_of(next_name());
    HANARE_TRY_ASSIGN(sys::FileDescriptor listener, sys::listen_local(space->address));
    HANARE_TRY_ASSIGN(auto ends, sys::local_pair());
    space->keeper = std::move(ends[0]);
    HANARE_TRY(task::start_root(std::move(listener), std::move(ends[1]), program));
    // It answers, or there is none.
    HANARE_TRY(task::connect_root(space->address, {}));
    return space.release();
}

std::vector<std::string> texts(const char* const* given) {
    std::vector<std::string> all;
    for (; *given != nullptr; ++given) all.emplace_back(*given);
    return all;
}

// Absolute.
Result<std::string> path_of(const char* name) {
    const Result<std::string> found = sys::find_program(name);
    if (!found) {
        const hanare_status status =
            found.error().os_errno == EACCES ? HANARE_STATUS_PERMISSION : HANARE_STATUS_NOT_FOUND;
        return fail(status, "%s", found.error().text);
    }
    std::error_code error;
    const std::string path = fs::absolute(*found, error).string();
    if (error) return fail_errno(HANARE_STATUS_SYSTEM, error.value(), "%.150s", found->c_str());
    return path;
}

Result<task::StartOfProgram> start_of(const hanare_space_program* given) {
    HANARE_TRY_ASSIGN(const auto program, copy_options("hanare_space_spawn", given));
    if (program.path == nullptr)
        return std::unexpected(null_argument("hanare_space_spawn", "path"));
    task::StartOfProgram start;
    HANARE_TRY_ASSIGN(start.path, path_of(program.path));
    start.arguments = program.arguments != nullptr ? texts(program.arguments)
                                                   : std::vector<std::string>{program.path};
    start.environment = texts(program.environment != nullptr ? program.environment : environ);
    return start;
}

Error lost() { return fail(HANARE_STATUS_PEER_LOST, "the space has been killed").error(); }

Result<pid_t> spawn(hanare_space& space, const hanare_space_program* given) {
    HANARE_TRY_ASSIGN(task::StartOfProgram start, start_of(given));
    HANARE_TRY_ASSIGN(const auto request, task::Request::of_this_process(std::move(start)));
    auto socket = task::connect_root(space.address, {});
    if (!socket && socket.error().os_errno == ECONNREFUSED) return std::unexpected(lost());
    if (!socket && socket.error().os_errno == EAGAIN) {
        return fail(HANARE_STATUS_TIMEOUT, "the space does not answer");
    }
    if (!socket) return std::unexpected(socket.error());
    // A root that refuses closes its end, and says why before that.
    const Result<void> sent = task::send_request(*socket, request, kAnswerMs);
    if (!sent && sent.error().status != HANARE_STATUS_NOT_FOUND) {
        return std::unexpected(sent.error());
    }
    const auto answer = task::receive_answer(*socket, kAnswerMs);
    if (!answer) {
        const bool is_gone = answer.error().status == HANARE_STATUS_NOT_FOUND;
        return std::unexpected(is_gone ? lost() : answer.error());
    }
    if (answer->kind == task::Answer::Kind::kFull) {
        return fail(HANARE_STATUS_LIMIT,
                    "the space has all the mappings that vm.max_map_count allows");
    }
    if (answer->kind != task::Answer::Kind::kBegun) {
        return fail(static_cast<hanare_status>(answer->value), "%s", answer->text);
    }
    auto task = std::make_shared<hanare_space::Task>();
    task->process = answer->value;
    task->socket = std::move(*socket);
    const std::lock_guard guard(space.lock);
    space.tasks.push_back(std::move(task));
    for (sys::EventFd* const waiter : space.waiters) waiter->post();
    return answer->value;
}

// Those that a wait is about.
std::vector<SpaceTask> awaited(hanare_space& space, pid_t process) {
    const std::lock_guard guard(space.lock);
    std::vector<SpaceTask> some;
    std::ranges::copy_if(space.tasks, std::back_inserter(some), [process](const SpaceTask& each) {
        return process == 0 || each->process == process;
    });
    return some;
}

// Of who waits for any task: while it waits, others may begin.
class Waiter {
public:
    static Waiter begin(hanare_space& space, pid_t process) {
        if (process != 0) return Waiter(space, nullptr);
        auto begun = sys::EventFd::open();
        if (!begun) return Waiter(space, nullptr);
        return Waiter(space, std::make_unique<sys::EventFd>(std::move(*begun)));
    }
    Waiter(Waiter&& other) noexcept = default;
    Waiter& operator=(Waiter&&) = delete;
    ~Waiter() {
        if (begun_ == nullptr) return;
        const std::lock_guard guard(space_.lock);
        std::erase(space_.waiters, begun_.get());
    }

    // -1 where it waits for one task, or there are no more descriptors: it looks again then.
    int number() const noexcept { return begun_ != nullptr ? begun_->number() : -1; }
    void clear() noexcept {
        if (begun_ != nullptr) begun_->clear();
    }

private:
    Waiter(hanare_space& space, std::unique_ptr<sys::EventFd> begun)
        : space_(space), begun_(std::move(begun)) {
        if (begun_ == nullptr) return;
        const std::lock_guard guard(space_.lock);
        space_.waiters.push_back(begun_.get());
    }

    hanare_space& space_;
    std::unique_ptr<sys::EventFd> begun_;
};

// Null where none has ended; which it may do for somebody else meanwhile.
Result<SpaceTask> take_ended(hanare_space& space, const std::vector<SpaceTask>& some,
                             const Waiter& waiter, int left_ms) {
    std::vector<pollfd> entries;
    for (const SpaceTask& each : some) entries.push_back({each->socket.number(), POLLIN, 0});
    entries.push_back({waiter.number(), POLLIN, 0});
    if (poll(entries.data(), entries.size(), left_ms) < 0 && errno != EINTR) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "poll");
    }
    const std::lock_guard guard(space.lock);
    for (size_t i = 0; i < some.size(); ++i) {
        if (entries[i].revents == 0 || std::erase(space.tasks, some[i]) == 0) continue;
        return some[i];
    }
    return SpaceTask();
}

struct End {
    pid_t process = 0;
    int status = 0;
};

Result<End> wait(hanare_space& space, pid_t process, int timeout_ms) {
    const uint64_t end_ns =
        sys::now_ns() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * kNsPerMs;
    Waiter waiter = Waiter::begin(space, process);
    for (;;) {
        waiter.clear();
        const std::vector<SpaceTask> some = awaited(space, process);
        if (some.empty()) return fail(HANARE_STATUS_NOT_FOUND, "there is no such task to wait for");
        const uint64_t now_ns = sys::now_ns();
        const uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns + kNsPerMs - 1) / kNsPerMs : 0;
        int wait_ms = timeout_ms < 0 ? -1 : static_cast<int>(left_ms);
        if (process == 0 && waiter.number() < 0) {
            wait_ms = wait_ms < 0 ? kLookEveryMs : std::min(wait_ms, kLookEveryMs);
        }
        HANARE_TRY_ASSIGN(const SpaceTask ended, take_ended(space, some, waiter, wait_ms));
        if (ended != nullptr) {
            const auto answer = task::receive_answer(ended->socket, kAnswerMs);
            if (!answer) return std::unexpected(lost());
            return End{ended->process, answer->value};
        }
        if (timeout_ms >= 0 && left_ms == 0) {
            return fail(HANARE_STATUS_TIMEOUT, "no task has ended within %d ms", timeout_ms);
        }
    }
}

// The root closes its end once all tasks have ended.
Result<void> destroy(hanare_space* space) {
    const std::unique_ptr<hanare_space> owned(space);
    sys::end_sending(space->keeper);
    const uint64_t end_ns = sys::now_ns() + kEndMs * kNsPerMs;
    pollfd gone = {space->keeper.number(), POLLRDHUP, 0};
    for (uint64_t now_ns = sys::now_ns(); now_ns < end_ns; now_ns = sys::now_ns()) {
        const auto left_ms = static_cast<int>((end_ns - now_ns) / kNsPerMs + 1);
        if (poll(&gone, 1, left_ms) > 0) return {};
    }
    return fail(HANARE_STATUS_TIMEOUT, "the tasks of the space have not ended yet");
}

template <typename Body>
hanare_status on_space(const char* function, hanare_space* space, Body body) noexcept {
    if (space == nullptr) return report(null_argument(function, "space"));
    return guarded(function, [&]() -> Result<void> {
        if (space->owner != getpid()) {
            return fail(HANARE_STATUS_FORKED, "the space is the parent process's");
        }
        return body(*space);
    });
}

struct Here {
    task::Directory& directory;
    uint32_t task;
};

Result<Here> this_task() {
    task::Directory* const directory = task::Directory::here();
    const auto task =
        directory != nullptr ? directory->task_of(static_cast<uint32_t>(getpid())) : std::nullopt;
    if (!task) return fail(HANARE_STATUS_NOT_FOUND, "this process is no task of a space");
    return Here{*directory, *task};
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::guarded;
using hanare::capi::null_argument;
using hanare::capi::on_space;
using hanare::capi::report;
using hanare::capi::this_task;

extern "C" {

hanare_status hanare_space_create(const hanare_space_options* options, hanare_space** space) {
    if (space == nullptr) return report(null_argument(__func__, "space"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(*space, hanare::capi::create(options));
        return {};
    });
}

hanare_status hanare_space_spawn(hanare_space* space, const hanare_space_program* program,
                                 pid_t* process) {
    return on_space(__func__, space, [&](hanare_space& opened) -> Result<void> {
        if (program == nullptr || process == nullptr) {
            return std::unexpected(
                null_argument("hanare_space_spawn", program == nullptr ? "program" : "process"));
        }
        HANARE_TRY_ASSIGN(*process, hanare::capi::spawn(opened, program));
        return {};
    });
}

hanare_status hanare_space_wait(hanare_space* space, pid_t process, int timeout_ms, pid_t* ended,
                                int* wait_status) {
    return on_space(__func__, space, [&](hanare_space& opened) -> Result<void> {
        HANARE_TRY_ASSIGN(const auto end, hanare::capi::wait(opened, process, timeout_ms));
        if (ended != nullptr) *ended = end.process;
        if (wait_status != nullptr) *wait_status = end.status;
        return {};
    });
}

hanare_status hanare_space_destroy(hanare_space* space) {
    return on_space(__func__, space, [&](hanare_space& opened) -> Result<void> {
        return hanare::capi::destroy(&opened);
    });
}

hanare_status hanare_space_self(uint32_t* task) {
    if (task == nullptr) return report(null_argument(__func__, "task"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(const auto here, this_task());
        *task = here.task;
        return {};
    });
}

hanare_status hanare_space_publish(const char* name, const void* address) {
    if (name == nullptr) return report(null_argument(__func__, "name"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(const auto here, this_task());
        return here.directory.publish(here.task, name, reinterpret_cast<uint64_t>(address));
    });
}

hanare_status hanare_space_withdraw(const char* name) {
    if (name == nullptr) return report(null_argument(__func__, "name"));
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(const auto here, this_task());
        return here.directory.withdraw(here.task, name);
    });
}

hanare_status hanare_space_find(const char* name, int timeout_ms, void** address) {
    if (name == nullptr || address == nullptr) {
        return report(null_argument(__func__, name == nullptr ? "name" : "address"));
    }
    return guarded(__func__, [&]() -> Result<void> {
        HANARE_TRY_ASSIGN(const auto here, this_task());
        HANARE_TRY_ASSIGN(const uint64_t found, here.directory.find(name, timeout_ms));
        *address = reinterpret_cast<void*>(found);
        return {};
    });
}

}  // extern "C"
