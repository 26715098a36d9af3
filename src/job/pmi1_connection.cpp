// SPDX-License-Identifier: Apache-2.0
#include "job/pmi1_connection.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "job/environment.hpp"
#include "job/pieces.hpp"
#include "job/wipe.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

constexpr size_t kLineBytesMax = 65536;
constexpr uint32_t kLimitMax = 1u << 30;
// "hanare-secret-65535-999", and room.
constexpr uint32_t kNameBytesMin = 32;

// Not PEER_LOST: no task is gone for that.
std::unexpected<Error> lost(const char* why) {
    return fail(HANARE_STATUS_SYSTEM, "PMI-1: %s", why);
}

const std::string* find(const Pmi1Fields& fields, std::string_view name) {
    const auto found = fields.find(name);
    return found == fields.end() ? nullptr : &found->second;
}

bool has_succeeded(const Pmi1Fields& fields) {
    const std::string* const code = find(fields, "rc");
    return code == nullptr || *code == "0";
}

Result<size_t> limit(const Pmi1Fields& fields, const char* name, uint32_t least) {
    const std::string* const text = find(fields, name);
    if (text == nullptr) return lost("the launcher names no limits");
    HANARE_TRY_ASSIGN(const uint32_t value,
                      parse_number(std::string("PMI-1 ") + name, *text, least, kLimitMax));
    return value;
}

}  // namespace

Pmi1Fields parse_pmi1_line(std::string_view line) {
    Pmi1Fields fields;
    while (!line.empty()) {
        const size_t end = std::min(line.find(' '), line.size());
        const std::string_view field = line.substr(0, end);
        const size_t equal_sign = field.find('=');
        if (equal_sign != field.npos && equal_sign != 0) {
            fields.emplace(field.substr(0, equal_sign), field.substr(equal_sign + 1));
        }
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return fields;
}

bool maps_to_one_machine(std::string_view mapping) {
    constexpr std::string_view kBegin = "(vector";
    if (!mapping.starts_with(kBegin)) return false;
    mapping.remove_prefix(kBegin.size());
    bool has_one = false;
    while (mapping.starts_with(",(")) {
        mapping.remove_prefix(2);
        std::array<uint32_t, 3> numbers{};  // first machine, how many, tasks on each
        for (size_t i = 0; i < numbers.size(); ++i) {
            const auto [end, error] =
                std::from_chars(mapping.data(), mapping.data() + mapping.size(), numbers[i]);
            if (error != std::errc()) return false;
            mapping.remove_prefix(static_cast<size_t>(end - mapping.data()));
            if (!mapping.starts_with(i + 1 == numbers.size() ? ')' : ',')) return false;
            mapping.remove_prefix(1);
        }
        if (numbers[0] != 0 || numbers[1] != 1) return false;
        has_one = true;
    }
    return has_one && mapping == ")";
}

Result<Pmi1Connection> Pmi1Connection::open(sys::FileDescriptor socket, const Deadline& deadline) {
    Pmi1Connection connection(std::move(socket));
    HANARE_TRY(connection.begin(deadline));
    return connection;
}

Result<void> Pmi1Connection::begin(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(const Pmi1Fields version,
                      ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline));
    if (!has_succeeded(version)) return lost("the launcher speaks another version");
    HANARE_TRY_ASSIGN(const Pmi1Fields maxima, ask("cmd=get_maxes", "maxes", deadline));
    HANARE_TRY_ASSIGN(limits_.name_bytes, limit(maxima, "keylen_max", kNameBytesMin));
    HANARE_TRY_ASSIGN(limits_.value_bytes, limit(maxima, "vallen_max", kPieceBytesMin));
    HANARE_TRY_ASSIGN(const Pmi1Fields space, ask("cmd=get_my_kvsname", "my_kvsname", deadline));
    const std::string* const name = find(space, "kvsname");
    if (name == nullptr || name->empty()) return lost("the launcher keeps no values");
    space_ = *name;
    return {};
}

Result<void> Pmi1Connection::put(const std::string& name, const std::string& value,
                                 const Deadline& deadline) {
    std::string question = "cmd=put kvsname=" + space_ + " key=" + name + " value=";
    question.reserve(question.size() + value.size());  // else growing leaves a copy
    question += value;
    const WipeAtEnd wiping(question);
    HANARE_TRY_ASSIGN(const Pmi1Fields answer, ask(question, "put_result", deadline));
    if (has_succeeded(answer)) return {};
    return fail(HANARE_STATUS_SYSTEM, "PMI-1: the launcher does not take %.60s", name.c_str());
}

Result<std::string> Pmi1Connection::get(const std::string& name, const Deadline& deadline) {
    HANARE_TRY_ASSIGN(Pmi1Fields answer,
                      ask("cmd=get kvsname=" + space_ + " key=" + name, "get_result", deadline));
    const auto value = answer.find("value");
    if (has_succeeded(answer) && value != answer.end()) return std::move(value->second);
    return fail(HANARE_STATUS_NOT_FOUND, "PMI-1: nobody has put %.60s", name.c_str());
}

Result<void> Pmi1Connection::barrier(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(const Pmi1Fields answer, ask("cmd=barrier_in", "barrier_out", deadline));
    if (has_succeeded(answer)) return {};
    return fail(HANARE_STATUS_PEER_LOST, "PMI-1: a task is gone");
}

void Pmi1Connection::finalize(const Deadline& deadline) {
    if (socket_.is_open()) (void)ask("cmd=finalize", "finalize_ack", deadline);
}

Result<Pmi1Fields> Pmi1Connection::ask(const std::string& question, std::string_view answer,
                                       const Deadline& deadline) {
    // What comes too late for an earlier question is not the answer to this one.
    if (!awaited_.empty()) HANARE_TRY(await_answer(deadline));
    if (is_over_) return lost("an earlier question was not answered");
    unsent_ = question + "\n";
    awaited_ = answer;
    return await_answer(deadline);
}

// After TIMEOUT it can be called again, and goes on.
Result<Pmi1Fields> Pmi1Connection::await_answer(const Deadline& deadline) {
    auto line = exchange_lines(deadline);
    if (!line && line.error().status == HANARE_STATUS_TIMEOUT) {
        return std::unexpected(line.error());
    }
    const std::string awaited = std::exchange(awaited_, {});
    is_over_ = true;  // unless all goes well
    if (!line) return std::unexpected(line.error());
    const WipeAtEnd wiping(*line);
    Pmi1Fields fields = parse_pmi1_line(*line);
    const std::string* const command = find(fields, "cmd");
    if (command == nullptr || *command != awaited) {
        // Its name only: the rest may hold a secret.
        return fail(HANARE_STATUS_SYSTEM, "PMI-1: the launcher answers '%.40s' and not '%.40s'",
                    command == nullptr ? "" : command->c_str(), awaited.c_str());
    }
    is_over_ = false;
    return fields;
}

Result<std::string> Pmi1Connection::exchange_lines(const Deadline& deadline) {
    HANARE_TRY(send(deadline));
    return receive_line(deadline);
}

Result<void> Pmi1Connection::send(const Deadline& deadline) {
    while (!unsent_.empty()) {
        const sys::Part part = {reinterpret_cast<std::byte*>(unsent_.data()), unsent_.size()};
        const ptrdiff_t moved = sys::send_parts(socket_.number(), {&part, 1});
        if (moved >= 0) {
            const std::string rest = unsent_.substr(static_cast<size_t>(moved));
            wipe(unsent_);
            unsent_ = rest;
            continue;
        }
        if (moved != -EAGAIN) return lost("the launcher is gone");
        if (deadline.is_over()) return fail(HANARE_STATUS_TIMEOUT, "PMI-1: the launcher stalls");
        sys::wait_for_socket(socket_.number(), {.to_write = true}, deadline.left_ms());
    }
    return {};
}

Result<std::string> Pmi1Connection::receive_line(const Deadline& deadline) {
    for (;;) {
        if (const size_t end = received_.find('\n'); end != received_.npos) {
            std::string line = received_.substr(0, end);
            std::string rest = received_.substr(end + 1);
            wipe(received_);
            received_ = std::move(rest);
            return line;
        }
        if (received_.size() > kLineBytesMax) return lost("the launcher sends no end of a line");
        std::array<std::byte, 4096> part;
        const sys::Part place = {part.data(), part.size()};
        const ptrdiff_t moved = sys::receive_parts(socket_.number(), {&place, 1});
        if (moved > 0) {
            received_.append(reinterpret_cast<const char*>(part.data()),
                             static_cast<size_t>(moved));
            explicit_bzero(part.data(), static_cast<size_t>(moved));
            continue;
        }
        if (moved != -EAGAIN) return lost("the launcher is gone");
        if (deadline.is_over()) {
            return fail(HANARE_STATUS_TIMEOUT, "PMI-1: the launcher does not answer in time");
        }
        sys::wait_for_socket(socket_.number(), {.to_read = true}, deadline.left_ms());
    }
}

}  // namespace hanare::job
