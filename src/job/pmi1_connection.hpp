// SPDX-License-Identifier: Apache-2.0
//
// Pmi1Connection: the text protocol of PMI-1, by which launchers such as MPICH's mpiexec serve
// their tasks, on a socket that a task inherits (PMI_FD).  Each side sends lines "cmd=NAME
// KEY=VALUE ..."; the task asks and the launcher answers.  The answer to a question that was not
// answered in time is awaited before the next one is asked.
//
// By one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "job/deadline.hpp"
#include "sys/file.hpp"

namespace hanare::job {

using Pmi1Fields = std::map<std::string, std::string, std::less<>>;
// Of one line, without its end.
Pmi1Fields parse_pmi1_line(std::string_view line);

// Whether a value of PMI_process_mapping, such as "(vector,(0,2,4))", where four tasks each are on
// two machines from number 0 on, speaks of one machine only.
bool maps_to_one_machine(std::string_view mapping);

class Pmi1Connection {
public:
    // Shakes hands.
    static Result<Pmi1Connection> open(sys::FileDescriptor socket, const Deadline& deadline);

    struct Limits {
        size_t name_bytes = 0;
        size_t value_bytes = 0;
    };
    const Limits& limits() const noexcept { return limits_; }

    // Names and values without blanks.
    Result<void> put(const std::string& name, const std::string& value, const Deadline& deadline);
    // NOT_FOUND when nobody has put it.  Like all of these TIMEOUT; SYSTEM: the launcher is gone.
    Result<std::string> get(const std::string& name, const Deadline& deadline);
    // Until all tasks are here.  PEER_LOST: one never will be.
    Result<void> barrier(const Deadline& deadline);
    void finalize(const Deadline& deadline);

private:
    explicit Pmi1Connection(sys::FileDescriptor socket) : socket_(std::move(socket)) {}
    Result<void> begin(const Deadline& deadline);
    Result<Pmi1Fields> ask(const std::string& question, std::string_view answer,
                           const Deadline& deadline);
    Result<Pmi1Fields> await_answer(const Deadline& deadline);
    Result<std::string> exchange_lines(const Deadline& deadline);
    Result<void> send(const Deadline& deadline);
    Result<std::string> receive_line(const Deadline& deadline);

    sys::FileDescriptor socket_;
    std::string unsent_;   // of the question
    std::string awaited_;  // the name of its answer, until that has come
    std::string received_;
    std::string space_;  // of names, as the launcher calls it
    Limits limits_;
    bool is_over_ = false;
};

}  // namespace hanare::job
