// SPDX-License-Identifier: Apache-2.0
//
// churn ROUNDS: threads that allocate, grow, move and free, look whether what they wrote is there,
// and throw through a few frames.  Prints "right" or what is wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

thread_local uint64_t own_number = 0;

struct Piece {
    unsigned char* memory = nullptr;
    size_t bytes = 0;
    unsigned char value = 0;

    bool is_right() const {
        for (size_t i = 0; i < bytes; i += 61) {
            if (memory[i] != value) return false;
        }
        return bytes == 0 || memory[bytes - 1] == value;
    }
};

struct Counted {
    explicit Counted(int& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    int& count_;
};

int deep(int depth, int& alive) {
    const Counted counted(alive);
    if (depth == 0) throw std::runtime_error(std::string(50, 'x'));
    return deep(depth - 1, alive) + 1;
}

bool catches() {
    int alive = 0;
    try {
        deep(20, alive);
    } catch (const std::runtime_error& error) {
        return alive == 0 && std::string(error.what()).size() == 50;
    }
    return false;
}

const char* churn(unsigned seed, int rounds) {
    std::mt19937 random(seed);
    own_number = seed;
    std::vector<Piece> pieces(200);
    for (int round = 0; round < rounds; ++round) {
        Piece& piece = pieces[random() % pieces.size()];
        if (!piece.is_right()) return "memory holds something else";
        // From a few bytes to what malloc maps by itself.
        const size_t bytes = size_t{1} << (random() % 19);
        if (random() % 3 == 0) {
            std::free(piece.memory);
            piece = {};
            continue;
        }
        auto* const grown = static_cast<unsigned char*>(std::realloc(piece.memory, bytes));
        if (grown == nullptr) return "realloc fails";
        const size_t kept = piece.bytes < bytes ? piece.bytes : bytes;
        piece.memory = grown;
        piece.bytes = kept;
        if (!piece.is_right()) return "realloc lost something";
        piece.bytes = bytes;
        piece.value = static_cast<unsigned char>(random());
        std::memset(piece.memory, piece.value, bytes);
        if (round % 100 == 0 && !catches()) return "an exception went astray";
    }
    for (Piece& piece : pieces) std::free(piece.memory);
    return own_number == seed ? nullptr : "a thread's variable changed";
}

}  // namespace

int main(int, char** argv) {
    const int rounds = std::atoi(argv[1]);
    constexpr int kThreads = 3;
    const char* wrong[kThreads] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const auto seed = static_cast<unsigned>(getpid() * 7 + i);
            wrong[i] = churn(seed, rounds);
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const char* text : wrong) {
        if (text != nullptr) {
            std::puts(text);
            return 1;
        }
    }
    std::puts("right");
    return 0;
}
