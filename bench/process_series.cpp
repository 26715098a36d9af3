// SPDX-License-Identifier: Apache-2.0
#include "bench/process_series.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "sys/clock.hpp"
#include "sys/signal.hpp"
#include "sys/text_file.hpp"

namespace hanare::bench {
namespace {

// Fields 14 and 15 of /proc/self/stat, counted from behind the name, which may have spaces.
void add_processors(ProcessMoment& moment) {
    const auto text = sys::read_text_file("/proc/self/stat");
    if (!text) return;
    const size_t name_end = text->rfind(')');
    if (name_end == std::string::npos) return;
    unsigned long long user = 0;
    unsigned long long system = 0;
    const int found =
        std::sscanf(text->c_str() + name_end + 1,
                    " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
    if (found != 2) return;
    const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
    moment.user_s = static_cast<double>(user) / ticks_per_s;
    moment.system_s = static_cast<double>(system) / ticks_per_s;
}

// "NAME: NUMBER" of /proc/self/io; 0 where the kernel does not tell.
uint64_t number_of(const std::string& text, const char* name) {
    const size_t place = text.find(std::string("\n") + name + ": ");
    unsigned long long value = 0;
    if (place == std::string::npos) return 0;
    const size_t digits = text.find(": ", place) + 2;
    return std::sscanf(text.c_str() + digits, "%llu", &value) == 1 ? value : 0;
}

ProcessMoment now() {
    ProcessMoment moment;
    moment.seconds = static_cast<double>(sys::now_ns()) * 1e-9;
    add_processors(moment);
    const auto io = sys::read_text_file("/proc/self/io");
    if (!io) return moment;
    moment.read_bytes = number_of(*io, "read_bytes");
    moment.written_bytes = number_of(*io, "write_bytes");
    return moment;
}

}  // namespace

ProcessSeries::ProcessSeries(uint64_t every_ns) : every_ns_(every_ns), begin_(now()), moments_(1) {
    const sys::SignalBlock block;  // the thread inherits it
    thread_ = std::thread([this] { look(); });
}

ProcessSeries::~ProcessSeries() {
    if (thread_.joinable()) end();
}

ProcessMoment ProcessSeries::since_begin() const {
    ProcessMoment moment = now();
    moment.seconds -= begin_.seconds;
    moment.user_s -= begin_.user_s;
    moment.system_s -= begin_.system_s;
    moment.read_bytes -= begin_.read_bytes;
    moment.written_bytes -= begin_.written_bytes;
    return moment;
}

void ProcessSeries::look() {
    for (uint64_t number = 1; !is_over_.load(); ++number) {
        // In small parts, so that who ends this need not wait.
        const double next_s = static_cast<double>(number * every_ns_) * 1e-9;
        while (!is_over_.load()) {
            const double left_s =
                next_s - (static_cast<double>(sys::now_ns()) * 1e-9 - begin_.seconds);
            if (left_s <= 0) break;
            std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left_s, 0.02)));
        }
        if (!is_over_.load()) moments_.push_back(since_begin());
    }
}

std::vector<ProcessMoment> ProcessSeries::end() {
    const ProcessMoment last = since_begin();
    is_over_ = true;
    thread_.join();
    while (moments_.back().seconds > last.seconds) moments_.pop_back();
    moments_.push_back(last);
    return std::move(moments_);
}

}  // namespace hanare::bench
