// SPDX-License-Identifier: Apache-2.0
//
// Jobs of launchers that speak PMI-1: MPICH's mpiexec, and Slurm's srun with its PMI plug-ins.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "job/deadline.hpp"
#include "job/job.hpp"
#include "job/pmi1_connection.hpp"

namespace hanare::job {

bool is_pmi1_job();
Result<std::unique_ptr<Job>> join_pmi1_job(const Deadline& deadline);

// Over a connection that is there: of task `rank` of `size`.
Result<std::unique_ptr<Job>> join_pmi1_job(Pmi1Connection connection, uint32_t rank, uint32_t size,
                                           const Deadline& deadline);

}  // namespace hanare::job
