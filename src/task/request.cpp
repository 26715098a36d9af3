// SPDX-License-Identifier: Apache-2.0
#include "task/request.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/units.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/local_socket.hpp"
#include "sys/text_file.hpp"
#include "task/signal_action.hpp"

namespace hanare::task {

namespace {

constexpr uint64_t kTextBytesMax = 64 * kMiB;
constexpr size_t kNumbersMax = 64 * 1024;
constexpr size_t kProcessorBytesMax = 8 * kKiB;

struct Head {
    uint64_t text_bytes;
    uint64_t descriptors;
};

class Writer {
public:
    template <typename Value>
    void value(const Value& value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        text_.insert(text_.end(), bytes.begin(), bytes.end());
    }
    void text(std::string_view text) {
        value(uint64_t{text.size()});
        const auto bytes = std::as_bytes(std::span(text));
        text_.insert(text_.end(), bytes.begin(), bytes.end());
    }
    void texts(const std::vector<std::string>& texts) {
        value(uint64_t{texts.size()});
        for (const std::string& each : texts) text(each);
    }
    std::vector<std::byte> take() { return std::move(text_); }

private:
    std::vector<std::byte> text_;
};

// Reads zeros behind the end, and remembers that.
class Reader {
public:
    explicit Reader(std::span<const std::byte> text) : rest_(text) {}

    template <typename Value>
    void value(Value& value) {
        if (!has(sizeof value)) return;
        std::memcpy(&value, rest_.data(), sizeof value);
        rest_ = rest_.subspan(sizeof value);
    }
    std::string text() {
        const uint64_t bytes = count();
        if (!has(bytes)) return {};
        std::string text(reinterpret_cast<const char*>(rest_.data()), bytes);
        rest_ = rest_.subspan(bytes);
        return text;
    }
    std::vector<std::string> texts() {
        std::vector<std::string> texts;
        for (uint64_t left = count(); left > 0 && is_right_; --left) texts.push_back(text());
        return texts;
    }
    uint64_t count() {
        uint64_t count = 0;
        value(count);
        return count;
    }
    bool is_at_end() const { return is_right_ && rest_.empty(); }

private:
    bool has(uint64_t bytes) {
        is_right_ = is_right_ && bytes <= rest_.size();
        return is_right_;
    }

    std::span<const std::byte> rest_;
    bool is_right_ = true;
};

Result<void> await(const sys::FileDescriptor& socket, short events, int timeout_ms) {
    pollfd entry = {socket.number(), events, 0};
    int ready = 0;
    do {
        ready = poll(&entry, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return {};
    return fail(HANARE_STATUS_TIMEOUT, "the other side of the space's socket says nothing");
}

Result<void> send_all(const sys::FileDescriptor& socket, std::span<const std::byte> bytes,
                      int timeout_ms) {
    while (!bytes.empty()) {
        const std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const ptrdiff_t sent = sys::send_some(socket, rest);
        if (sent < 0) return fail(HANARE_STATUS_NOT_FOUND, "the space's other side has closed");
        bytes = bytes.subspan(static_cast<size_t>(sent));
        if (!bytes.empty()) HANARE_TRY(await(socket, POLLOUT, timeout_ms));
    }
    return {};
}

Result<void> receive_all(const sys::FileDescriptor& socket, std::span<std::byte> bytes,
                         int timeout_ms) {
    while (!bytes.empty()) {
        const ptrdiff_t got =
            sys::receive_some(socket, reinterpret_cast<char*>(bytes.data()), bytes.size());
        if (got > 0) {
            bytes = bytes.subspan(static_cast<size_t>(got));
        } else if (got == 0 || errno != EAGAIN) {
            return fail(HANARE_STATUS_NOT_FOUND, "the space's other side has closed");
        } else {
            HANARE_TRY(await(socket, POLLIN, timeout_ms));
        }
    }
    return {};
}

// A byte, and the descriptors that go with it.
Result<void> send_descriptors(const sys::FileDescriptor& socket, std::span<const int> numbers,
                              int timeout_ms) {
    const std::byte mark{1};
    for (;;) {
        const int error = sys::send_message(socket.number(), {&mark, 1}, numbers);
        if (error == 0) return {};
        if (error == ETOOMANYREFS) {
            return fail_errno(HANARE_STATUS_LIMIT, error, "passing descriptors");
        }
        if (error != EAGAIN) {
            return fail_errno(HANARE_STATUS_NOT_FOUND, error, "passing descriptors");
        }
        HANARE_TRY(await(socket, POLLOUT, timeout_ms));
    }
}

Result<void> receive_descriptors(const sys::FileDescriptor& socket,
                                 std::span<sys::FileDescriptor> files, int timeout_ms) {
    std::byte mark{};
    ptrdiff_t got = 0;
    while ((got = sys::receive_message(socket.number(), {&mark, 1}, files)) == -EAGAIN) {
        HANARE_TRY(await(socket, POLLIN, timeout_ms));
    }
    const bool all = std::ranges::all_of(files, [](const auto& file) { return file.is_open(); });
    if (got == 1 && all) return {};
    return fail(HANARE_STATUS_LIMIT, "descriptors do not arrive (ulimit -n?)");
}

// Those that a program would have.
Result<std::vector<int>> inherited_descriptors() {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/thread-self/fd"), closedir);
    if (!folder) return fail_errno(HANARE_STATUS_SYSTEM, errno, "/proc/thread-self/fd");
    std::vector<int> numbers;
    while (const dirent* entry = readdir(folder.get())) {
        if (entry->d_name[0] == '.') continue;
        const int number = std::atoi(entry->d_name);
        const int flags = fcntl(number, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) numbers.push_back(number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

// Other threads may create files meanwhile: umask(2) tells it only by changing it.
Result<uint32_t> own_umask() {
    constexpr std::string_view kLine = "\nUmask:";
    const auto status = sys::read_text_file("/proc/thread-self/status");
    const size_t at = status ? status->find(kLine) : std::string::npos;
    if (at == std::string::npos) {
        return fail(HANARE_STATUS_SYSTEM, "/proc/thread-self/status does not tell the umask");
    }
    return static_cast<uint32_t>(std::strtoul(status->c_str() + at + kLine.size(), nullptr, 8));
}

std::vector<uint8_t> own_processors() {
    std::vector<uint8_t> mask(kProcessorBytesMax);
    const long bytes = syscall(SYS_sched_getaffinity, 0, mask.size(), mask.data());
    mask.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return mask;
}

}  // namespace

Result<Request> Request::of_this_process(StartOfProgram start) {
    Request request;
    request.start = std::move(start);
    HANARE_TRY_ASSIGN(request.umask, own_umask());
    request.group = getpgrp();
    for (size_t i = 0; i < kLimits; ++i) {
        getrlimit(static_cast<__rlimit_resource>(i), &request.limits[i]);
    }
    request.processors = own_processors();
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    request.signal_mask = bits_of(mask);
    for (unsigned number = 1; number <= kSignals; ++number) {
        if (signal_action(number).handler == 1) {
            request.ignored_signals |= uint64_t{1} << (number - 1);
        }
    }
    HANARE_TRY_ASSIGN(request.numbers, inherited_descriptors());
    return request;
}

std::vector<std::byte> Request::written() const {
    Writer writer;
    writer.text(start.path);
    writer.texts(start.arguments);
    writer.texts(start.environment);
    writer.value(signal_mask);
    writer.value(ignored_signals);
    writer.value(umask);
    writer.value(group);
    writer.value(limits);
    writer.value(uint64_t{processors.size()});
    for (const uint8_t each : processors) writer.value(each);
    writer.value(uint64_t{numbers.size()});
    for (const int each : numbers) writer.value(each);
    return writer.take();
}

Result<Request> Request::read(std::span<const std::byte> text) {
    Reader reader(text);
    Request request;
    request.start.path = reader.text();
    request.start.arguments = reader.texts();
    request.start.environment = reader.texts();
    reader.value(request.signal_mask);
    reader.value(request.ignored_signals);
    reader.value(request.umask);
    reader.value(request.group);
    reader.value(request.limits);
    request.processors.resize(std::min<uint64_t>(reader.count(), kProcessorBytesMax));
    for (uint8_t& each : request.processors) reader.value(each);
    request.numbers.resize(std::min<uint64_t>(reader.count(), kNumbersMax));
    for (int& each : request.numbers) reader.value(each);
    if (reader.is_at_end() && !request.start.path.empty()) return request;
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "a request for a task that is none");
}

Result<void> send_request(const sys::FileDescriptor& socket, const Request& request,
                          int timeout_ms) {
    const sys::FileDescriptor directory(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open()) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "the working directory");
    }
    const int passed = directory.number();
    const std::vector<std::byte> text = request.written();
    const Head head = {text.size(), request.numbers.size()};
    HANARE_TRY(send_all(socket, std::as_bytes(std::span(&head, 1)), timeout_ms));
    HANARE_TRY(send_all(socket, text, timeout_ms));
    HANARE_TRY(send_descriptors(socket, {&passed, 1}, timeout_ms));
    const std::span numbers(request.numbers);
    for (size_t at = 0; at < numbers.size(); at += sys::kPassedMax) {
        const auto some = numbers.subspan(at, std::min(sys::kPassedMax, numbers.size() - at));
        HANARE_TRY(send_descriptors(socket, some, timeout_ms));
    }
    return {};
}

Result<Received> receive_request(const sys::FileDescriptor& socket, int timeout_ms) {
    Head head = {};
    HANARE_TRY(receive_all(socket, std::as_writable_bytes(std::span(&head, 1)), timeout_ms));
    if (head.text_bytes > kTextBytesMax || head.descriptors > kNumbersMax) {
        return fail(HANARE_STATUS_LIMIT, "arguments and environment are too long");
    }
    std::vector<std::byte> text(head.text_bytes);
    HANARE_TRY(receive_all(socket, text, timeout_ms));
    Received received;
    HANARE_TRY(receive_descriptors(socket, {&received.directory, 1}, timeout_ms));
    HANARE_TRY_ASSIGN(received.request, Request::read(text));
    if (received.request.numbers.size() != head.descriptors) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "a request for a task that is none");
    }
    received.descriptors.resize(head.descriptors);
    const std::span files(received.descriptors);
    for (size_t at = 0; at < files.size(); at += sys::kPassedMax) {
        const auto some = files.subspan(at, std::min(sys::kPassedMax, files.size() - at));
        HANARE_TRY(receive_descriptors(socket, some, timeout_ms));
    }
    return received;
}

Result<void> send_answer(const sys::FileDescriptor& socket, const Answer& answer, int timeout_ms) {
    return send_all(socket, std::as_bytes(std::span(&answer, 1)), timeout_ms);
}

Result<Answer> receive_answer(const sys::FileDescriptor& socket, int timeout_ms) {
    Answer answer;
    HANARE_TRY(receive_all(socket, std::as_writable_bytes(std::span(&answer, 1)), timeout_ms));
    answer.text[sizeof answer.text - 1] = '\0';
    return answer;
}

}  // namespace hanare::task
