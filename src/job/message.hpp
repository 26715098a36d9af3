// SPDX-License-Identifier: Apache-2.0
//
// Messages between a rendezvous, the tasks that look for each other there, and the agents that
// start tasks on other machines (docs/wire.md, "Finding each other").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hanare/status.h"
#include "job/job.hpp"

namespace hanare::job {

enum class MessageKind : uint8_t {
    kJoin = 1,     // a task: `rank` its own, `value` the size of the job, data its number
    kAgent = 2,    // an agent: `rank` of its first task, `value` how many, data the job's number
    kWelcome = 3,  // `value`: a status
    kPublish = 4,  // data: the card
    kAsk = 5,      // for the card of `rank`
    kAnswer = 6,   // `rank`, `value`: a status, data: the card
    kEnded = 7,    // task `rank` has ended; `value`: its status of waitpid(2)
    kSignal = 8,   // to all tasks of an agent: signal number `value`
};

struct Message {
    MessageKind kind = MessageKind::kWelcome;
    uint32_t rank = 0;
    uint32_t value = 0;
    std::vector<std::byte> data = {};

    hanare_status status() const noexcept { return static_cast<hanare_status>(value); }
};
inline uint32_t value_of(hanare_status status) noexcept { return static_cast<uint32_t>(status); }

// How it goes over the connection, little-endian.
struct MessageHeader {
    uint8_t version;
    uint8_t kind;
    uint16_t bytes;  // of the data that follow
    uint32_t rank;
    uint32_t value;
    uint32_t check;  // CRC-32C of the header, with 0 here, and the data
};
static_assert(sizeof(MessageHeader) == 16);
inline constexpr uint8_t kMessageVersion = 1;
inline constexpr size_t kMessageDataMax = Job::kCardBytesMax;

void append(std::vector<std::byte>& bytes, const Message& message);

enum class Parsed { kMessage, kIncomplete, kNonsense };
// What stands at the beginning of `bytes`; `used`: how many of them it takes.
Parsed parse(std::span<const std::byte> bytes, Message& message, size_t& used);

// The number of a job as the data of kJoin and kAgent.
std::vector<std::byte> data_of(uint64_t job_number);

}  // namespace hanare::job
