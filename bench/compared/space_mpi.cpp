// SPDX-License-Identifier: Apache-2.0
//
// hanare-bench-space-MPI MODE CASE...: MPI between processes of one machine.  MODE is `plain` or
// `space`, in which all ranks have one memory.  Rank 0 prints a line "CASE BYTES VALUE" for each
// size:
//
//   pingpong, bcast, allreduce, alltoall   microseconds of one operation (pingpong: one way)
//   fork      microseconds of a fork of rank 0 and the end of its child, which does nothing, while
//   the
//             others have BYTES of memory each
//   memory    KiB of all ranks: of page tables and in all, after an exchange of all with all
//             (alltoall_tables, alltoall_memory) and with a window of BYTES that all have touched
//             (window_tables, window_memory)
//
// Contents are checked behind each series.  Ends with status 1 where they are wrong.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t kBytesMax = size_t{8} << 20;
constexpr double kSeriesUs = 20'000;
constexpr int kIterationsMax = 2000;
constexpr size_t kAlignment = 4096;
constexpr size_t kWindowBytes = size_t{512} << 20;

int rank = 0;
int ranks = 0;

// Who polls then keeps others from answering, for a time slice: few and short series.
bool are_crowded() { return ranks > sysconf(_SC_NPROCESSORS_ONLN); }

struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<unsigned char[], Free>;

Buffer buffer_of(size_t bytes, int first) {
    auto* const memory = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, bytes));
    if (memory == nullptr) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<unsigned char>(i * 7 + first);
    return Buffer(memory);
}

void check(bool is_right, const char* what) {
    if (is_right) return;
    std::fprintf(stderr, "rank %d: %s: something else has arrived\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void check_content(const unsigned char* memory, size_t bytes, int first, const char* what) {
    for (size_t i = 0; i < bytes; ++i) {
        if (memory[i] != static_cast<unsigned char>(i * 7 + first)) return check(false, what);
    }
}

// Of one call, as often as takes a while; all ranks together.
template <typename Operation>
double time_us(Operation operation) {
    const int warm_ups = are_crowded() ? 1 : 5;
    const auto series = [&](int count) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < count; ++i) operation();
        double us = (MPI_Wtime() - begin) * 1e6;
        MPI_Bcast(&us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return us / count;
    };
    const double guess = std::max(series(warm_ups), 0.1);
    const int count =
        std::clamp(static_cast<int>(kSeriesUs / guess), are_crowded() ? 1 : 3, kIterationsMax);
    return series(count);
}

void tell(const char* name, size_t bytes, double value) {
    if (rank != 0) return;
    std::printf("%s %zu %.4f\n", name, bytes, value);
    std::fflush(stdout);
}

void pingpong() {
    const Buffer out = buffer_of(kBytesMax, rank);
    const Buffer in = buffer_of(kBytesMax, 100);
    for (size_t bytes = 1; bytes <= kBytesMax; bytes *= bytes < 1024 ? 8 : 2) {
        if (bytes == 512) bytes = 1024;
        const int count = static_cast<int>(bytes);
        std::memset(in.get(), 0, bytes);
        const double us = time_us([&] {
            if (rank == 0) {
                MPI_Send(out.get(), count, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(in.get(), count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank == 1) {
                MPI_Recv(in.get(), count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(out.get(), count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        });
        if (rank < 2) check_content(in.get(), bytes, 1 - rank, "pingpong");
        tell("pingpong", bytes, us / 2);
    }
}

std::vector<size_t> collective_sizes() {
    if (are_crowded()) return {8, 65536};
    return {8, 4096, 65536, size_t{1} << 20};
}

void broadcast() {
    const Buffer memory = buffer_of(kBytesMax, rank);
    for (const size_t bytes : collective_sizes()) {
        const auto count = static_cast<int>(bytes);
        const double us =
            time_us([&] { MPI_Bcast(memory.get(), count, MPI_BYTE, 0, MPI_COMM_WORLD); });
        check_content(memory.get(), bytes, 0, "bcast");
        tell("bcast", bytes, us);
    }
}

void allreduce() {
    for (const size_t bytes : collective_sizes()) {
        const auto count = static_cast<int>(bytes / sizeof(uint64_t));
        std::vector<uint64_t> out(static_cast<size_t>(count), static_cast<uint64_t>(rank) + 1);
        std::vector<uint64_t> in(static_cast<size_t>(count));
        const double us = time_us([&] {
            MPI_Allreduce(out.data(), in.data(), count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        });
        const uint64_t sum = static_cast<uint64_t>(ranks) * (static_cast<uint64_t>(ranks) + 1) / 2;
        for (const uint64_t value : in) check(value == sum, "allreduce");
        tell("allreduce", bytes, us);
    }
}

// `bytes` for each other rank.
void exchange(size_t bytes, double* us) {
    const auto all = static_cast<size_t>(ranks);
    const Buffer out = buffer_of(bytes * all, 0);
    const Buffer in = buffer_of(bytes * all, 1);
    for (size_t to = 0; to < all; ++to) {
        std::memset(out.get() + to * bytes, rank * 16 + static_cast<int>(to % 16), bytes);
    }
    const auto operation = [&] {
        MPI_Alltoall(out.get(), static_cast<int>(bytes), MPI_BYTE, in.get(),
                     static_cast<int>(bytes), MPI_BYTE, MPI_COMM_WORLD);
    };
    if (us != nullptr) {
        *us = time_us(operation);
    } else {
        operation();
    }
    for (size_t from = 0; from < all; ++from) {
        const auto value = static_cast<unsigned char>(static_cast<int>(from) * 16 + rank % 16);
        const unsigned char* const part = in.get() + from * bytes;
        check(std::all_of(part, part + bytes, [&](unsigned char each) { return each == value; }),
              "alltoall");
    }
}

void alltoall() {
    for (const size_t bytes : collective_sizes()) {
        double us = 0;
        exchange(bytes, &us);
        tell("alltoall", bytes, us);
    }
}

// Of this process's memory, from a file of the kernel.
long figure_kib(const char* path, const char* name) {
    long kib = 0;
    std::FILE* const file = std::fopen(path, "r");
    char line[256];
    const size_t length = std::strlen(name);
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        if (std::strncmp(line, name, length) == 0) kib = std::atol(line + length);
    }
    if (file != nullptr) std::fclose(file);
    return kib;
}

// Of all ranks: each says its own, or that of the memory that all have.
void tell_memory(const char* what, size_t bytes, bool is_space) {
    const auto tell_figure = [&](const char* suffix, const char* path, const char* name) {
        MPI_Barrier(MPI_COMM_WORLD);
        const long own_kib = figure_kib(path, name);
        long kib = 0;
        MPI_Reduce(&own_kib, &kib, 1, MPI_LONG, is_space ? MPI_MAX : MPI_SUM, 0, MPI_COMM_WORLD);
        tell((std::string(what) + suffix).c_str(), bytes, static_cast<double>(kib));
    };
    tell_figure("_tables", "/proc/self/status", "VmPTE:");
    // What several have is divided among them.
    tell_figure("_memory", "/proc/self/smaps_rollup", "Pss:");
}

void memory(bool is_space) {
    constexpr size_t kExchanged = 4096;
    exchange(kExchanged, nullptr);
    tell_memory("alltoall", kExchanged, is_space);
    const size_t own_bytes = kWindowBytes / static_cast<size_t>(ranks);
    unsigned char* own = nullptr;
    MPI_Win window;
    MPI_Win_allocate_shared(static_cast<MPI_Aint>(own_bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                            &own, &window);
    MPI_Win_fence(0, window);
    std::memset(own, rank + 1, own_bytes);
    MPI_Win_fence(0, window);
    for (int other = 0; other < ranks; ++other) {
        MPI_Aint bytes = 0;
        int unit = 0;
        unsigned char* theirs = nullptr;
        MPI_Win_shared_query(window, other, &bytes, &unit, &theirs);
        for (size_t at = 0; at < own_bytes; at += kAlignment) {
            check(theirs[at] == static_cast<unsigned char>(other + 1), "memory");
        }
    }
    MPI_Win_fence(0, window);
    tell_memory("window", kWindowBytes, is_space);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

// Without a processor's time, but for rank 0.
void wait_idly() {
    MPI_Request arrival;
    MPI_Ibarrier(MPI_COMM_WORLD, &arrival);
    for (int has_come = 0; has_come == 0;) {
        MPI_Test(&arrival, &has_come, MPI_STATUS_IGNORE);
        if (has_come == 0) usleep(1000);
    }
}

// Of rank 0, while the others have BYTES of memory each; the median.
void fork_beside() {
    constexpr int kForks = 51;
    constexpr size_t kNeighbourBytes = size_t{256} << 20;
    const Buffer memory = buffer_of(rank == 0 ? 1 : kNeighbourBytes, rank);
    wait_idly();
    if (rank == 0) {
        std::vector<double> all;
        for (int i = 0; i < kForks; ++i) {
            const double begin = MPI_Wtime();
            const pid_t child = fork();
            if (child == 0) _exit(0);
            int status = -1;
            check(waitpid(child, &status, 0) == child && status == 0, "fork");
            all.push_back((MPI_Wtime() - begin) * 1e6);
        }
        std::ranges::sort(all);
        tell("fork", kNeighbourBytes, all[kForks / 2]);
    }
    wait_idly();
}

// Or the launcher was told so for nothing: the tasks of a space have its root as their parent.
bool is_task_of_a_space() {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/comm", static_cast<int>(getppid()));
    std::FILE* const file = std::fopen(path, "r");
    char name[32] = "";
    if (file != nullptr) {
        if (std::fgets(name, sizeof name, file) == nullptr) name[0] = '\0';
        std::fclose(file);
    }
    return std::string_view(name).starts_with("hanare-space");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string_view mode = argc > 1 ? argv[1] : "";
    check((mode == "space") == is_task_of_a_space(), "mode");
    for (int i = 2; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "pingpong") pingpong();
        if (name == "bcast") broadcast();
        if (name == "allreduce") allreduce();
        if (name == "alltoall") alltoall();
        if (name == "memory") memory(mode == "space");
        if (name == "fork") fork_beside();
    }
    MPI_Finalize();
    return 0;
}
