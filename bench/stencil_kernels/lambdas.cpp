// SPDX-License-Identifier: Apache-2.0
//
// The two stencils as C++ lambdas, in a library: kernels whose user is that of the stage.
#include "hanare/stencil.hpp"

namespace {

const auto& seven() {
    static const hanare::Stage<double> stage([](const auto& u) {
        return 0.4 * u(0, 0, 0) + 0.1 * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) +
                                         u(0, 0, -1) + u(0, 0, 1));
    });
    return stage;
}

const auto& wave() {
    static const hanare::Stage<double> stage(
        [](const auto& u, const auto& c) {
            const auto ring = [&](int d) {
                return u(0, 0, d) + u(0, 0, -d) + u(0, d, 0) + u(0, -d, 0) + u(d, 0, 0) +
                       u(-d, 0, 0);
            };
            const double lap = 3 * -205. / 72 * u(0, 0, 0) + 8. / 5 * ring(1) - 1. / 5 * ring(2) +
                               8. / 315 * ring(3) - 1. / 560 * ring(4);
            return 2 * u(0, 0, 0) - u.old() + c(0, 0, 0) * lap;
        },
        {.reads = {"u", "c"}, .writes = {"u"}});
    return stage;
}

}  // namespace

extern "C" {
hanare_stencil_kernel seven_kernel() { return seven().kernel(); }
const void* seven_user() { return seven().user(); }
hanare_stencil_kernel wave_kernel() { return wave().kernel(); }
const void* wave_user() { return wave().user(); }
}
