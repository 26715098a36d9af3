// SPDX-License-Identifier: Apache-2.0
//
// One-sided MPI with passive target: rank 0 is the source, rank 1 the target, whose part is to call
// the library often.  For two processes of one machine, which their launcher has told to use TCP.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/compared/compared_system.hpp"
#include "bench/compared/networks.hpp"

namespace hanare::bench {
namespace {

constexpr int kSource = 0;
constexpr int kTarget = 1;

class MpiSystem : public ComparedSystem {
public:
    // Both ranks at once; so it ends.
    explicit MpiSystem(int rank) {
        const size_t bytes = rank == kTarget ? kFabricRegionBytes : 0;
        std::byte* memory = nullptr;
        MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                         &window_);
        if (rank == kTarget) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window_);
            fill_fabric_region({memory, bytes});
            MPI_Win_unlock(kTarget, window_);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~MpiSystem() override { MPI_Win_free(&window_); }
    MpiSystem(const MpiSystem&) = delete;

    Result<double> run(const FabricCase& which, uint64_t seed) override {
        requests_.assign(which.depth, MPI_REQUEST_NULL);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
        Result<double> us = FlightSource::run(which, seed);
        MPI_Win_unlock_all(window_);
        return us;
    }
    // Any call does that.
    void progress() override {
        int is_there = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    }
    Result<void> get_alone(uint64_t offset, std::span<std::byte> data) override {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window_);
        const int bytes = static_cast<int>(data.size());
        MPI_Get(data.data(), bytes, MPI_BYTE, kTarget, static_cast<MPI_Aint>(offset), bytes,
                MPI_BYTE, window_);
        MPI_Win_unlock(kTarget, window_);
        return {};
    }

private:
    Result<void> begin(const FabricCase& which, size_t slot, FabricFlight& flight) override {
        const auto offset = static_cast<MPI_Aint>(flight.offset);
        const int bytes = static_cast<int>(which.bytes);
        std::byte* const data = flight.data.data();
        switch (which.action) {
            case FabricAction::kGet:
                if (which.depth == 1) {
                    MPI_Get(data, bytes, MPI_BYTE, kTarget, offset, bytes, MPI_BYTE, window_);
                } else {
                    MPI_Rget(data, bytes, MPI_BYTE, kTarget, offset, bytes, MPI_BYTE, window_,
                             &requests_[slot]);
                }
                break;
            case FabricAction::kPut:
                MPI_Put(data, bytes, MPI_BYTE, kTarget, offset, bytes, MPI_BYTE, window_);
                break;
            case FabricAction::kFetchAdd:
                MPI_Fetch_and_op(&kOne, &flight.value, MPI_UINT64_T, kTarget, offset, MPI_SUM,
                                 window_);
                break;
        }
        return {};
    }
    // A get is over when its data is here; the others have to be there.
    Result<void> end(const FabricCase& which, size_t slot, FabricFlight&) override {
        if (which.action == FabricAction::kGet && which.depth > 1) {
            MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE);
        } else {
            MPI_Win_flush(kTarget, window_);
        }
        return {};
    }

    static constexpr uint64_t kOne = 1;
    MPI_Win window_ = MPI_WIN_NULL;
    std::vector<MPI_Request> requests_;
};

using Name = std::array<char, 60>;

// Where the target waits for the source.
Name name_of_target() {
    Name name = {};
    std::snprintf(name.data(), name.size(), "@hanare-bench-mpi-%d", getpid());
    return name;
}

// Of a target: it listens where the source is, and goes to its network.  Of a source: nothing.
Result<sys::FileDescriptor> prepare(int rank) {
    if (rank != kTarget) return sys::FileDescriptor();
    HANARE_TRY_ASSIGN(sys::FileDescriptor listener, Control::listen(name_of_target().data()));
    HANARE_TRY(enter_target_network());
    return listener;
}

// The rank that this will be, as the launchers of Open MPI and MPICH say.
int rank_of_launcher() {
    for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
        if (const char* const rank = std::getenv(name)) return std::atoi(rank);
    }
    return kSource;
}

// The source learns from the target where they meet.
Result<Control> meet(int rank, const sys::FileDescriptor& listener) {
    Name name = {};
    if (rank == kSource) {
        MPI_Recv(name.data(), name.size(), MPI_CHAR, kTarget, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return Control::connect(name.data());
    }
    name = name_of_target();
    MPI_Send(name.data(), name.size(), MPI_CHAR, kSource, 0, MPI_COMM_WORLD);
    return Control::accept(listener);
}

Result<void> take_part(int rank, const sys::FileDescriptor& listener) {
    HANARE_TRY_ASSIGN(Control control, meet(rank, listener));
    MpiSystem system(rank);
    if (rank == kTarget) return be_target(system, control);
    const Result<void> result = be_source(system, control);
    // The other rank could not learn of it where both have to end together.
    if (!result) MPI_Abort(MPI_COMM_WORLD, exit_status_of(result));
    control = Control(sys::FileDescriptor());
    return result;
}

}  // namespace
}  // namespace hanare::bench

int main(int argc, char** argv) {
    // Networks are looked for in MPI_Init.
    const auto listener = hanare::bench::prepare(hanare::bench::rank_of_launcher());
    if (!listener) return hanare::bench::exit_status_of(std::unexpected(listener.error()));
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        std::fprintf(stderr, "%s: for two processes, not %d\n", argv[0], ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int status = hanare::bench::exit_status_of(hanare::bench::take_part(rank, *listener));
    MPI_Finalize();
    return status;
}
