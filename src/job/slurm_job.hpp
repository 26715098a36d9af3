// SPDX-License-Identifier: Apache-2.0
//
// Jobs that Slurm's srun has started without PMIx: the first task serves the rendezvous, on the
// first node of the step, at one of a few ports that follow from the numbers of job and step.  When
// its job object ends, that waits up to ten seconds for those of the others.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "job/deadline.hpp"
#include "job/job.hpp"

namespace hanare::job {

// Whether this is a task of a step; a batch script is not.
bool is_slurm_job();
Result<std::unique_ptr<Job>> join_slurm_job(const Deadline& deadline);

// Ports at which the rendezvous of a job may be, in the order in which they are tried.
inline constexpr uint32_t kSlurmPorts = 8;
uint16_t slurm_port(uint64_t job_number, uint32_t attempt);

}  // namespace hanare::job
