/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat in a block, in C++: a stencil is a lambda.  The grid is larger than the memory that it may
 * use; the result is compared with the exact solution, and a section ends in a picture (PGM).
 *
 *     example_stencil_heat [CELLS [STEPS [PICTURE]]]
 */
#include <hanare/stencil.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

namespace {

bool write_picture(const char* path, const std::vector<float>& cells, std::uint64_t rows,
                   std::uint64_t columns) {
    std::ofstream file(path, std::ios::binary);
    file << "P5\n" << columns << " " << rows << "\n255\n";
    for (const float cell : cells) file.put(static_cast<char>(std::lround(255 * cell)));
    return file.flush().good();
}

}  // namespace

int main(int argc, char** argv) try {
    const std::uint64_t cells = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256;
    const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200;
    const char* const picture = argc > 3 ? argv[3] : "stencil_heat.pgm";

    /* One quarter of what the cells take, but not less than some windows. */
    const std::uint64_t bytes = 2 * cells * cells * cells * sizeof(float);
    hanare::Grid<float> grid({.shape = {2 * cells, cells, cells},
                              .memory_bytes = std::max<std::uint64_t>(bytes / 4, 16u << 20),
                              .place = hanare::GridPlace::kFile});
    /* A product of waves that are zero at the outermost cells, which stay as they are. */
    const auto wave = [](std::uint64_t at, std::uint64_t count, int half_waves) {
        return std::sin(std::numbers::pi * half_waves * static_cast<double>(at) /
                        static_cast<double>(count - 1));
    };
    const auto start = [&](std::uint64_t z, std::uint64_t y, std::uint64_t x) {
        const double product = wave(z, 2 * cells, 6) * wave(y, cells, 3) * wave(x, cells, 3);
        return 0.5 + 0.5 * product;
    };
    grid.fill("u", start);

    const float k = 0.15f;
    const auto result = grid.run(steps, [=](const auto& u) {
        const float around =
            u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) + u(0, 0, 1);
        const float change = k * (around - 6 * u(0, 0, 0));
        return std::tuple(u(0, 0, 0) + change, hanare::max(std::abs(change)));
    });

    /* Each step takes the same part of each wave. */
    const auto kept = [](std::uint64_t count, int half_waves) {
        return 2 * std::cos(std::numbers::pi * half_waves / static_cast<double>(count - 1)) - 2;
    };
    const double factor =
        std::pow(1 + k * (kept(2 * cells, 6) + 2 * kept(cells, 3)), static_cast<double>(steps));
    const std::uint64_t middle = cells / 3;
    std::vector<float> section(cells * cells);
    grid.read("u", {middle, 0, 0}, {1, cells, cells}, section);
    double worst = 0;
    for (std::uint64_t y = 0; y < cells; ++y) {
        for (std::uint64_t x = 0; x < cells; ++x) {
            const double exact = 0.5 + (start(middle, y, x) - 0.5) * factor;
            worst = std::max(worst, std::abs(exact - section[y * cells + x]));
        }
    }
    const hanare_grid_statistics& cost = result.statistics;
    std::printf("%llu steps in %.2f s, %llu pass(es), %.1f MiB read, error %.1e, %s\n",
                static_cast<unsigned long long>(result.steps), cost.elapsed_s,
                static_cast<unsigned long long>(cost.passes),
                static_cast<double>(cost.read_bytes) / (1 << 20), worst, picture);
    return worst < 1e-5 && write_picture(picture, section, cells, cells) ? 0 : 1;
} catch (const hanare::Error& error) {
    std::fprintf(stderr, "stencil_heat: %s\n", error.what());
    return 1;
}
