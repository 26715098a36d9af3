// SPDX-License-Identifier: Apache-2.0
//
// Servers and clients over real connections, and peers that do not keep to what was agreed.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "fabric/crc32c.hpp"
#include "job/rendezvous_job.hpp"
#include "job/test_support.hpp"
#include "sys/pipe.hpp"
#include "sys/tcp_socket.hpp"
#include "sys/test_support.hpp"

namespace hanare::job {
namespace {

using testing::bytes_of;
using testing::kPatience_ms;

Deadline soon() { return Deadline(kPatience_ms); }

// A connection on which anything can be said.
class RawPeer {
public:
    explicit RawPeer(const RendezvousPlace& place)
        : socket_(
              sys::connect_tcp(place.endpoint.host, place.endpoint.port, kPatience_ms).value()) {}

    void send(std::span<const std::byte> bytes) const {
        ASSERT_EQ(::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    void send(const Message& message) const {
        std::vector<std::byte> bytes;
        append(bytes, message);
        send(bytes);
    }
    void join(uint32_t rank, uint32_t size) const {
        send({.kind = MessageKind::kJoin, .rank = rank, .value = size, .data = data_of(0)});
    }
    void end_sending() const { shutdown(socket_.number(), SHUT_WR); }
    // Whether the other side closes, whatever it says before.
    bool is_closed_in_time() const {
        const Deadline deadline(kPatience_ms);
        char ignored[4096];
        while (!deadline.is_over()) {
            sys::wait_for_socket(socket_.number(), {.to_read = true}, deadline.left_ms());
            const ssize_t got = recv(socket_.number(), ignored, sizeof ignored, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
        }
        return false;
    }

private:
    sys::FileDescriptor socket_;
};

// The rendezvous does its work for those who keep to the rules.
void expect_in_order(const testing::Place& place, uint32_t rank = 0) {
    auto client = place.join(rank);
    ASSERT_TRUE(client) << client.error().text;
    ASSERT_TRUE(client->publish(bytes_of("well"), soon()));
    EXPECT_EQ(client->card_of(rank, soon()).value(), bytes_of("well"));
}

void all_find_each_other(const testing::Place& place) {
    std::vector<RendezvousClient> clients;
    for (uint32_t rank = 0; rank < place.size; ++rank) {
        auto client = place.join(rank);
        ASSERT_TRUE(client) << client.error().text;
        clients.push_back(std::move(*client));
    }
    for (uint32_t rank = 0; rank < place.size; ++rank) {
        ASSERT_TRUE(clients[rank].publish(bytes_of(std::string(rank, 'c')), soon()));
    }
    for (RendezvousClient& client : clients) {
        for (uint32_t rank = 0; rank < place.size; ++rank) {
            EXPECT_EQ(client.card_of(rank, soon()).value(), bytes_of(std::string(rank, 'c')));
            // Also when it is asked again.
            EXPECT_EQ(client.card_of(rank, soon()).value().size(), rank);
        }
    }
    EXPECT_EQ(clients[0].local_address().value(), "127.0.0.1");
}

TEST(Rendezvous, TasksFindEachOther) { all_find_each_other(testing::Place(5)); }
TEST(Rendezvous, Sealed) {
    all_find_each_other(testing::Place(5, true, fabric::Protection::kSealed));
}
TEST(Rendezvous, WithoutASecret) { all_find_each_other(testing::Place(5, false)); }

TEST(Rendezvous, CardsAreAwaited) {
    const testing::Place place(2);
    auto early = place.join(0).value();
    auto late = place.join(1).value();
    std::thread publisher([&] {
        // It is asked for before, or after; both must work, and the first is likely.
        const auto mine = early.card_of(1, soon());
        EXPECT_TRUE(mine);
        EXPECT_EQ(*mine, bytes_of("late"));
    });
    ASSERT_TRUE(late.publish(bytes_of("late"), soon()));
    publisher.join();
}

TEST(Rendezvous, AnAnswerThatComesTooLateIsNotLost) {
    const testing::Place place(3);
    auto asks = place.join(0).value();
    auto other = place.join(1).value();
    EXPECT_EQ(asks.card_of(1, Deadline(20)).error().status, HANARE_STATUS_TIMEOUT);
    EXPECT_EQ(asks.card_of(2, Deadline(20)).error().status, HANARE_STATUS_TIMEOUT);
    ASSERT_TRUE(other.publish(bytes_of("at last"), soon()));
    EXPECT_EQ(asks.card_of(1, soon()).value(), bytes_of("at last"));
}

// Threads of one task; that which waits for a card for ever holds up no other.
TEST(Rendezvous, ThreadsWaitForCardsSideBySide) {
    const testing::Place place(4);
    auto asks = place.join(0).value();
    // The question is on its way: the thread waits for nothing but the answer.
    EXPECT_EQ(asks.card_of(1, Deadline(0)).error().status, HANARE_STATUS_TIMEOUT);
    std::thread waits([&] { EXPECT_EQ(asks.card_of(1, soon()).value(), bytes_of("last")); });
    for (uint32_t rank : {2u, 3u}) {
        std::thread follows([&] { EXPECT_EQ(asks.card_of(rank, soon()).value(), bytes_of("x")); });
        auto other = place.join(rank).value();
        ASSERT_TRUE(other.publish(bytes_of("x"), soon()));
        EXPECT_EQ(asks.card_of(rank, soon()).value(), bytes_of("x"));
        follows.join();
    }
    EXPECT_EQ(asks.card_of(1, Deadline(0)).error().status, HANARE_STATUS_TIMEOUT);
    auto last = place.join(1).value();
    ASSERT_TRUE(last.publish(bytes_of("last"), soon()));
    waits.join();
}

TEST(Rendezvous, ThreadsThatWaitAllLearnOfTheEnd) {
    auto place = std::make_unique<testing::Place>(5);
    auto asks = place->join(0).value();
    std::vector<std::thread> threads;
    for (uint32_t rank = 1; rank < place->size; ++rank) {
        EXPECT_EQ(asks.card_of(rank, Deadline(0)).error().status, HANARE_STATUS_TIMEOUT);
        threads.emplace_back([&asks, rank] {
            EXPECT_EQ(asks.card_of(rank, soon()).error().status, HANARE_STATUS_SYSTEM);
        });
    }
    place.reset();
    for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, WhoEndsBeforePublishingIsNotAwaited) {
    const testing::Place place(2);
    auto waits = place.join(0).value();
    {
        auto ends = place.join(1).value();
        EXPECT_EQ(waits.card_of(1, Deadline(20)).error().status, HANARE_STATUS_TIMEOUT);
    }
    EXPECT_EQ(waits.card_of(1, soon()).error().status, HANARE_STATUS_PEER_LOST);
    // Another program of that task may come.
    auto again = place.join(1);
    ASSERT_TRUE(again) << again.error().text;
    ASSERT_TRUE(again->publish(bytes_of("here"), soon()));
    EXPECT_EQ(waits.card_of(1, soon()).value(), bytes_of("here"));
}

TEST(Rendezvous, CardsOutliveTheirTasks) {
    const testing::Place place(2);
    auto asks = place.join(0).value();
    {
        auto ends = place.join(1).value();
        ASSERT_TRUE(ends.publish(bytes_of("was here"), soon()));
        EXPECT_EQ(ends.card_of(1, soon()).value(), bytes_of("was here"));
    }
    EXPECT_EQ(asks.card_of(1, soon()).value(), bytes_of("was here"));
}

TEST(Rendezvous, ARankIsThereOnce) {
    const testing::Place place(2);
    auto first = place.join(0);
    ASSERT_TRUE(first);
    EXPECT_EQ(place.join(0).error().status, HANARE_STATUS_BUSY);
    expect_in_order(place, 1);
}

TEST(Rendezvous, OtherJobsAreRefused) {
    const testing::Place place(2);
    for (const RendezvousClient::Task& task :
         {RendezvousClient::Task{0, 3, 0}, {0, 2, 1}, {2, 2, 0}, {UINT32_MAX, 2, 0}}) {
        EXPECT_EQ(RendezvousClient::join(place.place, task, soon()).error().status,
                  HANARE_STATUS_INVALID_ARGUMENT);
    }
    expect_in_order(place);
}

TEST(Rendezvous, WhoDoesNotKnowTheSecretIsRefused) {
    const testing::Place place(2);
    testing::Place forged(2);  // somebody else's secret
    forged.place.endpoint = place.place.endpoint;
    EXPECT_EQ(forged.join(0).error().status, HANARE_STATUS_BAD_KEY);
    testing::Place none(2, false);
    none.place.endpoint = place.place.endpoint;
    EXPECT_FALSE(none.join(0));
    expect_in_order(place);
}

TEST(Rendezvous, SealedIsTheLeastWhereThatIsAskedFor) {
    const testing::Place place(1, true, fabric::Protection::kSealed);
    RendezvousPlace less = place.place;
    less.protection = fabric::Protection::kAuthenticated;
    EXPECT_EQ(RendezvousClient::join(less, {}, soon()).error().status, HANARE_STATUS_BAD_KEY);
    expect_in_order(place);
}

TEST(Rendezvous, OffLoopbackASecretIsNeeded) {
    EXPECT_EQ(RendezvousServer::open({.host = "0.0.0.0"}).error().status, HANARE_STATUS_PERMISSION);
    EXPECT_EQ(connect_to_rendezvous({.endpoint = {"192.0.2.1", 9}}, soon()).error().status,
              HANARE_STATUS_PERMISSION);
}

TEST(Rendezvous, TruncatedMessages) {
    const testing::Place place(2, false);
    std::vector<std::byte> join;
    append(join, {.kind = MessageKind::kJoin, .value = 2, .data = data_of(0)});
    for (size_t part = 0; part < join.size(); ++part) {
        const RawPeer peer(place.place);
        peer.send(std::span(join).first(part));
        peer.end_sending();
        EXPECT_TRUE(peer.is_closed_in_time()) << part;
    }
    expect_in_order(place);
}

TEST(Rendezvous, NonsenseEndsTheConnection) {
    const testing::Place place(2, false);
    const auto refused = [&](std::initializer_list<Message> messages) {
        const RawPeer peer(place.place);
        for (const Message& message : messages) peer.send(message);
        return peer.is_closed_in_time();
    };
    const Message join = {.kind = MessageKind::kJoin, .value = 2, .data = data_of(0)};
    const Message publish = {.kind = MessageKind::kPublish, .data = bytes_of("x")};
    const Message agent = {.kind = MessageKind::kAgent, .value = 2, .data = data_of(0)};
    EXPECT_TRUE(refused({publish}));
    EXPECT_TRUE(refused({{.kind = MessageKind::kAsk}}));
    EXPECT_TRUE(refused({join, join}));
    EXPECT_TRUE(refused({join, publish, publish}));
    EXPECT_TRUE(refused({join, {.kind = MessageKind::kAsk, .rank = 2}}));
    EXPECT_TRUE(refused(
        {join, {.kind = MessageKind::kAsk, .rank = 1}, {.kind = MessageKind::kAsk, .rank = 1}}));
    EXPECT_TRUE(refused({join, {.kind = MessageKind::kEnded}}));
    EXPECT_TRUE(refused({join, {.kind = MessageKind::kSignal, .value = 9}}));
    EXPECT_TRUE(refused({agent, publish}));
    EXPECT_TRUE(refused({agent, {.kind = MessageKind::kEnded, .rank = 2}}));
    EXPECT_TRUE(refused({agent, {.kind = MessageKind::kEnded}, {.kind = MessageKind::kEnded}}));
    for (const uint32_t count : {0u, 3u, UINT32_MAX}) {
        EXPECT_TRUE(refused({{.kind = MessageKind::kAgent, .value = count, .data = data_of(0)}}));
    }
    expect_in_order(place);
}

TEST(Rendezvous, OversizedMessages) {
    const testing::Place place(2, false);
    MessageHeader header = {.version = kMessageVersion,
                            .kind = static_cast<uint8_t>(MessageKind::kPublish),
                            .bytes = kMessageDataMax + 1,
                            .rank = 0,
                            .value = 0,
                            .check = 0};
    header.check = fabric::crc32c(0, reinterpret_cast<const std::byte*>(&header), sizeof header);
    const RawPeer peer(place.place);
    peer.join(0, 2);
    // The data that it announces is not waited for.
    peer.send(std::as_bytes(std::span(&header, 1)));
    EXPECT_TRUE(peer.is_closed_in_time());
    expect_in_order(place);
}

TEST(Rendezvous, PeersThatStallHoldUpNobody) {
    const testing::Place place(2);
    std::vector<std::unique_ptr<RawPeer>> silent;
    for (size_t i = 0; i < RendezvousServer::kStrangersMax + 20; ++i) {
        silent.push_back(std::make_unique<RawPeer>(place.place));
    }
    expect_in_order(place);
    // The oldest have made room.
    EXPECT_TRUE(silent.front()->is_closed_in_time());
}

TEST(Rendezvous, AnswersThatAreNotTaken) {
    constexpr uint32_t kSize = 20'000;
    const testing::Place place(kSize, false);
    const RawPeer greedy(place.place);
    greedy.join(0, kSize);
    // Nobody is rank 1 to kSize yet, so that all the answers come at once afterwards.
    for (uint32_t rank = 1; rank < kSize; ++rank) {
        greedy.send({.kind = MessageKind::kAsk, .rank = rank});
    }
    for (uint32_t rank = 1; rank < 3000; ++rank) {
        auto client = place.join(rank);
        ASSERT_TRUE(client) << rank << ": " << client.error().text;
        ASSERT_TRUE(client->publish(std::vector<std::byte>(Job::kCardBytesMax), soon()));
    }
    expect_in_order(place, 5000);
}

TEST(Rendezvous, ALauncherThatDies) {
    sys::Pipe pipe = sys::make_pipe().value();
    const pid_t launcher = fork();
    if (launcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const auto server = RendezvousServer::open({.host = "127.0.0.1", .size = 2}).value();
        const uint16_t port = server->port();
        if (write(pipe.to.number(), &port, sizeof port) != sizeof port) _exit(1);
        for (;;) {
            sys::wait_until_readable(server->descriptor(), -1, -1);
            server->serve();
        }
    }
    RendezvousPlace place = {.endpoint = {"127.0.0.1", 0}};
    ASSERT_TRUE(sys::read_exactly(pipe.from.number(),
                                  std::as_writable_bytes(std::span(&place.endpoint.port, 1)),
                                  kPatience_ms));
    auto client = RendezvousClient::join(place, {.rank = 0, .size = 2}, soon()).value();
    ASSERT_TRUE(client.publish(bytes_of("x"), soon()));
    EXPECT_EQ(client.card_of(0, soon()).value(), bytes_of("x"));
    // One that does not run is as good as none, for so long.
    kill(launcher, SIGSTOP);
    EXPECT_EQ(client.card_of(1, Deadline(50)).error().status, HANARE_STATUS_TIMEOUT);
    kill(launcher, SIGKILL);
    waitpid(launcher, nullptr, 0);
    // Which says nothing of the task.
    EXPECT_EQ(client.card_of(1, soon()).error().status, HANARE_STATUS_SYSTEM);
    EXPECT_EQ(RendezvousClient::join(place, {.rank = 0, .size = 2}, soon()).error().status,
              HANARE_STATUS_PEER_LOST);
}

// Where the first task serves the others.
TEST(Rendezvous, TheFirstTaskIsLostWithIt) {
    std::optional<testing::Place> place(3);
    const Endpoint endpoint = place->place.endpoint;
    const RendezvousClient::Task task = {.rank = 1, .size = 3};
    RendezvousJob job("slurm", place->join(1).value(), task, place->place.secret, "127.0.0.1",
                      nullptr, endpoint);
    place.reset();
    EXPECT_EQ(job.card_of(0, kPatience_ms).error().status, HANARE_STATUS_PEER_LOST);
    EXPECT_EQ(job.card_of(2, kPatience_ms).error().status, HANARE_STATUS_SYSTEM);
    // Somebody is there: only the connection is over.
    const auto listener = sys::listen_tcp(endpoint.host, endpoint.port);
    ASSERT_TRUE(listener) << listener.error().text;
    EXPECT_EQ(job.card_of(0, kPatience_ms).error().status, HANARE_STATUS_SYSTEM);
}

// Where the owner knows better, a connection that is over says nothing of a task.
TEST(Rendezvous, EndsThatTheOwnerNotes) {
    RendezvousServer::Settings settings = {.host = "127.0.0.1", .size = 2};
    settings.owner_notes_ends = true;
    const auto server = RendezvousServer::open(settings).value();
    RendezvousPlace place = {.endpoint = {"127.0.0.1", server->port()}};
    const auto serve_while = [&](const std::function<bool()>& condition) {
        const Deadline deadline(kPatience_ms);
        while (condition() && !deadline.is_over()) {
            sys::wait_until_readable(server->descriptor(), -1, 20);
            server->serve();
        }
        return !condition();
    };
    std::atomic<bool> has_left = false;
    std::atomic<int> answer = 1;
    std::thread tasks([&] {
        auto waits = RendezvousClient::join(place, {.rank = 0, .size = 2}, soon());
        {
            auto leaves = RendezvousClient::join(place, {.rank = 1, .size = 2}, soon());
        }
        has_left = true;
        answer = waits->card_of(1, soon()).error().status;
    });
    EXPECT_TRUE(serve_while([&] { return !has_left || server->departure_of(1) == 0; }));
    EXPECT_EQ(server->departure_of(0), 0u);
    EXPECT_EQ(answer, 1);
    server->note_end(1);
    EXPECT_TRUE(serve_while([&] { return answer == 1; }));
    EXPECT_EQ(answer, HANARE_STATUS_PEER_LOST);
    tasks.join();
}

// Agents, with the server in this thread.
class Agents : public ::testing::Test {
protected:
    using Report = RendezvousServer::Report;

    MessageStream connect(uint32_t first, uint32_t count) {
        MessageStream stream =
            connect_to_rendezvous({.endpoint = {"127.0.0.1", server_->port()}}, soon()).value();
        stream.queue(
            {.kind = MessageKind::kAgent, .rank = first, .value = count, .data = data_of(0)});
        EXPECT_TRUE(stream.flush(soon()));
        return stream;
    }
    Report next_report() {
        for (;;) {
            if (const auto report = server_->take_report()) return *report;
            EXPECT_TRUE(sys::wait_until_readable(server_->descriptor(), -1, kPatience_ms).first);
            server_->serve();
        }
    }

    std::unique_ptr<RendezvousServer> server_ =
        RendezvousServer::open({.host = "127.0.0.1", .size = 5}).value();
};

TEST_F(Agents, TellAndAreTold) {
    EXPECT_FALSE(server_->send_signal(2, SIGTERM));
    MessageStream agent = connect(2, 3);
    Report report = next_report();
    EXPECT_EQ(report.what, Report::What::kAgentCame);
    EXPECT_EQ(report.first_rank, 2u);
    EXPECT_EQ(agent.receive(soon()).value().status(), HANARE_STATUS_OK);
    EXPECT_TRUE(server_->send_signal(2, SIGTERM));
    const Message signal = agent.receive(soon()).value();
    EXPECT_EQ(signal.kind, MessageKind::kSignal);
    EXPECT_EQ(signal.value, static_cast<uint32_t>(SIGTERM));
    agent.queue({.kind = MessageKind::kEnded, .rank = 4, .value = 9});
    ASSERT_TRUE(agent.flush(soon()));
    report = next_report();
    EXPECT_EQ(report.what, Report::What::kTaskEnded);
    EXPECT_EQ(report.first_rank, 2u);
    EXPECT_EQ(report.rank, 4u);
    EXPECT_EQ(report.wait_status, 9);
    server_->release_agent(2);
    EXPECT_EQ(agent.receive(soon()).error().status, HANARE_STATUS_SYSTEM);
}

TEST_F(Agents, WhoIsLostIsTold) {
    connect(0, 1);
    EXPECT_EQ(next_report().what, Report::What::kAgentCame);
    EXPECT_EQ(next_report().what, Report::What::kAgentLost);
}

TEST_F(Agents, TheSameOneTwiceIsRefused) {
    MessageStream first = connect(0, 2);
    next_report();
    MessageStream second = connect(0, 2);
    ASSERT_TRUE(sys::wait_until_readable(server_->descriptor(), -1, kPatience_ms).first);
    server_->serve();
    Result<Message> answer = second.receive(Deadline(0));
    while (!answer && answer.error().status == HANARE_STATUS_TIMEOUT) {
        ASSERT_TRUE(sys::wait_until_readable(server_->descriptor(), -1, kPatience_ms).first);
        server_->serve();
        answer = second.receive(Deadline(0));
    }
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status(), HANARE_STATUS_BUSY);
}

}  // namespace
}  // namespace hanare::job
