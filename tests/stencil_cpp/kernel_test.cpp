// SPDX-License-Identifier: Apache-2.0
//
// What is made of a lambda: radii and names, and kernels that are called for boxes of any size.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hanare/stencil.hpp"

namespace {

TEST(Stage, finds_what_is_read_and_written) {
    const hanare::Stage<double> one(
        [](const auto& u) { return u(0, 0, -3) + u(1, 0, 0) + u(0, 0, 0); });
    EXPECT_EQ(one.radii(), (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(one.reads(), one.writes());
    EXPECT_TRUE(one.reductions().empty());

    const hanare::Stage<float, 2> several(
        [](const auto& u, const auto& v, const auto& c) {
            return std::tuple(u(0, 1) * c(0, 0), v(0, 0) + 1, hanare::sum(u(0, 0)),
                              hanare::max(v(2, 0)));
        },
        {.reads = {"u", "v", "c"}, .writes = {"u", "v"}});
    EXPECT_EQ(several.radii(), (std::vector<std::uint32_t>{1, 2, 0}));
    EXPECT_EQ(several.reductions(),
              (std::vector<hanare_reduction>{HANARE_REDUCTION_SUM, HANARE_REDUCTION_MAX}));

    const hanare::Stage<double> old([](const auto& u) { return u(0, 0, 0) - u.old(); });
    EXPECT_EQ(old.radii(), (std::vector<std::uint32_t>{1}));
    const hanare::Stage<double> given([](const auto& u) { return u(0, 0, 0); }, {.radius = 4});
    EXPECT_EQ(given.radii(), (std::vector<std::uint32_t>{4}));
}

TEST(Stage, refuses) {
    using Stage = hanare::Stage<double>;
    const auto two = [](const auto& u, const auto& v) { return u(0, 0, 1) + v(0, 0, 0); };
    EXPECT_THROW(Stage(two, {.reads = {"u"}, .writes = {"u"}}), hanare::Error);
    EXPECT_THROW(Stage(two, {.reads = {"u", "v"}, .writes = {"u", "v"}}), hanare::Error);
    EXPECT_THROW(Stage([](const auto& u) { return u(5, 0, 0); }), hanare::Error);
    const auto other = [](const auto& u) { return u.old(); };
    EXPECT_THROW(Stage(other, {.reads = {"u"}, .writes = {"v"}}), hanare::Error);
}

/* Planes, rows and columns beyond any box. */
constexpr std::int64_t kPlanes = 9, kRows = 24, kStride = 208;

template <typename T>
struct Planes {
    std::vector<T> cells = std::vector<T>(kPlanes * kRows * kStride);

    Planes() {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            cells[i] = static_cast<T>((i * 2654435761u) % 10007) / T(10007) + T(0.5);
        }
    }
    T* at(std::int64_t plane, std::int64_t row, std::int64_t column) {
        return &cells[static_cast<std::size_t>((plane * kRows + row) * kStride + column)];
    }
};

template <typename T>
void compare_boxes() {
    Planes<T> from, to;
    const auto function = [](const auto& u) {
        return T(0.4) * u(0, 0, 0) + T(0.1) * (u(-1, 0, 0) + u(0, 2, 0) + u(0, 0, -2));
    };
    const hanare::Stage<T> stage(function);
    ASSERT_EQ(stage.radii()[0], 2u);
    for (std::int64_t rows = 1; rows <= 5; ++rows) {
        for (std::int64_t columns = 1; columns < 70; ++columns) {
            const std::int64_t begin = 8 + columns % 5;
            const T mark = T(-7);
            std::fill(to.cells.begin(), to.cells.end(), mark);
            std::vector<const void*> in;
            for (std::int64_t plane = 2; plane <= 6; ++plane)
                in.push_back(from.at(plane, 8, begin));
            void* const out = to.at(4, 8, begin);
            hanare_stencil_box box = {};
            box.in = in.data();
            box.out = &out;
            box.row_stride = kStride;
            box.rows = rows;
            box.columns = columns;
            box.user = const_cast<void*>(stage.user());
            stage.kernel()(&box);
            for (std::int64_t row = 0; row < kRows; ++row) {
                for (std::int64_t column = 0; column < kStride; ++column) {
                    const bool inside =
                        row >= 8 && row < 8 + rows && column >= begin && column < begin + columns;
                    T want = mark;
                    if (inside) {
                        want = function([&](int dz, int dy, int dx) {
                            return *from.at(4 + dz, row + dy, column + dx);
                        });
                    }
                    ASSERT_EQ(*to.at(4, row, column), want) << rows << " " << columns;
                }
            }
        }
    }
}

TEST(Kernel, boxes_of_any_size_double) { compare_boxes<double>(); }
TEST(Kernel, boxes_of_any_size_float) { compare_boxes<float>(); }

/* All cells around: two rows at a time. */
TEST(Kernel, rows_two_at_a_time) {
    Planes<double> from, to;
    const auto function = [](const auto& u) {
        double total = 0;
        for (int dz = -1; dz <= 1; ++dz) {
            for (int dy = -1; dy <= 1; ++dy) {
                for (int dx = -1; dx <= 1; ++dx) total += u(dz, dy, dx);
            }
        }
        return total;
    };
    const hanare::Stage<double> stage(function);
    for (std::int64_t rows = 1; rows <= 5; ++rows) {
        std::vector<const void*> in;
        for (std::int64_t plane = 3; plane <= 5; ++plane) in.push_back(from.at(plane, 3, 3));
        void* const out = to.at(4, 3, 3);
        hanare_stencil_box box = {};
        box.in = in.data();
        box.out = &out;
        box.row_stride = kStride;
        box.rows = rows;
        box.columns = 101;
        box.user = const_cast<void*>(stage.user());
        stage.kernel()(&box);
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < 101; ++column) {
                const double want = function([&](int dz, int dy, int dx) {
                    return *from.at(4 + dz, 3 + row + dy, 3 + column + dx);
                });
                ASSERT_EQ(*to.at(4, 3 + row, 3 + column), want);
            }
        }
    }
}

TEST(Kernel, places_and_reductions) {
    Planes<double> from, to;
    const hanare::Stage<double> stage([](const auto& u) {
        const auto place = u.place();
        const double value =
            static_cast<double>(place.step * 1000 + place.z * 100 + place.y * 10 + place.x);
        return std::tuple(value, hanare::sum(u(0, 0, 0)), hanare::max(u(0, 0, 1)),
                          hanare::min(u(0, 0, 0)));
    });
    const void* in[3] = {from.at(3, 1, 2), from.at(4, 1, 2), from.at(5, 1, 2)};
    void* const out = to.at(4, 1, 2);
    double reduced[3] = {0, -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::infinity()};
    hanare_stencil_box box = {};
    box.in = in;
    box.out = &out;
    box.row_stride = kStride;
    box.rows = 2;
    box.columns = 77;
    box.step = 9;
    box.z = 4;
    box.y = 1;
    box.x = 2;
    box.reduction = reduced;
    box.user = const_cast<void*>(stage.user());
    stage.kernel()(&box);
    double total = 0, high = 0, low = 10;
    for (std::int64_t row = 1; row < 3; ++row) {
        for (std::int64_t column = 2; column < 79; ++column) {
            const double cell = *from.at(4, row, column);
            total += cell;
            high = std::max(high, *from.at(4, row, column + 1));
            low = std::min(low, cell);
            EXPECT_EQ(*to.at(4, row, column), static_cast<double>(9400 + row * 10 + column));
        }
    }
    EXPECT_NEAR(reduced[0], total, 1e-12 * total);
    EXPECT_EQ(reduced[1], high);
    EXPECT_EQ(reduced[2], low);
}

}  // namespace
