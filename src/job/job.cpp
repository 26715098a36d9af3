// SPDX-License-Identifier: Apache-2.0
#include "job/job.hpp"

#include "job/deadline.hpp"
#include "job/pmi1_job.hpp"
#include "job/pmix_job.hpp"
#include "job/rendezvous_job.hpp"
#include "job/single_job.hpp"
#include "job/slurm_job.hpp"

namespace hanare::job {

Result<std::unique_ptr<Job>> Job::join(int timeout_ms) {
    const Deadline deadline(timeout_ms);
    if (is_hanare_job()) return join_hanare_job(deadline);
    if (is_pmix_job()) return join_pmix_job(deadline);
    if (is_pmi1_job()) return join_pmi1_job(deadline);
    if (is_slurm_job()) return join_slurm_job(deadline);
    return SingleJob::join();
}

}  // namespace hanare::job
