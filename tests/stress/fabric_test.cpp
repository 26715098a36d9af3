// SPDX-License-Identifier: Apache-2.0
//
// Order and completion over all engines of the fabric at once: sources, two for each engine, post
// random operations on the memory of a process of its own, up to 32 at a time and in any mixture of
// sizes, while others do the same and regions' keys are revoked under them.
//
// Each source owns a range of a region, and knows from its own copy what every get must bring:
// operations of a pair take effect in the order in which they are posted, whatever is under way.
// Each adds to the counter of either region, UCX's memory included, pushes to one queue with a
// number that rises, and uses memory in turns of which some are revoked.  Where there is no UCX,
// nobody uses it.  HANARE_STRESS_STEPS sets the operations of each source,
// HANARE_STRESS_SEED the seed; both are printed.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "fabric/fifo.hpp"
#include "fabric/local_link.hpp"
#include "fabric/tcp_link.hpp"
#include "fabric/tcp_service.hpp"
#include "fabric/ucx_link.hpp"
#include "fabric/ucx_target.hpp"
#include "sys/clock.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::stress {
namespace {

using fabric::Capability;
using fabric::Kind;
using fabric::Operation;

constexpr size_t kRangeBytes = 256 * kKiB;
constexpr uint32_t kSourcesOfEngine = 2;
constexpr size_t kDepthMax = 32;
constexpr size_t kQueueBytes = 64 * kKiB;
constexpr uint64_t kPatience_ns = 60'000'000'000;

enum class Engine : uint32_t { kTcp, kSealed, kRing, kDirect, kUcx };
constexpr std::array kEngines = {Engine::kTcp, Engine::kSealed, Engine::kRing, Engine::kDirect,
                                 Engine::kUcx};
constexpr uint32_t kSources = kSourcesOfEngine * kEngines.size();
constexpr size_t kRegionBytes = kSources * kRangeBytes + kOsPageBytes;
constexpr uint64_t kCounter = kSources * kRangeBytes;

uint64_t number_from(const char* name, uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

// What the sources have to know of the target.
struct Address {
    uint16_t port = 0;
    uint16_t sealed_port = 0;
    bool has_ucx = false;
    Capability region;
    Capability queue;
    Capability card;        // of UCX
    Capability ucx_region;  // memory of UCX
};

// The capability that is revoked time and again, as the target hands it out: whole, or not at all.
struct Handout {
    std::atomic<uint32_t> version{0};  // odd: it is being changed
    Capability capability;

    void set(const Capability& next) {
        version.fetch_add(1);
        capability = next;
        version.fetch_add(1);
    }
};
// Of memory as it is, and of UCX's.
struct Handouts {
    Handout plain;
    Handout ucx;
};

bool take_from(const Handout& handout, Capability& capability) {
    const uint32_t before = handout.version.load();
    capability = handout.capability;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return before % 2 == 0 && before != 0 && handout.version.load() == before;
}

class Memory {
public:
    explicit Memory(size_t bytes)
        : file_(sys::create_shared_memory(bytes).value()),
          memory_(sys::Mapping::reserve(bytes, kOsPageBytes).value()) {
        EXPECT_TRUE(sys::map_shared(memory_, file_));
    }
    std::span<std::byte> all() const { return {memory_.address(), memory_.bytes()}; }
    Capability expose(fabric::ExposedRegions& regions, fabric::Rights rights) const {
        const uint32_t number = regions.expose(all(), rights, sys::duplicate(file_)).value();
        return regions.capability(number, rights).value();
    }

private:
    const sys::FileDescriptor file_;
    const sys::Mapping memory_;
};

constexpr fabric::Rights kUsual = fabric::kRead | fabric::kWrite | fabric::kAtomic;
constexpr fabric::Rights kFleeting = fabric::kRead | fabric::kWrite;

#ifdef HANARE_HAVE_UCX

// What the target has of UCX; regions live longer.
class UcxPart {
public:
    explicit UcxPart(std::unique_ptr<fabric::UcxContext> context, fabric::ExposedRegions& regions)
        : context_(std::move(context)),
          target_(fabric::UcxTarget::open(*context_, regions).value()),
          memory_(fabric::UcxMemory::allocate(*context_, kRegionBytes).value()),
          fleeting_(fabric::UcxMemory::allocate(*context_, kRangeBytes).value()),
          region_(target_->expose(*memory_, kUsual).value()),
          revoked_(target_->expose(*fleeting_, kFleeting).value()),
          regions_(regions),
          connecting_([this] { target_->run(); }) {}

    void tell(Address& address) const {
        address.has_ucx = true;
        address.card = target_->card();
        address.ucx_region = regions_.capability(region_, kUsual).value();
    }
    Capability fleeting() const { return regions_.capability(revoked_, kFleeting).value(); }
    bool revoke() { return target_->revoke(revoked_).has_value(); }

private:
    std::unique_ptr<fabric::UcxContext> context_;
    std::unique_ptr<fabric::UcxTarget> target_;
    std::unique_ptr<fabric::UcxMemory> memory_;
    std::unique_ptr<fabric::UcxMemory> fleeting_;
    uint32_t region_;
    uint32_t revoked_;
    fabric::ExposedRegions& regions_;
    std::jthread connecting_;
};

std::unique_ptr<UcxPart> open_ucx_part(fabric::ExposedRegions& regions) {
    auto context = fabric::UcxContext::open({});
    return context ? std::make_unique<UcxPart>(std::move(*context), regions) : nullptr;
}

#else

struct UcxPart {
    void tell(Address&) const {}
    Capability fleeting() const { return {}; }
    bool revoke() { return true; }
};
std::unique_ptr<UcxPart> open_ucx_part(fabric::ExposedRegions&) { return nullptr; }

#endif

// The target: serves, and revokes the keys of some regions time and again, until it is killed.
[[noreturn]] void serve(int out, const std::string& local_address, const fabric::Secret& secret,
                        Handouts& handouts) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const Memory memory(kRegionBytes);
    const Memory queue(kQueueBytes);
    const Memory fleeting(kRangeBytes);
    fabric::ExposedRegions regions;
    fabric::Fifo::format(queue.all());
    Address address;
    address.region = memory.expose(regions, kUsual);
    address.queue = queue.expose(regions, fabric::kPush | fabric::kPop);
    const std::unique_ptr<UcxPart> ucx = open_ucx_part(regions);
    if (ucx != nullptr) ucx->tell(address);
    const uint32_t revoked = fleeting.expose(regions, kFleeting).region;
    const auto open =
        fabric::TcpService::open(
            {.host = "127.0.0.1", .local_address = local_address, .spin_us = 10}, regions)
            .value();
    const auto sealed =
        fabric::TcpService::open({.host = "127.0.0.1", .secret = secret, .spin_us = 10}, regions)
            .value();
    address.port = open->port();
    address.sealed_port = sealed->port();
    if (write(out, &address, sizeof address) != sizeof address) _exit(1);
    std::jthread one([&] { open->run(); });
    std::jthread two([&] { sealed->run(); });
    for (;;) {
        handouts.plain.set(regions.capability(revoked, kFleeting).value());
        if (ucx != nullptr) handouts.ucx.set(ucx->fleeting());
        // Not an event: that it may happen at any moment is what it is for.
        usleep(2000);
        if (!regions.revoke(revoked) || (ucx != nullptr && !ucx->revoke())) _exit(1);
    }
}

class FabricStress : public testing::Test {
protected:
    FabricStress() {
        std::printf("HANARE_STRESS_SEED=%llu HANARE_STRESS_STEPS=%llu\n",
                    static_cast<unsigned long long>(seed), static_cast<unsigned long long>(steps));
        std::fflush(stdout);
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        child = fork();
        if (child == 0) serve(ends[1], local_address, secret, handouts);
        close(ends[1]);
        EXPECT_EQ(read(ends[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
        close(ends[0]);
        open_ucx();
    }
    ~FabricStress() override {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }

    std::unique_ptr<fabric::Link> connect(Engine engine) const {
        if (engine == Engine::kRing || engine == Engine::kDirect) {
            return fabric::LocalLink::connect({.address = local_address,
                                               .spin_us = 10,
                                               .is_direct = engine == Engine::kDirect})
                .value();
        }
        fabric::TcpLink::Settings settings = {
            .host = "127.0.0.1", .port = address.port, .secret = {}, .spin_us = 10};
        if (engine == Engine::kSealed) {
            settings.port = address.sealed_port;
            settings.secret = secret;
        }
        std::unique_ptr<fabric::Link> link = fabric::TcpLink::connect(settings).value();
        return engine == Engine::kUcx ? extend_by_ucx(std::move(link)) : std::move(link);
    }

    uint64_t counter_of(const Capability& region) const {
        uint64_t counter = 0;
        Operation get;
        get.kind = Kind::kGet;
        get.capability = region;
        get.offset = kCounter;
        get.deadline_ns = sys::now_ns() + kPatience_ns;
        get.destination = std::as_writable_bytes(std::span(&counter, 1));
        EXPECT_EQ(connect(Engine::kTcp)->carry_out(get), HANARE_STATUS_OK);
        return counter;
    }

    // By which of the engines a source goes; without UCX its place is another one's.
    Engine engine_of(uint32_t number) const {
        const Engine engine = kEngines[number % kEngines.size()];
        return engine == Engine::kUcx && !address.has_ucx ? Engine::kTcp : engine;
    }

    const uint64_t seed = number_from("HANARE_STRESS_SEED", std::random_device{}());
    const uint64_t steps = number_from("HANARE_STRESS_STEPS", 6000);
    const std::string local_address = "@hanare-stress-" + std::to_string(getpid());
    const fabric::Secret secret = fabric::Secret::make().value();
    const sys::Mapping shared = sys::Mapping::reserve_shared(kOsPageBytes).value();
    Handouts& handouts = *new (shared.address()) Handouts;
    Address address;
    pid_t child = 0;

private:
#ifdef HANARE_HAVE_UCX
    void open_ucx() {
        if (address.has_ucx) context_ = fabric::UcxContext::open({}).value();
    }
    std::unique_ptr<fabric::Link> extend_by_ucx(std::unique_ptr<fabric::Link> link) const {
        return fabric::UcxLink::connect(*context_, link, {.card = address.card}).value();
    }
    std::unique_ptr<fabric::UcxContext> context_;
#else
    void open_ucx() {}
    std::unique_ptr<fabric::Link> extend_by_ucx(std::unique_ptr<fabric::Link> link) const {
        return link;
    }
#endif
};

// One thread with a link of its own.
class Source {
public:
    // By UCX it uses UCX's memory.
    Source(std::unique_ptr<fabric::Link> link, bool is_by_ucx, const Address& address,
           const Handouts& handouts, uint32_t number, uint64_t seed)
        : link_(std::move(link)),
          address_(address),
          region_(is_by_ucx ? address.ucx_region : address.region),
          handout_(is_by_ucx ? handouts.ucx : handouts.plain),
          number_(number),
          prng_(seed + number),
          range_(kRangeBytes) {}
    ~Source() { link_->end(); }

    void run(uint64_t steps) {
        for (uint64_t step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
            while (flights_.size() >= depth_) finish_oldest();
            if (prng_.below(64) == 0) depth_ = 1 + prng_.below(kDepthMax);
            post();
        }
        while (!flights_.empty()) finish_oldest();
    }
    uint64_t added() const { return added_; }
    uint64_t added_to_ucx() const { return added_to_ucx_; }
    uint64_t pushed() const { return pushed_; }
    // Operations on the region that is revoked, which went well.
    uint64_t fleeting() const { return fleeting_; }

private:
    struct Flight {
        Operation operation;
        std::vector<std::byte> data;
        std::vector<std::byte> expected;  // of a get on the own range
        bool is_fleeting = false;
        uint64_t word = 0;  // of a fleeting one
        uint64_t least = 0;
    };

    void post() {
        auto flight = std::make_unique<Flight>();
        Operation& operation = flight->operation;
        operation.deadline_ns = sys::now_ns() + kPatience_ns;
        const uint64_t dice = prng_.below(16);
        if (dice < 6) {
            prepare_put(*flight);
        } else if (dice < 12) {
            prepare_get(*flight);
        } else if (dice < 14) {
            const bool is_to_ucx = address_.has_ucx && prng_.below(2) == 0;
            operation.kind = Kind::kFetch;
            operation.capability = is_to_ucx ? address_.ucx_region : address_.region;
            operation.offset = kCounter;
            operation.operand = 1 + prng_.below(5);
            operation.wakes = prng_.below(4) == 0;
            (is_to_ucx ? added_to_ucx_ : added_) += operation.operand;
        } else if (dice < 15) {
            prepare_message(*flight);
        } else {
            prepare_fleeting(*flight);
        }
        link_->post(operation);
        flights_.push_back(std::move(flight));
    }
    void place(Flight& flight) {
        const size_t bytes = prng_.below(8) == 0 ? prng_.below(kRangeBytes / 2) : prng_.below(2000);
        const size_t offset = prng_.below(kRangeBytes - bytes + 1);
        flight.data.resize(bytes);
        flight.operation.capability = region_;
        flight.operation.offset = number_ * kRangeBytes + offset;
    }
    std::span<std::byte> own_copy(const Flight& flight) {
        return std::span(range_).subspan(flight.operation.offset - number_ * kRangeBytes,
                                         flight.data.size());
    }
    void prepare_put(Flight& flight) {
        place(flight);
        for (std::byte& byte : flight.data) byte = static_cast<std::byte>(prng_.next());
        std::ranges::copy(flight.data, own_copy(flight).begin());
        flight.operation.source = flight.data;
    }
    void prepare_get(Flight& flight) {
        place(flight);
        const std::span<std::byte> now = own_copy(flight);
        flight.expected.assign(now.begin(), now.end());
        flight.operation.kind = Kind::kGet;
        flight.operation.destination = flight.data;
    }
    // Who it is from, and how many it has sent before.
    void prepare_message(Flight& flight) {
        // It may be full; the number counts what was taken, and must be known before the next.
        while (!flights_.empty()) finish_oldest();
        const std::array<uint64_t, 2> message = {number_, pushed_};
        flight.data.resize(sizeof message);
        std::memcpy(flight.data.data(), message.data(), sizeof message);
        flight.operation.kind = Kind::kPush;
        flight.operation.capability = address_.queue;
        flight.operation.source = flight.data;
    }
    // This source's word there, whose value only rises: what an operation with status OK has put
    // stays, whatever is revoked.
    void prepare_fleeting(Flight& flight) {
        Operation& operation = flight.operation;
        flight.is_fleeting = true;
        const bool has_key = take_from(handout_, operation.capability);
        if (!has_key) operation.capability = address_.queue;  // which does not allow it
        operation.offset = number_ * sizeof(uint64_t);
        const std::span<std::byte> word = std::as_writable_bytes(std::span(&flight.word, 1));
        operation.kind = prng_.below(2) == 0 ? Kind::kPut : Kind::kGet;
        if (operation.kind == Kind::kPut) flight.word = ++fleeting_put_;
        flight.least = fleeting_known_;
        operation.source = word;
        operation.destination = word;
    }
    void finish_fleeting(const Flight& flight, hanare_status status) {
        if (status != HANARE_STATUS_OK) {
            EXPECT_TRUE(status == HANARE_STATUS_BAD_KEY || status == HANARE_STATUS_PERMISSION)
                << status;
            return;
        }
        ++fleeting_;
        if (flight.operation.kind == Kind::kPut) {
            fleeting_known_ = std::max(fleeting_known_, flight.word);
        } else {
            EXPECT_GE(flight.word, flight.least) << "of source " << number_;
            EXPECT_LE(flight.word, fleeting_put_) << "of source " << number_;
        }
    }
    void finish_oldest() {
        const std::unique_ptr<Flight> flight = std::move(flights_.front());
        flights_.pop_front();
        Operation& operation = flight->operation;
        if (prng_.below(4) == 0) {
            while (!link_->test(operation)) std::this_thread::yield();
        }
        const hanare_status status = link_->wait(operation);
        if (flight->is_fleeting) {
            finish_fleeting(*flight, status);
        } else if (operation.kind == Kind::kPush) {
            // Busy: another one was not running just then, with the queue's lock.
            EXPECT_TRUE(status == HANARE_STATUS_OK || status == HANARE_STATUS_FULL ||
                        status == HANARE_STATUS_BUSY)
                << status;
            if (status == HANARE_STATUS_OK) ++pushed_;
        } else {
            EXPECT_EQ(status, HANARE_STATUS_OK);
            EXPECT_TRUE(operation.kind != Kind::kGet || flight->data == flight->expected)
                << "source " << number_ << " got something else than it has put";
        }
    }

    const std::unique_ptr<fabric::Link> link_;
    const Address address_;
    const Capability region_;
    const Handout& handout_;
    const uint64_t number_;
    Prng prng_;
    std::vector<std::byte> range_;  // as the target's must be
    std::deque<std::unique_ptr<Flight>> flights_;
    size_t depth_ = 8;
    uint64_t added_ = 0;
    uint64_t added_to_ucx_ = 0;
    uint64_t pushed_ = 0;
    uint64_t fleeting_ = 0;
    uint64_t fleeting_put_ = 0;    // the last word that was tried
    uint64_t fleeting_known_ = 0;  // the last that has arrived
};

// Takes messages until all sources have ended and the queue is empty; each source's are in order.
std::array<uint64_t, kSources> take_messages(fabric::Link& link, const Capability& queue,
                                             const std::atomic<bool>& is_over) {
    std::array<uint64_t, kSources> taken{};
    for (;;) {
        const bool was_over = is_over.load();
        std::array<uint64_t, 2> message{};
        Operation pop;
        pop.kind = Kind::kPop;
        pop.capability = queue;
        pop.destination = std::as_writable_bytes(std::span(message));
        pop.deadline_ns = sys::now_ns() + kPatience_ns;
        const hanare_status status = link.carry_out(pop);
        if (status == HANARE_STATUS_EMPTY && was_over) return taken;
        if (status == HANARE_STATUS_EMPTY || status == HANARE_STATUS_BUSY) {
            std::this_thread::yield();
            continue;
        }
        EXPECT_EQ(status, HANARE_STATUS_OK);
        if (status != HANARE_STATUS_OK || message[0] >= kSources) return taken;
        EXPECT_EQ(message[1], taken[message[0]]) << "of source " << message[0];
        ++taken[message[0]];
    }
}

TEST_F(FabricStress, OrderAndCompletion) {
    std::vector<std::unique_ptr<Source>> sources;
    for (uint32_t number = 0; number < kSources; ++number) {
        const Engine engine = engine_of(number);
        sources.push_back(std::make_unique<Source>(connect(engine), engine == Engine::kUcx, address,
                                                   handouts, number, seed));
    }
    std::atomic<bool> is_over{false};
    std::array<uint64_t, kSources> taken{};
    std::jthread consumer([&] {
        const auto link = connect(Engine::kRing);
        taken = take_messages(*link, address.queue, is_over);
    });
    {
        std::vector<std::jthread> threads;
        for (const auto& source : sources) {
            threads.emplace_back([&] { source->run(steps); });
        }
    }
    is_over = true;
    consumer.join();
    uint64_t added = 0;
    uint64_t added_to_ucx = 0;
    for (uint32_t number = 0; number < kSources; ++number) {
        added += sources[number]->added();
        added_to_ucx += sources[number]->added_to_ucx();
        EXPECT_EQ(taken[number], sources[number]->pushed()) << "of source " << number;
        EXPECT_GT(sources[number]->fleeting(), 0u) << "of source " << number;
    }
    EXPECT_EQ(counter_of(address.region), added);
    if (address.has_ucx) {
        EXPECT_EQ(counter_of(address.ucx_region), added_to_ucx);
    }
}

}  // namespace
}  // namespace hanare::stress
