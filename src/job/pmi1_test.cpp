// SPDX-License-Identifier: Apache-2.0
//
// PMI-1 over real sockets, with a launcher that this test plays.
#include "job/pmi1_job.hpp"

#include <sys/socket.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "job/test_support.hpp"

namespace hanare::job {
namespace {

using testing::bytes_of;
using testing::kPatience_ms;

// What the tasks of a job share at their launcher.
class Store {
public:
    explicit Store(size_t tasks) : tasks_(tasks) {}

    void put(const std::string& key, const std::string& value) {
        const std::lock_guard<std::mutex> guard(lock_);
        values_[key] = value;
    }
    std::string get(const std::string& key) {
        const std::lock_guard<std::mutex> guard(lock_);
        const auto found = values_.find(key);
        return found == values_.end() ? "" : found->second;
    }
    void barrier() {
        std::unique_lock<std::mutex> guard(lock_);
        const size_t round = round_;
        if (++arrived_ == tasks_) {
            arrived_ = 0;
            ++round_;
            changed_.notify_all();
        }
        changed_.wait(guard, [&] { return round_ != round; });
    }
    size_t longest_value() {
        size_t longest = 0;
        for (const auto& [key, value] : values_) longest = std::max(longest, value.size());
        return longest;
    }

private:
    const size_t tasks_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
    size_t arrived_ = 0;
    size_t round_ = 0;
};

// Answers one task until that goes.
class Launcher {
public:
    using Answer = std::function<std::string(const Pmi1Fields&)>;

    explicit Launcher(Answer answer) : answer_(std::move(answer)) {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        ours_ = sys::FileDescriptor(ends[0]);
        theirs = sys::FileDescriptor(ends[1]);
        thread_ = std::thread([this] { run(); });
    }
    ~Launcher() {
        shutdown(ours_.number(), SHUT_RDWR);
        thread_.join();
    }

    sys::FileDescriptor theirs;

private:
    void run() {
        std::string received;
        char part[256];
        ssize_t got = 0;
        while ((got = recv(ours_.number(), part, sizeof part, 0)) > 0) {
            received.append(part, static_cast<size_t>(got));
            for (size_t end = 0; (end = received.find('\n')) != received.npos;) {
                const std::string answer = answer_(parse_pmi1_line(received.substr(0, end)));
                received.erase(0, end + 1);
                // In two parts, as may happen.
                const size_t half = answer.size() / 2;
                send(ours_.number(), answer.data(), half, MSG_NOSIGNAL);
                send(ours_.number(), answer.data() + half, answer.size() - half, MSG_NOSIGNAL);
            }
        }
    }

    Answer answer_;
    sys::FileDescriptor ours_;
    std::thread thread_;
};

// As mpiexec answers.
std::string proper_answer(Store& store, const std::string& value_bytes_max,
                          const Pmi1Fields& question) {
    const std::string& command = question.find("cmd")->second;
    const auto field = [&](const char* name) { return question.find(name)->second; };
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (command == "get_maxes") {
        return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=" + value_bytes_max + "\n";
    }
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1_0\n";
    if (command == "put") {
        store.put(field("kvsname") + field("key"), field("value"));
        return "cmd=put_result rc=0 msg=success\n";
    }
    if (command == "barrier_in") {
        store.barrier();
        return "cmd=barrier_out\n";
    }
    if (command == "get") {
        const std::string value = store.get(field("kvsname") + field("key"));
        return value.empty() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
                             : "cmd=get_result rc=0 msg=success value=" + value + "\n";
    }
    return "cmd=finalize_ack\n";
}

void exchange_cards(const std::string& value_bytes_max, size_t card_bytes) {
    constexpr uint32_t kTasks = 3;
    const testing::CleanEnvironment environment;
    Store store(kTasks);
    store.put("kvs_1_0PMI_process_mapping", "(vector,(0,1,3))");
    std::vector<std::thread> tasks;
    std::vector<std::string> secrets(kTasks);
    for (uint32_t rank = 0; rank < kTasks; ++rank) {
        tasks.emplace_back([&, rank] {
            Launcher launcher([&](const Pmi1Fields& question) {
                return proper_answer(store, value_bytes_max, question);
            });
            const Deadline deadline(kPatience_ms);
            auto connection = Pmi1Connection::open(std::move(launcher.theirs), deadline);
            ASSERT_TRUE(connection) << connection.error().text;
            auto joined = join_pmi1_job(std::move(*connection), rank, kTasks, deadline);
            ASSERT_TRUE(joined) << joined.error().text;
            Job& job = **joined;
            EXPECT_STREQ(job.launcher(), "pmi1");
            EXPECT_EQ(job.rank(), rank);
            EXPECT_EQ(job.size(), kTasks);
            EXPECT_EQ(job.host(), "127.0.0.1");
            ASSERT_TRUE(job.secret());
            secrets[rank] = job.secret()->text();
            const auto card_of = [&](uint32_t of) {
                return std::vector<std::byte>(card_bytes, static_cast<std::byte>(of + 1));
            };
            ASSERT_TRUE(job.publish(card_of(rank), kPatience_ms));
            for (uint32_t other = 0; other < kTasks; ++other) {
                EXPECT_EQ(job.card_of(other, kPatience_ms).value(), card_of(other));
            }
            EXPECT_EQ(job.card_of(kTasks, kPatience_ms).error().status,
                      HANARE_STATUS_INVALID_ARGUMENT);
        });
    }
    for (std::thread& task : tasks) task.join();
    EXPECT_EQ(secrets[1], secrets[0]);
    EXPECT_EQ(secrets[2], secrets[0]);
    EXPECT_LE(store.longest_value(), std::stoul(value_bytes_max));
}

TEST(Pmi1, TasksExchangeCards) {
    exchange_cards("1024", 100);
    exchange_cards("1024", 0);
}
// A value is split where the launcher keeps only short ones.
TEST(Pmi1, LongCardsInShortValues) { exchange_cards("20", Job::kCardBytesMax); }

Result<Pmi1Connection> open_with(Launcher& launcher, int timeout_ms = kPatience_ms) {
    return Pmi1Connection::open(std::move(launcher.theirs), Deadline(timeout_ms));
}

TEST(Pmi1, LaunchersThatSayOtherThings) {
    Store store(1);
    for (const char* line : {"cmd=response_to_init rc=-1\n", "cmd=maxes\n", "nonsense\n", "\n"}) {
        Launcher launcher([&](const Pmi1Fields&) { return line; });
        EXPECT_EQ(open_with(launcher).error().status, HANARE_STATUS_SYSTEM) << line;
    }
    for (const char* most : {"0", "15", "-1", "x", ""}) {
        Launcher launcher(
            [&](const Pmi1Fields& question) { return proper_answer(store, most, question); });
        EXPECT_EQ(open_with(launcher).error().status, HANARE_STATUS_INVALID_ARGUMENT) << most;
    }
    Launcher endless([](const Pmi1Fields&) { return std::string(100'000, 'x'); });
    EXPECT_EQ(open_with(endless).error().status, HANARE_STATUS_SYSTEM);
}

TEST(Pmi1, ALauncherThatIsSilentOrGone) {
    Launcher silent([](const Pmi1Fields&) { return ""; });
    EXPECT_EQ(open_with(silent, 20).error().status, HANARE_STATUS_TIMEOUT);
    std::optional<Launcher> gone;
    gone.emplace([](const Pmi1Fields&) { return ""; });
    sys::FileDescriptor socket = std::move(gone->theirs);
    gone.reset();
    EXPECT_EQ(Pmi1Connection::open(std::move(socket), Deadline(kPatience_ms)).error().status,
              HANARE_STATUS_SYSTEM);
}

// What comes too late is not taken for the answer to the next question.
TEST(Pmi1, AnAnswerThatComesTooLateIsNotTheNextOne) {
    Store store(2);  // and the second task comes late
    Launcher launcher(
        [&](const Pmi1Fields& question) { return proper_answer(store, "1024", question); });
    auto connection = open_with(launcher).value();
    ASSERT_TRUE(connection.put("a-key", "1", Deadline(kPatience_ms)));
    EXPECT_EQ(connection.barrier(Deadline(20)).error().status, HANARE_STATUS_TIMEOUT);
    // As long as it has not come nothing else is asked.
    EXPECT_EQ(connection.get("a-key", Deadline(20)).error().status, HANARE_STATUS_TIMEOUT);
    store.barrier();
    EXPECT_EQ(connection.get("a-key", Deadline(kPatience_ms)).value(), "1");
    EXPECT_EQ(connection.get("other", Deadline(kPatience_ms)).error().status,
              HANARE_STATUS_NOT_FOUND);
}

TEST(Pmi1, ErrorsTellNoValues) {
    Store store(1);
    Launcher launcher([&](const Pmi1Fields& question) -> std::string {
        if (question.find("cmd")->second == "put") return "cmd=other value=deadbeef\n";
        return proper_answer(store, "1024", question);
    });
    auto connection = open_with(launcher).value();
    const auto put = connection.put("a-key", "cafe", Deadline(kPatience_ms));
    ASSERT_FALSE(put);
    const std::string text = put.error().text;
    EXPECT_NE(text.find("other"), text.npos);
    EXPECT_EQ(text.find("cafe"), text.npos);
    EXPECT_EQ(text.find("deadbeef"), text.npos);
    EXPECT_EQ(connection.get("a-key", Deadline(kPatience_ms)).error().status, HANARE_STATUS_SYSTEM);
}

TEST(Pmi1, Lines) {
    const Pmi1Fields fields = parse_pmi1_line("cmd=x  a=1=2 b= =c d e=\xff");
    EXPECT_EQ(fields, (Pmi1Fields{{"cmd", "x"}, {"a", "1=2"}, {"b", ""}, {"e", "\xff"}}));
    EXPECT_TRUE(parse_pmi1_line("").empty());
    EXPECT_TRUE(parse_pmi1_line("   ").empty());
}

TEST(Pmi1, Mappings) {
    EXPECT_TRUE(maps_to_one_machine("(vector,(0,1,4))"));
    EXPECT_TRUE(maps_to_one_machine("(vector,(0,1,4),(0,1,2))"));
    for (const char* mapping :
         {"", "(vector)", "(vector,(0,2,4))", "(vector,(0,1,4),(1,1,4))", "(vector,(0,1,4)",
          "(vector,(0,1))", "(vector,(0,1,4)) ", "(vector,(0,1,x))", "vector,(0,1,4)"}) {
        EXPECT_FALSE(maps_to_one_machine(mapping)) << mapping;
    }
}

}  // namespace
}  // namespace hanare::job
