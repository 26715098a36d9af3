// SPDX-License-Identifier: Apache-2.0
//
// Which job the environment speaks of, each in a process of its own, as a launcher starts it.
#include "job/job.hpp"

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>

#include "job/environment.hpp"
#include "job/slurm_job.hpp"
#include "job/test_support.hpp"
#include "sys/pipe.hpp"
#include "sys/tcp_socket.hpp"
#include "sys/test_support.hpp"

namespace hanare::job {
namespace {

using testing::bytes_of;
using testing::kPatience_ms;
using Variables = std::map<std::string, std::string>;

// What joining with these variables ends in: "launcher rank size host secret", or the error.
std::string join_with(const Variables& variables, int timeout_ms = kPatience_ms) {
    return sys::testing::run_in_child([&]() -> std::string {
        const testing::CleanEnvironment environment;
        environment.set(variables);
        const auto job = Job::join(timeout_ms);
        if (!job) return job.error().text;
        return std::string((*job)->launcher()) + " " + std::to_string((*job)->rank()) + " " +
               std::to_string((*job)->size()) + " " + (*job)->host() +
               ((*job)->secret() ? " secret" : "");
    });
}

TEST(Job, Alone) {
    EXPECT_EQ(join_with({}), "single 0 1 127.0.0.1");
    EXPECT_EQ(join_with({{"HANARE_HOST", "127.0.0.2"}}), "single 0 1 127.0.0.2");
    // A batch script of Slurm is no task of a step.
    EXPECT_EQ(join_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}}),
              "single 0 1 127.0.0.1");
    const testing::CleanEnvironment environment;
    const auto job = Job::join(0).value();
    EXPECT_EQ(job->card_of(0, 0).error().status, HANARE_STATUS_TIMEOUT);
    ASSERT_TRUE(job->publish(bytes_of("me"), 0));
    EXPECT_EQ(job->card_of(0, 0).value(), bytes_of("me"));
    EXPECT_EQ(job->card_of(1, 0).error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(job->publish(std::vector<std::byte>(Job::kCardBytesMax + 1), 0).error().status,
              HANARE_STATUS_INVALID_ARGUMENT);
}

TEST(Job, ContradictionsAreNamed) {
    EXPECT_EQ(join_with({{"HANARE_RANK", "7"}, {"HANARE_SIZE", "4"}}),
              "HANARE_RANK (with HANARE_SIZE 4): '7' is out of range; allowed is a number from 0 "
              "to 3");
    EXPECT_EQ(join_with({{"HANARE_RANK", "x"}, {"HANARE_SIZE", "4"}}),
              "HANARE_RANK (with HANARE_SIZE 4): 'x' is not a number; allowed is a number from 0 "
              "to 3");
    EXPECT_EQ(join_with({{"HANARE_RANK", "0"}}),
              "HANARE_RANK is set and HANARE_SIZE is not; both are needed");
    EXPECT_EQ(join_with({{"HANARE_SIZE", "4"}}),
              "HANARE_SIZE is set and HANARE_RANK is not; both are needed");
    EXPECT_EQ(join_with({{"HANARE_RANK", "0"}, {"HANARE_SIZE", "1"}}),
              "HANARE_RANK is set and HANARE_RENDEZVOUS is not; both are needed");
    EXPECT_NE(join_with({{"HANARE_RANK", "0"}, {"HANARE_SIZE", "1"}, {"HANARE_RENDEZVOUS", "here"}})
                  .find("HANARE_RENDEZVOUS: 'here'"),
              std::string::npos);
    EXPECT_NE(join_with({{"HANARE_HOST", "here"}}).find("HANARE_HOST: 'here'"), std::string::npos);
    EXPECT_NE(join_with({{"PMI_FD", "9"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}).find("PMI_RANK"),
              std::string::npos);
    EXPECT_NE(
        join_with({{"PMI_FD", "x"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).find("PMI_FD: 'x'"),
        std::string::npos);
}

TEST(Job, OfARendezvous) {
    const testing::Place place(2);
    const std::string port = std::to_string(place.place.endpoint.port);
    const Variables variables = {
        {"HANARE_RANK", "1"}, {"HANARE_SIZE", "2"}, {"HANARE_RENDEZVOUS", "127.0.0.1:" + port}};
    const auto with_secret = [&](const fabric::Secret& secret, Variables more = {}) {
        const auto pipe = sys::pipe_holding(secret.bytes()).value();
        more.insert(variables.begin(), variables.end());
        more["HANARE_SECRET_FD"] = std::to_string(pipe.number());
        return join_with(more);
    };
    EXPECT_EQ(with_secret(*place.place.secret), "hanare 1 2 127.0.0.1 secret");
    EXPECT_EQ(with_secret(*place.place.secret, {{"HANARE_HOST", "127.0.0.9"}}),
              "hanare 1 2 127.0.0.9 secret");
    // Whatever others have set.
    EXPECT_EQ(with_secret(*place.place.secret, {{"PMI_FD", "9"}, {"SLURM_PROCID", "0"}}),
              "hanare 1 2 127.0.0.1 secret");
    EXPECT_NE(with_secret(fabric::Secret::make().value()).find("does not know the job's secret"),
              std::string::npos);
    EXPECT_NE(join_with(variables, 200).find("the rendezvous"), std::string::npos);
    const Variables nobody = {
        {"HANARE_RANK", "0"}, {"HANARE_SIZE", "2"}, {"HANARE_RENDEZVOUS", "127.0.0.1:1"}};
    EXPECT_NE(join_with(nobody).find("cannot connect to 127.0.0.1 port 1"), std::string::npos);
}

// Tasks as srun starts them, on one machine, with a job's number that no other test has.
class Slurm : public ::testing::Test {
protected:
    Slurm() {
        std::ofstream(path_) << fabric::Secret::make().value().text();
        chmod(path_.c_str(), 0600);
    }
    ~Slurm() override { sys::testing::Leftovers::remove(slot_); }

    Variables variables(uint32_t rank, uint32_t size) const {
        return {{"SLURM_PROCID", std::to_string(rank)},  {"SLURM_NTASKS", std::to_string(size)},
                {"SLURM_JOB_ID", std::to_string(test_)}, {"SLURM_STEP_ID", "0"},
                {"SLURM_STEP_NODELIST", "node7"},        {"HANARE_SECRET_FILE", path_}};
    }
    uint64_t job_number() const { return static_cast<uint64_t>(test_) << 32; }

    // Joins, publishes, asks all and waits for them: "" or what is wrong.
    static std::string take_part(const Variables& variables) {
        const testing::CleanEnvironment environment;
        environment.set(variables);
        const auto joined = Job::join(kPatience_ms);
        if (!joined) return joined.error().text;
        Job& job = **joined;
        const std::string own = "card " + std::to_string(job.rank());
        if (std::string("slurm") != job.launcher()) return job.launcher();
        if (const auto put = job.publish(bytes_of(own), kPatience_ms); !put)
            return put.error().text;
        for (uint32_t rank = 0; rank < job.size(); ++rank) {
            const auto card = job.card_of(rank, kPatience_ms);
            if (!card) return card.error().text;
            if (*card != bytes_of("card " + std::to_string(rank))) return "another card";
        }
        return "";
    }

    void start(uint32_t size) {
        for (uint32_t rank = 0; rank < size; ++rank) {
            tasks_.push_back(std::make_unique<sys::testing::CheckedChild>(
                [&] { return take_part(variables(rank, size)); }));
        }
    }
    void expect_success() {
        for (const auto& task : tasks_) EXPECT_EQ(task->result(), "");
    }

    const pid_t test_ = getpid();
    const sys::testing::TemporaryDirectory directory_;
    const std::string path_ = directory_.path() + "/secret";
    const size_t slot_ = sys::testing::Leftovers::add(path_);
    std::vector<std::unique_ptr<sys::testing::CheckedChild>> tasks_;
};

TEST_F(Slurm, TasksFindEachOther) {
    start(4);
    expect_success();
}

// Another job, or anything else, has the first port.
TEST_F(Slurm, APortThatIsTaken) {
    const auto stranger = sys::listen_tcp("127.0.0.1", slurm_port(job_number(), 0));
    ASSERT_TRUE(stranger) << stranger.error().text;
    RendezvousServer::Settings settings = {.host = "127.0.0.1",
                                           .port = slurm_port(job_number(), 1)};
    settings.secret = fabric::Secret::make().value();
    auto server = RendezvousServer::open(settings);
    ASSERT_TRUE(server) << server.error().text;
    start(2);
    const auto thread = RendezvousThread::start(std::move(*server), 0).value();
    expect_success();
}

TEST_F(Slurm, WithoutASecret) {
    Variables without = variables(0, 2);
    without.erase("HANARE_SECRET_FILE");
    const std::string error = join_with(without);
    EXPECT_NE(error.find("HANARE_SECRET_FILE"), error.npos) << error;
    EXPECT_NE(error.find("head -c 32 /dev/urandom"), error.npos) << error;
    // Nobody is there from whom it had to be kept.
    without["SLURM_NTASKS"] = "1";
    EXPECT_EQ(join_with(without), "slurm 0 1 127.0.0.1");
}

TEST_F(Slurm, AFirstTaskThatDoesNotCome) {
    const std::string error = join_with(variables(1, 2), 100);
    EXPECT_NE(error.find("task 0 is not to be found in time"), error.npos) << error;
}

TEST_F(Slurm, ContradictionsAreNamed) {
    const auto error_with = [&](const char* name, const char* value) {
        Variables wrong = variables(0, 2);
        wrong[name] = value;
        return join_with(wrong);
    };
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"SLURM_PROCID", "2"},
                                                          {"SLURM_NTASKS", "0"},
                                                          {"SLURM_JOB_ID", "x"},
                                                          {"SLURM_STEP_ID", "-1"},
                                                          {"SLURM_STEP_NODELIST", "a[1"}}) {
        const std::string error = error_with(name, value);
        EXPECT_NE(error.find(name), error.npos) << error;
        EXPECT_NE(error.find("allowed is"), error.npos) << error;
    }
}

TEST(SlurmPort, IsSpreadOverItsRange) {
    for (uint32_t job = 0; job < 1000; ++job) {
        for (uint32_t attempt = 0; attempt < kSlurmPorts; ++attempt) {
            const uint16_t port = slurm_port(uint64_t{job} << 32, attempt);
            ASSERT_GE(port, 10'000);
            ASSERT_LT(port, 30'000);
        }
        EXPECT_NE(slurm_port(uint64_t{job} << 32, 0), slurm_port(uint64_t{job + 1} << 32, 0));
    }
}

}  // namespace
}  // namespace hanare::job
