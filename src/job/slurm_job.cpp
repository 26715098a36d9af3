// SPDX-License-Identifier: Apache-2.0
#include "job/slurm_job.hpp"

#include <algorithm>

#include "job/environment.hpp"
#include "job/node_list.hpp"
#include "job/rendezvous_job.hpp"
#include "job/rendezvous_thread.hpp"
#include "sys/event.hpp"
#include "sys/host_address.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::job {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kEverywhere = "0.0.0.0";
constexpr const char* kRankName = "SLURM_PROCID";
constexpr const char* kStepName = "SLURM_STEP_ID";
constexpr uint32_t kNumberMax = 0xfffffff0;  // above are Slurm's own
// Below those that Linux gives to whoever wants any.
constexpr uint32_t kFirstPort = 10'000;
constexpr uint32_t kPortCount = 20'000;
// Whoever listens there may not be of this job.
constexpr int kAttempt_ms = 2000;
// What others need of the first task when that ends.
constexpr int kFarewell_ms = 10'000;
constexpr int kPauseMin_ms = 10;
constexpr int kPauseMax_ms = 500;

struct Step {
    Place own;
    uint64_t job_number = 0;
    std::string first_node;
    bool is_on_one_node = false;
};

Result<Step> read_step() {
    Step step;
    const char* const size_name = variable("SLURM_NTASKS") ? "SLURM_NTASKS" : "SLURM_NPROCS";
    HANARE_TRY_ASSIGN(step.own, place_variables(kRankName, size_name));
    const char* const job_name = variable("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID";
    HANARE_TRY_ASSIGN(const uint32_t job, number_variable(job_name, 0, kNumberMax));
    HANARE_TRY_ASSIGN(const uint32_t number, number_variable(kStepName, 0, kNumberMax));
    step.job_number = (uint64_t{job} << 32) | number;
    const char* const list_name =
        variable("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
    const auto list = variable(list_name);
    if (!list) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s is set and %s is not; both are needed",
                    kRankName, list_name);
    }
    HANARE_TRY_ASSIGN(const std::vector<std::string> nodes, expand_node_list(list_name, *list));
    step.first_node = nodes.front();
    step.is_on_one_node = nodes.size() == 1;
    return step;
}

Result<std::optional<fabric::Secret>> secret_of(const Step& step) {
    HANARE_TRY_ASSIGN(auto secret, take_secret());
    if (secret || step.own.size == 1) return secret;
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "below srun %s has to name a file with a secret that all tasks can read: "
                "(umask 077; head -c 32 /dev/urandom >FILE)",
                kSecretFileVariable);
}

RendezvousServer::Settings settings_of(const Step& step, const RendezvousPlace& place,
                                       uint32_t attempt) {
    return {.host = step.is_on_one_node ? kLoopback : kEverywhere,
            .port = slurm_port(step.job_number, attempt),
            .secret = place.secret,
            .protection = place.protection,
            .size = step.own.size,
            .job_number = step.job_number};
}

// At the first port that nobody else has.
Result<std::unique_ptr<RendezvousThread>> serve(const Step& step, RendezvousPlace& place) {
    for (uint32_t attempt = 0;; ++attempt) {
        auto server = RendezvousServer::open(settings_of(step, place, attempt));
        if (server) {
            place.endpoint = {kLoopback, (*server)->port()};
            return RendezvousThread::start(std::move(*server), kFarewell_ms);
        }
        if (attempt + 1 == kSlurmPorts) return std::unexpected(server.error());
    }
}

// Until the first task is there, whose port is in `place` then.
Result<RendezvousClient> find(RendezvousPlace& place, const RendezvousClient::Task& task,
                              const Deadline& deadline) {
    int pause_ms = kPauseMin_ms;
    for (;;) {
        Error last;
        for (uint32_t attempt = 0; attempt < kSlurmPorts; ++attempt) {
            place.endpoint.port = slurm_port(task.job_number, attempt);
            const Deadline of_attempt(deadline.left_ms(kAttempt_ms));
            auto client = RendezvousClient::join(place, task, of_attempt);
            if (client || client.error().status == HANARE_STATUS_BUSY) return client;
            if (attempt == 0 || client.error().status == HANARE_STATUS_BAD_KEY) {
                last = client.error();
            }
        }
        if (deadline.is_over()) {
            return fail(HANARE_STATUS_TIMEOUT, "task 0 is not to be found in time: %.190s",
                        last.text);
        }
        sys::wait_until_readable(-1, -1, deadline.left_ms(pause_ms));
        pause_ms = std::min(2 * pause_ms, kPauseMax_ms);
    }
}

// What other nodes reach is not the address by which a node calls itself.
Result<std::string> host_of(const Step& step, const RendezvousClient& client) {
    HANARE_TRY_ASSIGN(const auto host, host_variable());
    if (host) return *host;
    HANARE_TRY_ASSIGN(const std::string seen, client.local_address());
    if (step.is_on_one_node || !sys::is_loopback(seen)) return seen;
    return sys::outward_address();
}

}  // namespace

bool is_slurm_job() { return variable(kRankName) && variable(kStepName); }

// Neighbouring numbers are spread, so that jobs do not try each other's ports.
uint16_t slurm_port(uint64_t job_number, uint32_t attempt) {
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    const uint64_t spread = ((job_number + 1) * kOdd) >> 32;
    return static_cast<uint16_t>(kFirstPort + (spread + attempt) % kPortCount);
}

Result<std::unique_ptr<Job>> join_slurm_job(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(const Step step, read_step());
    RendezvousPlace place;
    HANARE_TRY_ASSIGN(place.secret, secret_of(step));
    place.protection =
        step.is_on_one_node ? fabric::Protection::kAuthenticated : fabric::Protection::kSealed;
    std::unique_ptr<RendezvousThread> thread;
    const RendezvousClient::Task task = {step.own.rank, step.own.size, step.job_number};
    Result<RendezvousClient> client = fail(HANARE_STATUS_INTERNAL, "nobody has been asked");
    if (step.own.rank == 0) {
        HANARE_TRY_ASSIGN(thread, serve(step, place));
        client = RendezvousClient::join(place, task, deadline);
    } else {
        place.endpoint.host = kLoopback;
        if (!step.is_on_one_node) {
            HANARE_TRY_ASSIGN(place.endpoint.host, sys::look_up_host(step.first_node));
        }
        client = find(place, task, deadline);
    }
    if (!client) return std::unexpected(client.error());
    HANARE_TRY_ASSIGN(const std::string host, host_of(step, *client));
    return std::make_unique<RendezvousJob>("slurm", std::move(*client), task, place.secret, host,
                                           std::move(thread), place.endpoint);
}

}  // namespace hanare::job
