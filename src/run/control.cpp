// SPDX-License-Identifier: Apache-2.0
#include "run/control.hpp"

#include <unistd.h>

#include <utility>

#include "control/protocol.hpp"
#include "control/server.hpp"
#include "intercept/intercept.hpp"
#include "run/report.hpp"
#include "sys/clock.hpp"
#include "telemetry/log.hpp"

namespace hanare::run {

namespace {

constexpr size_t kAnswerBytesMax = size_t{256} << 10;
constexpr uint64_t kNsPerMs = 1'000'000;

struct Control {
    bool is_wanted = false;
    uint64_t began_ns = 0;
    control::Server* server = nullptr;  // of this process; as long as that
};
constinit Control state;

void answer_statistics(control::Answer& answer, void*) {
    answer.open('{').member("version", HANARE_VERSION);
    answer.member("kind", control::kind_name(control::Kind::kProgram));
    answer.member("process_id", static_cast<uint64_t>(getpid()));
    answer.member("elapsed_ms", (sys::now_ns() - state.began_ns) / kNsPerMs);
    answer.member("engine", intercept::space()->pool()->engine_name());
    report_figures();
    tell_figures(answer);
    answer.name("others").open('[');
    tell_others(answer);
    answer.close(']').close('}');
}

bool add_store(control::Answer& answer, std::string_view spec, void*) {
    if (!intercept::space()->pool()->ask_to_add(spec)) {
        answer.text(
            "its store cannot take one more now: it has to be of several (tier, mirror or "
            "parity), and others come one at a time");
        return false;
    }
    answer.text("{}");
    return true;
}

void answer_added(control::Answer& answer, void*) {
    const char* const outcome = intercept::space()->pool()->added_store();
    answer.open('{').member("waiting", uint64_t{outcome == nullptr});
    answer.member("wrong", std::string_view(outcome == nullptr ? "" : outcome)).close('}');
}

constexpr control::Request kRequests[] = {{control::kStatistics, answer_statistics},
                                          {control::kAdd, nullptr, add_store},
                                          {control::kAdded, answer_added}};

[[gnu::destructor]] void remove_name() {
    if (state.server != nullptr) state.server->remove_name();
}

}  // namespace

void want_control() noexcept {
    state.is_wanted = true;
    control::note_runtime_directory();
}

int offer_control() noexcept {
    if (!std::exchange(state.is_wanted, false)) return -1;
    auto* const made = new control::Server(kRequests, kAnswerBytesMax);
    if (const auto listening = made->listen(control::Kind::kProgram); !listening) {
        telemetry::log(telemetry::LogLevel::kInfo, "%s", listening.error().text);
        delete made;
        return -1;
    }
    state.began_ns = sys::now_ns();
    state.server = made;
    note_answers(true);
    return made->descriptor();
}

void serve_control() noexcept {
    if (state.server != nullptr) state.server->serve(nullptr);
}

void abandon_control_in_child() noexcept {
    if (state.server != nullptr) state.server->abandon_in_child();
    state.server = nullptr;
    note_answers(false);
}

}  // namespace hanare::run
