// SPDX-License-Identifier: Apache-2.0
//
// A grid of the library for a model, and what tests do with it: fill both sides with the same
// values, run, compare to the last bit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "stencil/reference.hpp"

namespace hanare::stencil_test {

// The text of the last error, for messages.
std::string last_error();

// HANARE_TEST_SEED, or a new one; printed.
uint64_t seed_of_run();

// The C structs of a model; it stays as it is meanwhile.
class Stencil {
public:
    explicit Stencil(const Model& model);
    const hanare_stencil* get() const { return &stencil_; }

private:
    std::vector<std::vector<uint32_t>> writes_;
    std::vector<hanare_stencil_stage> stages_;
    std::vector<hanare_stencil_source> sources_;
    hanare_stencil stencil_ = {};
};

struct CloseGrid {
    void operator()(hanare_grid* grid) const { hanare_grid_close(grid); }
};
using GridPointer = std::unique_ptr<hanare_grid, CloseGrid>;

hanare_grid_options options_for(const Model& model, std::vector<hanare_field>& fields);

// Random values for all fields, the same on both sides.
void fill_both(const Model& model, hanare_grid* grid, Reference& reference, Prng& random);
// Empty, or what differs.
std::string difference(const Model& model, hanare_grid* grid, Reference& reference);

}  // namespace hanare::stencil_test
