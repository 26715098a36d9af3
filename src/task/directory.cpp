// SPDX-License-Identifier: Apache-2.0
#include "task/directory.hpp"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <span>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/futex.hpp"
#include "sys/lock.hpp"

namespace hanare::task {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// The root, which gives back the turn of a task that has been killed, wakes who waits.
constexpr int kLookEveryMs = 100;
constexpr uint64_t kLookAgainMs = 1000;
// As long as it takes to copy much more than an operation copies at once.
constexpr uint64_t kVisitNsMax = 200 * kNsPerMs;
constexpr uint32_t kYieldUs = 20;

// Of the threads of one task.
std::mutex threads;

}  // namespace

// One task changes entries at a time.
class Directory::Turn {
public:
    Turn(Directory& directory, uint32_t task) : directory_(directory), threads_(threads) {
        uint32_t holder = 0;
        while (!directory_.turn_.compare_exchange_strong(holder, task + 1)) {
            sys::futex_wait(directory_.turn_, holder, kLookEveryMs);
            holder = 0;
        }
    }
    ~Turn() {
        directory_.turn_.store(0);
        sys::futex_wake(directory_.turn_, 1);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    Directory& directory_;
    const std::lock_guard<std::mutex> threads_;
};

Result<Directory*> Directory::make() {
    const size_t bytes = round_up(sizeof(Directory), kOsPageBytes);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
        return fail_errno(HANARE_STATUS_NO_MEMORY, errno, "the directory of a space");
    }
    // Zeros are the beginning of all of it, and entries that nobody uses stay untouched.
    auto* const directory = static_cast<Directory*>(memory);
    directory->magic_ = kMagic;
    return directory;
}

Directory* Directory::here() noexcept {
    auto* const directory = reinterpret_cast<Directory*>(getauxval(kAuxiliaryType));
    return directory != nullptr && directory->magic_ == kMagic ? directory : nullptr;
}

std::optional<uint32_t> Directory::task_of(uint32_t process) const noexcept {
    const auto found = std::ranges::find_if(
        processes_, [process](const auto& each) { return each.load() == process; });
    if (process == 0 || found == processes_.end()) return std::nullopt;
    return static_cast<uint32_t>(found - processes_.begin());
}

void Directory::take_back(Entry& entry) noexcept {
    const uint32_t version = entry.version.load();
    if (version % 2 != 0) entry.version.store(version + 1);
    entry.owner.store(0);
}

bool Directory::is_visited(uint32_t task, uint32_t what) const noexcept {
    const uint64_t value = (uint64_t{task} + 1) << kTargetShift | what;
    return std::ranges::any_of(visits_, [value](const Visits& visits) {
        return std::ranges::any_of(visits.targets,
                                   [value](const auto& target) { return target.load() == value; });
    });
}

bool Directory::is_visit(const Visits& visits, uint32_t task) noexcept {
    return std::ranges::any_of(visits.targets, [task](const auto& target) {
        return target.load() >> kTargetShift == uint64_t{task} + 1;
    });
}

bool Directory::is_visited(uint32_t task) const noexcept {
    return std::ranges::any_of(visits_,
                               [task](const Visits& visits) { return is_visit(visits, task); });
}

// Those that have ended as well, and that the root has not come to yet, copy no more.
bool Directory::is_visited_by_living(uint32_t task) const noexcept {
    for (uint32_t visitor = 0; visitor < kTasksMax; ++visitor) {
        if (!is_visit(visits_[visitor], task)) continue;
        const uint32_t process = processes_[visitor].load();
        siginfo_t ended = {};
        if (process != 0 && (waitid(P_PID, process, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                             ended.si_pid == 0)) {
            return true;
        }
    }
    return false;
}

void Directory::close(uint32_t task) noexcept {
    processes_[task].store(0);
    take_back_names(task);
    const uint64_t end_ns = sys::now_ns() + kVisitNsMax;
    while (is_visited_by_living(task) && sys::now_ns() < end_ns) sys::yield_for_us(kYieldUs);
}

void Directory::take_back_names(uint32_t task) noexcept {
    for (Entry& entry : std::span(entries_).first(used_.load())) {
        if (entry.owner.load() == task + 1) take_back(entry);
    }
}

void Directory::forget(uint32_t task) noexcept {
    for (std::atomic<uint64_t>& target : visits_[task].targets) target.store(0);
    processes_[task].store(0);
    take_back_names(task);
    uint32_t holder = task + 1;
    if (turn_.compare_exchange_strong(holder, 0)) sys::futex_wake(turn_, 1);
}

Result<Directory::Name> Directory::as_words(std::string_view name) {
    if (name.empty() || name.size() > kNameBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "a name of %zu bytes; allowed are 1 to %zu",
                    name.size(), kNameBytesMax);
    }
    Name words = {};
    std::memcpy(words.data(), name.data(), name.size());
    return words;
}

bool Directory::has_name(const Entry& entry, const Name& name) noexcept {
    return std::ranges::equal(entry.name, name, {}, [](const auto& word) { return word.load(); });
}

Directory::Entry* Directory::published(const Name& name) noexcept {
    const auto entries = std::span(entries_).first(used_.load());
    const auto found = std::ranges::find_if(entries, [&name](const Entry& entry) {
        return entry.version.load() % 2 != 0 && has_name(entry, name);
    });
    return found == entries.end() ? nullptr : &*found;
}

Result<void> Directory::publish(uint32_t task, std::string_view name, uint64_t address) {
    HANARE_TRY_ASSIGN(const Name words, as_words(name));
    {
        const Turn turn(*this, task);
        if (published(words) != nullptr) {
            return fail(HANARE_STATUS_BUSY, "%.*s is published already",
                        static_cast<int>(name.size()), name.data());
        }
        const auto free = std::ranges::find_if(
            entries_, [](const Entry& entry) { return entry.owner.load() == 0; });
        if (free == entries_.end()) {
            return fail(HANARE_STATUS_LIMIT, "a space has %u names at most", kNamesMax);
        }
        const auto place = static_cast<uint32_t>(free - entries_.begin());
        used_.store(std::max(used_.load(), place + 1));
        free->owner.store(task + 1);
        std::ranges::copy(words, free->name.begin());
        free->address.store(address);
        free->version.fetch_add(1);
    }
    publications_.fetch_add(1);
    sys::futex_wake_all(publications_);
    return {};
}

Result<void> Directory::withdraw(uint32_t task, std::string_view name) {
    HANARE_TRY_ASSIGN(const Name words, as_words(name));
    const Turn turn(*this, task);
    Entry* const entry = published(words);
    if (entry == nullptr || entry->owner.load() != task + 1) {
        return fail(HANARE_STATUS_NOT_FOUND, "this task has not published %.*s",
                    static_cast<int>(name.size()), name.data());
    }
    take_back(*entry);
    return {};
}

std::optional<uint64_t> Directory::look_up(const Name& name) const noexcept {
    for (const Entry& entry : std::span(entries_).first(used_.load())) {
        const uint32_t version = entry.version.load();
        if (version % 2 == 0 || !has_name(entry, name)) continue;
        const uint64_t address = entry.address.load();
        if (entry.version.load() == version) return address;
    }
    return std::nullopt;
}

Result<uint64_t> Directory::find(std::string_view name, int timeout_ms) const {
    HANARE_TRY_ASSIGN(const Name words, as_words(name));
    const uint64_t end_ns =
        sys::now_ns() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * kNsPerMs;
    for (;;) {
        const uint32_t publications = publications_.load();
        if (const auto address = look_up(words)) return *address;
        const uint64_t now_ns = sys::now_ns();
        if (timeout_ms >= 0 && now_ns >= end_ns) {
            return fail(HANARE_STATUS_TIMEOUT, "nobody has published %.*s",
                        static_cast<int>(name.size()), name.data());
        }
        // Who publishes may end before it wakes others.
        const uint64_t left_ms = timeout_ms < 0 ? kLookAgainMs : (end_ns - now_ns) / kNsPerMs + 1;
        sys::futex_wait(publications_, publications,
                        static_cast<int>(std::min(left_ms, kLookAgainMs)));
    }
}

}  // namespace hanare::task
