// SPDX-License-Identifier: Apache-2.0
//
// Grids and runs one by one: boxes of cells, refusals, ends on request, snapshots, statistics.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "stencil/heat.hpp"
#include "sys/test_support.hpp"

namespace hanare::stencil_test {
namespace {

using sys::testing::TemporaryDirectory;

class GridTest : public ::testing::Test {
protected:
    ~GridTest() override {
        for (const char* const name : {"/there", "/s.npy", "/s.h5"}) {
            unlink((directory_.path() + name).c_str());
        }
    }

    hanare_grid_options options(const Model& model) {
        hanare_grid_options result = options_for(model, fields_);
        result.directory = directory_.path().c_str();
        return result;
    }
    hanare_status create(const hanare_grid_options& options) {
        hanare_grid* grid = nullptr;
        const hanare_status status = hanare_grid_create(&options, &grid);
        grid_.reset(grid);
        return status;
    }

    TemporaryDirectory directory_;
    std::vector<hanare_field> fields_;
    GridPointer grid_;
    const Model model_ = heat({30, 16, 24});
    const Stencil stencil_ = Stencil(model_);
};

TEST_F(GridTest, BoxesOfCells) {
    for (const auto place : {HANARE_PLACE_MEMORY, HANARE_PLACE_FILE}) {
        for (const auto along : {HANARE_BOUNDARY_FIXED, HANARE_BOUNDARY_PERIODIC}) {
            hanare_grid_options given = options(model_);
            given.place = place;
            given.boundary[0] = along;
            ASSERT_EQ(create(given), HANARE_STATUS_OK) << last_error();
            std::vector<double> expected(model_.cells());
            Prng random(3);
            for (int i = 0; i < 30; ++i) {
                uint64_t offset[3];
                uint64_t extent[3];
                uint64_t count = 1;
                for (size_t axis = 0; axis < 3; ++axis) {
                    offset[axis] = random.below(model_.shape[axis]);
                    extent[axis] = 1 + random.below(model_.shape[axis] - offset[axis]);
                    count *= extent[axis];
                }
                std::vector<double> cells(count);
                for (double& cell : cells) cell = random.unit();
                ASSERT_EQ(hanare_grid_write(grid_.get(), 0, 0, offset, extent, cells.data()),
                          HANARE_STATUS_OK);
                size_t next = 0;
                for (uint64_t z = 0; z < extent[0]; ++z) {
                    for (uint64_t y = 0; y < extent[1]; ++y) {
                        for (uint64_t x = 0; x < extent[2]; ++x) {
                            expected[((offset[0] + z) * model_.shape[1] + offset[1] + y) *
                                         model_.shape[2] +
                                     offset[2] + x] = cells[next++];
                        }
                    }
                }
                std::vector<double> back(count);
                ASSERT_EQ(hanare_grid_read(grid_.get(), 0, 0, offset, extent, back.data()),
                          HANARE_STATUS_OK);
                ASSERT_EQ(back, cells);
            }
            std::vector<double> all(model_.cells());
            ASSERT_EQ(hanare_grid_read(grid_.get(), 0, 0, nullptr, nullptr, all.data()),
                      HANARE_STATUS_OK);
            EXPECT_EQ(all, expected);
            const uint64_t beyond[3] = {0, 0, 20};
            const uint64_t five[3] = {1, 1, 5};
            EXPECT_EQ(hanare_grid_read(grid_.get(), 0, 0, beyond, five, all.data()),
                      HANARE_STATUS_OUT_OF_RANGE);
            EXPECT_EQ(hanare_grid_read(grid_.get(), 1, 0, nullptr, nullptr, all.data()),
                      HANARE_STATUS_INVALID_ARGUMENT);
            EXPECT_EQ(hanare_grid_read(grid_.get(), 0, 1, nullptr, nullptr, all.data()),
                      HANARE_STATUS_INVALID_ARGUMENT);
        }
    }
}

TEST_F(GridTest, FilledPlaneByPlane) {
    ASSERT_EQ(create(options(model_)), HANARE_STATUS_OK);
    uint64_t calls = 0;
    const auto fill = [](uint64_t plane, void* cells, void* user) {
        if (plane != (*static_cast<uint64_t*>(user))++) return 1;
        for (int i = 0; i < 16 * 24; ++i) {
            static_cast<double*>(cells)[i] = static_cast<double>(plane) + i * 0.001;
        }
        return 0;
    };
    ASSERT_EQ(hanare_grid_fill(grid_.get(), 0, 0, fill, &calls), HANARE_STATUS_OK);
    EXPECT_EQ(calls, 30u);
    std::vector<double> all(model_.cells());
    ASSERT_EQ(hanare_grid_read(grid_.get(), 0, 0, nullptr, nullptr, all.data()), HANARE_STATUS_OK);
    EXPECT_EQ(all[7 * 16 * 24 + 5], 7.005);
    calls = 3;
    EXPECT_EQ(hanare_grid_fill(grid_.get(), 0, 0, fill, &calls), HANARE_STATUS_INVALID_ARGUMENT);
}

TEST_F(GridTest, BadGridsAreRefused) {
    struct Wrong {
        const char* what;
        void (*change)(hanare_grid_options&);
        hanare_status status;
    };
    const Wrong cases[] = {
        {"dimensions", [](auto& o) { o.dimensions = 4; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"along z", [](auto& o) { o.shape[0] = 2; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"along y", [](auto& o) { o.shape[1] = 3, o.radius = 4; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"radius", [](auto& o) { o.radius = 5; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"2^48", [](auto& o) { o.shape[0] = o.shape[1] = 1u << 30; },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"padding",
         [](auto& o) {
             o.shape[0] = uint64_t{1} << 48, o.shape[1] = o.shape[2] = 1;
             for (hanare_boundary& each : o.boundary) each = HANARE_BOUNDARY_PERIODIC;
         },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"boundary", [](auto& o) { o.boundary[1] = static_cast<hanare_boundary>(7); },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"element", [](auto& o) { o.element = static_cast<hanare_element>(2); },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"io", [](auto& o) { o.io = static_cast<hanare_grid_io>(9); },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"flags", [](auto& o) { o.flags = 0x80; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"struct_size", [](auto& o) { o.struct_size = 3; }, HANARE_STATUS_INVALID_ARGUMENT},
        {"PLACE_MEMORY", [](auto& o) { o.place = HANARE_PLACE_MEMORY, o.path = "/tmp/x"; },
         HANARE_STATUS_INVALID_ARGUMENT},
        {"memory_bytes", [](auto& o) { o.place = HANARE_PLACE_MEMORY, o.memory_bytes = 4096; },
         HANARE_STATUS_LIMIT},
        {"smallest window", [](auto& o) { o.place = HANARE_PLACE_FILE, o.memory_bytes = 20'000; },
         HANARE_STATUS_LIMIT},
        {"/nowhere", [](auto& o) { o.place = HANARE_PLACE_FILE, o.directory = "/nowhere"; },
         HANARE_STATUS_STORE_UNAVAILABLE},
        {"are free",
         [](auto& o) { o.place = HANARE_PLACE_FILE, o.shape[0] = 3'000'000, o.shape[1] = 9'000; },
         HANARE_STATUS_STORE_FULL},
    };
    for (const Wrong& each : cases) {
        hanare_grid_options given = options(model_);
        each.change(given);
        EXPECT_EQ(create(given), each.status) << each.what << ": " << last_error();
        EXPECT_NE(last_error().find(each.what), std::string::npos)
            << each.what << ": " << last_error();
    }
    EXPECT_EQ(hanare_grid_create(nullptr, nullptr), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hanare_grid_close(nullptr), HANARE_STATUS_INVALID_ARGUMENT);
}

TEST_F(GridTest, WhereNothingMayBeWritten) {
    const std::string path = directory_.path() + "/there";
    std::ofstream(path) << "something";
    hanare_grid_options given = options(model_);
    given.path = path.c_str();
    EXPECT_EQ(create(given), HANARE_STATUS_BUSY);
    std::stringstream kept;
    kept << std::ifstream(path).rdbuf();
    EXPECT_EQ(kept.str(), "something");

    given.path = nullptr;
    given.place = HANARE_PLACE_FILE;
    const auto in_child = [](auto body) {
        const pid_t child = fork();
        if (child == 0) _exit(body());
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status;
    };
    EXPECT_EQ(in_child([&] {
                  const rlimit limit = {50'000, 50'000};
                  setrlimit(RLIMIT_FSIZE, &limit);
                  return create(given) == HANARE_STATUS_STORE_FULL ? 0 : 1;
              }),
              0);
    EXPECT_EQ(in_child([&] {
                  if (geteuid() == 0 && setuid(sys::testing::kNobody) != 0) return 2;
                  given.directory = "/etc";
                  const bool is_refused = create(given) == HANARE_STATUS_STORE_UNAVAILABLE;
                  return is_refused && last_error().find("/etc") != std::string::npos ? 0 : 3;
              }),
              0);
}

TEST_F(GridTest, BadStencilsAndRunsAreRefused) {
    hanare_grid_options given = options(model_);
    given.place = HANARE_PLACE_FILE;
    ASSERT_EQ(create(given), HANARE_STATUS_OK);
    hanare_stencil_read read = {0, 1};
    uint32_t field = 0;
    const hanare_stencil_stage good = stencil_.get()->stages[0];
    const auto run = [&](hanare_stencil_stage stage, hanare_grid_run_options options) {
        hanare_stencil stencil = {sizeof stencil, &stage, nullptr, 1, 0};
        return hanare_grid_run(grid_.get(), 3, &stencil, &options);
    };
    const auto refused = [&](auto change) {
        hanare_stencil_stage stage = good;
        stage.reads = &read;
        stage.writes = &field;
        change(stage);
        const hanare_status status = run(stage, run_options());
        read = {0, 1};
        field = 0;
        return status == HANARE_STATUS_INVALID_ARGUMENT;
    };
    EXPECT_TRUE(refused([](auto& stage) { stage.kernel = nullptr; }));
    EXPECT_TRUE(refused([](auto& stage) { stage.reads = nullptr; }));
    EXPECT_TRUE(refused([](auto& stage) { stage.write_count = 0; }));
    EXPECT_TRUE(refused([&](auto&) { read.field = 1; }));
    EXPECT_TRUE(refused([&](auto&) { read.radius = 2; }));
    EXPECT_TRUE(refused([&](auto&) { field = 1; }));
    EXPECT_EQ(hanare_grid_run(grid_.get(), 3, nullptr, nullptr), HANARE_STATUS_INVALID_ARGUMENT);
    hanare_grid_run_options wrong = run_options();
    wrong.snapshot_every = 1;
    EXPECT_EQ(run(good, wrong), HANARE_STATUS_INVALID_ARGUMENT);
    wrong.snapshot_path = "/nowhere/x.npy";
    EXPECT_EQ(run(good, wrong), HANARE_STATUS_STORE_UNAVAILABLE) << last_error();
    wrong.snapshot_path = "/tmp/x.txt";
    EXPECT_EQ(run(good, wrong), HANARE_STATUS_INVALID_ARGUMENT) << last_error();
    hanare_grid_run_options large = run_options();
    large.window_planes = 1u << 24;
    EXPECT_EQ(run(good, large), HANARE_STATUS_LIMIT);
    EXPECT_EQ(step_of(grid_.get()), 0u);
    EXPECT_EQ(run(good, run_options()), HANARE_STATUS_OK) << last_error();
    EXPECT_EQ(step_of(grid_.get()), 3u);
}

TEST_F(GridTest, AnEndOnRequestIsTheEndOfAPass) {
    for (const auto place : {HANARE_PLACE_MEMORY, HANARE_PLACE_FILE}) {
        hanare_grid_options given = options(model_);
        given.place = place;
        ASSERT_EQ(create(given), HANARE_STATUS_OK);
        Prng random(4);
        Reference reference(model_);
        fill_both(model_, grid_.get(), reference, random);
        hanare_grid_run_options run = run_options();
        run.steps_per_pass = 4;
        run.window_planes = 6;
        run.progress = [](const hanare_grid_progress* progress, void*) {
            EXPECT_EQ(progress->steps, 100u);
            return progress->fraction > 0 ? 1 : 0;
        };
        ASSERT_EQ(hanare_grid_run(grid_.get(), 100, stencil_.get(), &run), HANARE_STATUS_OK);
        const uint64_t step = step_of(grid_.get());
        EXPECT_GT(step, 0u);
        EXPECT_LT(step, 100u);
        EXPECT_EQ(step % 4, 0u);
        while (reference.steps() < step) reference.step();
        EXPECT_EQ(difference(model_, grid_.get(), reference), "");
    }
}

TEST_F(GridTest, SnapshotsInFiles) {
    hanare_grid_options given = options(model_);
    given.place = HANARE_PLACE_FILE;
    ASSERT_EQ(create(given), HANARE_STATUS_OK);
    Prng random(5);
    Reference reference(model_);
    fill_both(model_, grid_.get(), reference, random);
    for (const char* const name : {"/s.npy", "/s.h5"}) {
        const std::string path = directory_.path() + name;
        hanare_grid_run_options run = run_options();
        run.snapshot_every = 3;
        run.snapshot_path = path.c_str();
        std::string expected;
        uint64_t count = 0;
        for (int i = 0; i < 10; ++i) {
            reference.step();
            if (reference.steps() % 3 != 0) continue;
            const std::vector<double>& values = reference.values(0, 0);
            expected.append(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(double));
            ++count;
        }
        ASSERT_EQ(hanare_grid_run(grid_.get(), 10, stencil_.get(), &run), HANARE_STATUS_OK)
            << last_error();
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        const std::string all = text.str();
        ASSERT_GT(all.size(), expected.size());
        EXPECT_TRUE(all.ends_with(expected));
        if (path.ends_with(".npy")) {
            EXPECT_EQ(all.substr(0, 6), "\x93NUMPY");
            EXPECT_EQ((all.size() - expected.size()) % 64, 0u);
            EXPECT_NE(all.find("'shape': (" + std::to_string(count) + ", 30, 16, 24, )"),
                      std::string::npos);
        } else {
            EXPECT_EQ(all.substr(0, 8), "\x89HDF\r\n\x1a\n");
        }
        EXPECT_EQ(statistics_of(grid_.get()).snapshot_bytes, expected.size());
        EXPECT_EQ(hanare_grid_run(grid_.get(), 10, stencil_.get(), &run), HANARE_STATUS_BUSY);
    }
    EXPECT_EQ(difference(model_, grid_.get(), reference), "");
}

TEST_F(GridTest, EachPassReadsAndWritesTheFieldsOnce) {
    Model model = heat({100, 126, 513});
    model.boundary = {};
    hanare_grid_options given = options(model);
    given.place = HANARE_PLACE_FILE;
    ASSERT_EQ(create(given), HANARE_STATUS_OK);
    hanare_grid_run_options run = run_options();
    run.steps_per_pass = 2;
    const Stencil stencil(model);
    hanare_grid_statistics planned = {};
    planned.struct_size = sizeof planned;
    ASSERT_EQ(hanare_grid_plan(grid_.get(), 6, stencil.get(), &run, &planned), HANARE_STATUS_OK);
    EXPECT_EQ(planned.passes, 3u);
    EXPECT_EQ(planned.minimal_bytes, 3 * 2 * model.cells() * sizeof(double));
    EXPECT_LE(planned.window_bytes, given.memory_bytes);
    ASSERT_EQ(hanare_grid_run(grid_.get(), 6, stencil.get(), &run), HANARE_STATUS_OK);
    const hanare_grid_statistics found = statistics_of(grid_.get());
    EXPECT_EQ(found.passes, 3u);
    EXPECT_EQ(found.redundant_updates, 0u);
    EXPECT_EQ(found.read_bytes, found.written_bytes);
    EXPECT_LE(static_cast<double>(found.read_bytes + found.written_bytes),
              1.04 * static_cast<double>(found.minimal_bytes));
}

// Values for each part of a row and not for each cell, which would all be looked at again.
TEST_F(GridTest, ReductionsInTwoDimensionsTakeLittle) {
    hanare_grid_options given = {};
    given.struct_size = sizeof given;
    given.dimensions = 2;
    given.shape[0] = 2000;
    given.shape[1] = 20'000;
    given.memory_bytes = 256u << 20;
    given.place = HANARE_PLACE_FILE;
    given.directory = directory_.path().c_str();
    ASSERT_EQ(create(given), HANARE_STATUS_OK) << last_error();
    hanare_stencil_stage stage = stencil_.get()->stages[0];
    hanare_stencil stencil = {sizeof stencil, &stage, nullptr, 1, 0};
    hanare_grid_run_options run = run_options();
    run.steps_per_pass = 8;
    run.window_planes = 16;
    uint64_t bytes[2] = {};
    const hanare_reduction reduction = HANARE_REDUCTION_MAX;
    for (uint32_t count = 0; count < 2; ++count) {
        stage.reductions = &reduction;
        stage.reduction_count = count;
        hanare_grid_statistics planned = {};
        planned.struct_size = sizeof planned;
        ASSERT_EQ(hanare_grid_plan(grid_.get(), 8, &stencil, &run, &planned), HANARE_STATUS_OK)
            << last_error();
        bytes[count] = planned.window_bytes;
    }
    EXPECT_GT(bytes[1], bytes[0]);
    EXPECT_LT(bytes[1], bytes[0] + bytes[0] / 2);
}

TEST_F(GridTest, FieldsHaveNames) {
    Model model = heat({10, 10, 10});
    model.kinds.push_back(HANARE_FIELD_CONSTANT);
    ASSERT_EQ(create(options(model)), HANARE_STATUS_OK);
    uint32_t field = 9;
    EXPECT_EQ(hanare_grid_find_field(grid_.get(), "b", &field), HANARE_STATUS_OK);
    EXPECT_EQ(field, 1u);
    EXPECT_EQ(hanare_grid_find_field(grid_.get(), "z", &field), HANARE_STATUS_NOT_FOUND);
    const char* name = nullptr;
    hanare_field_kind kind = HANARE_FIELD_STATE;
    EXPECT_EQ(hanare_grid_field_at(grid_.get(), 1, &name, &kind), HANARE_STATUS_OK);
    EXPECT_STREQ(name, "b");
    EXPECT_EQ(kind, HANARE_FIELD_CONSTANT);
    EXPECT_EQ(hanare_grid_field_at(grid_.get(), 2, &name, &kind), HANARE_STATUS_NOT_FOUND);
}

}  // namespace
}  // namespace hanare::stencil_test
