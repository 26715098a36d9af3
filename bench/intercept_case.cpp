// SPDX-License-Identifier: Apache-2.0
#include "bench/intercept_case.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "sys/file.hpp"

namespace hanare::bench {

namespace {

using Clock = std::chrono::steady_clock;
using Unit = InterceptUnit;

constexpr size_t kSmallBytes = 4096;
constexpr size_t kPieceBytes = 16 * kKiB;  // of the program that makes many system calls
constexpr int kPieces = 64;
constexpr int kCallsBetweenLooks = 64;
constexpr size_t kWordsMax = 4 * kMiB / sizeof(uint64_t);  // of the program that computes

bool is_filled(const std::byte* memory, size_t bytes, std::byte value) {
    return memory[0] == value && std::memcmp(memory, memory + 1, bytes - 1) == 0;
}

}  // namespace

struct InterceptWork::State {
    std::byte* far = nullptr;
    size_t far_bytes = 0;
    sys::FileDescriptor zeros;    // /dev/zero
    sys::FileDescriptor nothing;  // /dev/null

    ~State() { std::free(far); }
    bool read_into(std::byte* memory, size_t bytes) const {
        return read(zeros.number(), memory, bytes) == static_cast<ssize_t>(bytes);
    }
    bool call(std::string_view name) const;
    bool compute() const;
    bool copy() const;
};

// Makes one call, and says whether the kernel did what it was asked for.
bool InterceptWork::State::call(std::string_view name) const {
    std::byte local[kSmallBytes];
    if (name == "getppid") return getppid() > 0;
    if (name == "read") return read_into(local, 1);
    if (name == "access") return access("/", F_OK) == 0;
    if (name == "poll") {
        pollfd polled = {.fd = zeros.number(), .events = POLLIN, .revents = 0};
        return poll(&polled, 1, 0) == 1;
    }
    if (name == "clock") {
        timespec time = {};
        return clock_gettime(CLOCK_MONOTONIC, &time) == 0 && time.tv_sec > 0;
    }
    if (name == "far_read") return read_into(far, 1);
    if (name == "far_read_4k") return read_into(far, kSmallBytes);
    auto* const parameters = reinterpret_cast<sched_param*>(far + kSmallBytes);
    parameters->sched_priority = -1;
    return sched_getparam(0, parameters) == 0 && parameters->sched_priority >= 0;
}

// Steps through memory at random, and adds up in order.
bool InterceptWork::State::compute() const {
    auto* const words = reinterpret_cast<uint64_t*>(far);
    const size_t count = std::min(far_bytes / sizeof(uint64_t), kWordsMax);
    constexpr int kSteps = 200'000;
    Prng random(1);
    uint64_t before = 0;
    for (size_t i = 0; i < count; ++i) before += words[i];
    for (int i = 0; i < kSteps; ++i) ++words[random.next() % count];
    uint64_t after = 0;
    for (size_t i = 0; i < count; ++i) after += words[i];
    return after - before == kSteps;
}

// As cat(1) does, with smaller pieces.
bool InterceptWork::State::copy() const {
    for (int piece = 0; piece < kPieces; ++piece) {
        std::byte* const memory = far + static_cast<size_t>(piece % 2) * kPieceBytes;
        if (!read_into(memory, kPieceBytes)) return false;
        if (write(nothing.number(), memory, kPieceBytes) != kPieceBytes) return false;
    }
    return true;
}

const std::vector<InterceptCase>& intercept_cases() {
    static const std::vector<InterceptCase> cases = {
        {"getppid", "a system call without memory", Unit::kPerCall, 10, 5},
        {"read", "read of 1 byte into the stack", Unit::kPerCall, 10, 5},
        {"access", "access of a path in the program", Unit::kPerCall, 10, 5},
        {"poll", "poll of one file, with a struct on the stack", Unit::kPerCall, 10, 5},
        {"clock", "clock_gettime, which is no system call", Unit::kPerCall, 10, 5},
        {"far_read", "read of 1 byte into far memory", Unit::kPerCall, 40, 20},
        {"far_read_4k", "read of 4 KiB into far memory", Unit::kPerCall, 40, 20},
        {"far_struct", "a struct in far memory, filled by the kernel", Unit::kPerCall, 40, 20},
        {"compute", "computing in far memory", Unit::kOfTheTime, 2, 1},
        {"copy", "reading and writing in pieces of 16 KiB", Unit::kOfTheTime, 5, 2},
    };
    return cases;
}

const InterceptCase* find_intercept_case(std::string_view name) {
    for (const InterceptCase& which : intercept_cases()) {
        if (which.name == name) return &which;
    }
    return nullptr;
}

InterceptWork::InterceptWork(std::unique_ptr<State> state) : state_(std::move(state)) {}
InterceptWork::InterceptWork(InterceptWork&&) noexcept = default;
InterceptWork::~InterceptWork() = default;

Result<InterceptWork> InterceptWork::prepare(size_t far_bytes) {
    auto state = std::make_unique<State>();
    state->far = static_cast<std::byte*>(std::malloc(far_bytes));
    state->far_bytes = far_bytes;
    if (state->far == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for the cases");
    std::memset(state->far, 1, far_bytes);
    state->zeros = sys::FileDescriptor(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    state->nothing = sys::FileDescriptor(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!state->zeros.is_open() || !state->nothing.is_open()) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot open /dev/zero and /dev/null");
    }
    if (!state->read_into(state->far, kSmallBytes) ||
        !is_filled(state->far, kSmallBytes, std::byte{0}) ||
        !is_filled(state->far + kSmallBytes, kSmallBytes, std::byte{1})) {
        return fail(HANARE_STATUS_INTERNAL, "read put something else into memory");
    }
    return InterceptWork(std::move(state));
}

Result<double> InterceptWork::run(const InterceptCase& which, uint64_t for_ns) {
    const std::string_view name = which.name;
    const bool is_call = which.unit == Unit::kPerCall;
    const int calls = is_call ? kCallsBetweenLooks : 1;
    bool is_right = true;
    uint64_t count = 0;
    const auto start = Clock::now();
    std::chrono::duration<double, std::nano> elapsed{};
    do {
        for (int i = 0; i < calls; ++i) {
            const bool done = is_call             ? state_->call(name)
                              : name == "compute" ? state_->compute()
                                                  : state_->copy();
            is_right = is_right && done;
        }
        count += static_cast<uint64_t>(calls);
        elapsed = Clock::now() - start;
    } while (elapsed.count() < static_cast<double>(for_ns));
    if (!is_right) return fail(HANARE_STATUS_INTERNAL, "%s: something else came of it", which.name);
    return elapsed.count() / static_cast<double>(count);
}

}  // namespace hanare::bench
