// SPDX-License-Identifier: Apache-2.0
//
// Jobs of launchers that serve PMIx: Open MPI's mpirun, PRRTE, Slurm's srun with its PMIx plug-in.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "job/deadline.hpp"
#include "job/job.hpp"

namespace hanare::job {

bool is_pmix_job();
Result<std::unique_ptr<Job>> join_pmix_job(const Deadline& deadline);

}  // namespace hanare::job
