// SPDX-License-Identifier: Apache-2.0
//
// What the processes of `hanare bench remote` tell each other, as JSON: the command starts a near
// end for each network, and that one a far end, which starts the memory servers.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hanare::cli {

// From the command to a near end.
struct RemoteJob {
    std::string name;        // as the report calls the network
    std::string network;     // "loopback", "veth"
    uint32_t rate_mbit = 0;  // of the link, both ways; 0: as fast as it is
    uint64_t bytes = 0;
    uint64_t local_bytes = 0;
    uint64_t block_bytes = 0;
    std::string engine;
    uint32_t read_ahead_blocks = 0;
    int rounds = 0;
    uint64_t accesses = 0;
    std::vector<std::string> cases;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteJob, name, network, rate_mbit, bytes, local_bytes,
                                   block_bytes, engine, read_ahead_blocks, rounds, accesses, cases)

// From a near end to its far end.
struct RemoteFarJob {
    std::string network;
    uint32_t rate_mbit = 0;
    std::vector<uint64_t> servers;  // what each lends that has no secret
    uint64_t sealed_bytes = 0;      // the one that has; 0: there is none
    uint64_t raw_bytes = 0;         // of raw sockets; 0: there are none
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteFarJob, network, rate_mbit, servers, sealed_bytes,
                                   raw_bytes)

struct RemoteServer {
    std::string url;
    int32_t process = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteServer, url, process)

// What the far end has.
struct RemoteFar {
    std::vector<RemoteServer> servers;
    RemoteServer sealed;  // knows the secret
    std::string secret;
    std::string raw_host;
    uint16_t raw_port = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteFar, servers, sealed, secret, raw_host, raw_port)

// From a near end to the command, one for each case, system and round.
struct RemoteSample {
    std::string network;
    std::string case_name;
    std::string system;
    int round = 0;
    std::map<std::string, double> metrics;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteSample, network, case_name, system, round, metrics)

}  // namespace hanare::cli
