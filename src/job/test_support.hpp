// SPDX-License-Identifier: Apache-2.0
//
// What tests of jobs share: an environment in which no launcher has been, bytes, rendezvous that
// run.  Included by *_test.cpp only.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "job/rendezvous_client.hpp"
#include "job/rendezvous_server.hpp"
#include "job/rendezvous_thread.hpp"

namespace hanare::job::testing {

inline constexpr int kPatience_ms = 20'000;

inline std::vector<std::byte> bytes_of(std::string_view text) {
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

// Takes away what a launcher may have set, and in the end what the test has.
class CleanEnvironment {
public:
    CleanEnvironment() { clean(); }
    ~CleanEnvironment() { clean(); }

    void set(const std::map<std::string, std::string>& values) const {
        for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
    }
    static void clean() {
        std::vector<std::string> names;
        for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
            const std::string_view text(*entry);
            const std::string_view name = text.substr(0, text.find('='));
            for (const std::string_view prefix : {"HANARE_", "PMI", "SLURM_"}) {
                if (name.starts_with(prefix) && !name.starts_with("HANARE_TEST_")) {
                    names.emplace_back(name);
                }
            }
        }
        for (const std::string& name : names) unsetenv(name.c_str());
    }
};

// A rendezvous on loopback, served by a thread.
class Place {
public:
    explicit Place(uint32_t tasks, bool has_secret = true,
                   fabric::Protection protection = fabric::Protection::kAuthenticated) {
        RendezvousServer::Settings settings = {.host = "127.0.0.1", .size = tasks};
        if (has_secret) settings.secret = fabric::Secret::make().value();
        settings.protection = protection;
        auto server = RendezvousServer::open(settings).value();
        place = {{settings.host, server->port()}, settings.secret, protection};
        thread = RendezvousThread::start(std::move(server), 0).value();
        size = tasks;
    }

    Result<RendezvousClient> join(uint32_t rank) const {
        return RendezvousClient::join(place, {.rank = rank, .size = size}, Deadline(kPatience_ms));
    }

    RendezvousPlace place;
    std::unique_ptr<RendezvousThread> thread;
    uint32_t size = 1;
};

}  // namespace hanare::job::testing
