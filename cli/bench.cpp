// SPDX-License-Identifier: Apache-2.0
//
// `hanare bench NAME`: measurements next to what they are compared with, as tables and as JSON.
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/dlm_sweep.hpp"
#include "bench/dsm_sweep.hpp"
#include "bench/numpy_report.hpp"
#include "bench/pager_case.hpp"
#include "bench/stencil_report.hpp"
#include "cli/bench_dlm.hpp"
#include "cli/bench_dlm_pagesize.hpp"
#include "cli/bench_dlm_test1.hpp"
#include "cli/bench_dsm.hpp"
#include "cli/bench_fabric.hpp"
#include "cli/bench_fault.hpp"
#include "cli/bench_intercept.hpp"
#include "cli/bench_numpy.hpp"
#include "cli/bench_pager.hpp"
#include "cli/bench_remote.hpp"
#include "cli/bench_resident.hpp"
#include "cli/bench_space.hpp"
#include "cli/bench_stencil.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_compared.hpp"
#include "cli/remote_near.hpp"

namespace hanare::cli {

using config::OptionId;

namespace {

void add_bench_fault(CLI::App& bench) {
    CLI::App* fault = bench.add_subcommand(
        "fault", "what a fault costs, by engine, block size and kind of fault");
    auto flags = std::make_shared<FaultFlags>();
    fault->add_flag("--quick", flags->quick, "fewer faults and repetitions");
    fault->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(*fault, {OptionId::store});
    set_run(*fault, [flags] { return run_bench_fault(*flags); });
}

void add_bench_fabric(CLI::App& bench) {
    CLI::App* fabric = bench.add_subcommand(
        "fabric",
        "operations on the memory of another process, next to sockets used by hand, UCX, MPI");
    auto flags = std::make_shared<FabricFlags>();
    fabric->add_option("--compare", flags->compare,
                       "comma-separated, of " + compared_names() + " (default raw_tcp)");
    fabric->add_option("--cases", flags->cases,
                       "comma-separated, of " + fabric_case_names() + " (default all)");
    fabric->add_option("--network", flags->network,
                       "loopback, or veth: the target in a network of its own");
    fabric->add_flag("--quick", flags->quick, "fewer rounds, of fewer operations");
    fabric->add_option("--json", flags->json, "write the results to this file");
    fabric->add_flag("--target", flags->target)->group("");  // the other process of the bench
    fabric->add_flag("--group-task", flags->group_task)->group("");
    fabric->add_option("--compared", flags->compared)->group("");
    fabric->add_option("--beside", flags->beside)->group("");
    set_run(*fabric, [flags] { return run_bench_fabric(*flags); });
}

void add_bench_space(CLI::App& bench) {
    CLI::App* space =
        bench.add_subcommand("space", "MPI between tasks of one address space, next to processes");
    auto flags = std::make_shared<SpaceBenchFlags>();
    space->add_option("--mpi", flags->mpis, "comma-separated, of openmpi,mpich (default both)");
    space->add_option("--ranks", flags->ranks,
                      "of collectives and memory, comma-separated (default 2,16,64)");
    space->add_option("--cases", flags->cases,
                      "comma-separated, of pairs,collectives,memory,start,fork,applications "
                      "(default all)");
    space->add_option("--rounds", flags->rounds, "how often (default 7)");
    space->add_flag("--quick", flags->quick,
                    "two rounds, four ranks, neither forks nor applications");
    space->add_option("--json", flags->json, "write the results to this file");
    space->add_option("--job", flags->job)->group("");  // how the bench runs its jobs
    set_run(*space, [flags] { return run_bench_space(*flags); });
}

void add_bench_intercept(CLI::App& bench) {
    CLI::App* intercept = bench.add_subcommand(
        "intercept", "what hanare run costs a program that fits: system calls, memory, start");
    auto flags = std::make_shared<InterceptFlags>();
    intercept->add_flag("--quick", flags->quick, "fewer rounds and starts");
    intercept->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(*intercept, {OptionId::store});
    set_run(*intercept, [flags] { return run_bench_intercept(*flags); });
}

void add_bench_pager(CLI::App& bench) {
    CLI::App* pager = bench.add_subcommand(
        "pager", "arrays larger than local memory: Hanare, mmap, swap, zram, the raw device");
    auto flags = std::make_shared<PagerFlags>();
    pager->add_option("--compare", flags->compare,
                      "comma-separated, of plain, mmap, mmap_sequential, mmap_random, swap, zram "
                      "(default all of these), hanare:ENGINE");
    pager->add_option("--size", flags->size, "size of the data (default four times --local)");
    pager->add_option("--cases", flags->cases,
                      "comma-separated, of " + bench::pager_case_names() + " (default all)");
    pager->add_option("--threads", flags->threads, "comma-separated numbers (default 1,2)");
    pager->add_option("--rounds", flags->rounds,
                      "runs of each case; the median counts (default 5)");
    pager->add_flag("--quick", flags->quick,
                    "smaller data, mmap, mmap_sequential and swap, one thread, 3 rounds, slow "
                    "passes stopped earlier");
    pager->add_option("--json", flags->json, "write the results to this file");
    pager->add_option("--worker", flags->worker)->group("");  // how the bench runs its systems
    flags->overrides =
        add_option_flags(*pager, {OptionId::local_bytes, OptionId::store, OptionId::block_bytes,
                                  OptionId::engine, OptionId::read_ahead_blocks});
    pager->get_option("--local")->description(
        "memory of each limited system (default 512M, or a quarter of --size)");
    set_run(*pager, [flags] { return run_bench_pager(*flags); });
}

void add_bench_dlm_test1(CLI::App& bench) {
    CLI::App* test1 = bench.add_subcommand(
        "dlm-test1", "the DLM paper's Test 1: swaps and speed by local part and block size");
    auto flags = std::make_shared<DlmTest1Flags>();
    test1->add_option("--size", flags->size, "size of the data (default 1G)");
    test1->add_option("--blocks", flags->blocks,
                      "comma-separated block sizes (default 8K,16K,32K,64K,256K)");
    test1->add_option("--local-percent", flags->percents,
                      "comma-separated local parts of the data (default 100 to 10)");
    test1->add_option("--rounds", flags->rounds,
                      "runs of each case; the median counts (default 3)");
    test1->add_flag("--quick", flags->quick, "smaller data, fewer local parts, one round");
    test1->add_option("--json", flags->json, "write the results to this file");
    flags->overrides =
        add_option_flags(*test1, {OptionId::store, OptionId::engine, OptionId::replacement});
    add_prefetch_flag(*test1, flags->overrides);
    set_run(*test1, [flags] { return run_bench_dlm_test1(*flags); });
}

void add_bench_dlm(CLI::App& bench) {
    CLI::App* dlm = bench.add_subcommand(
        "dlm",
        "the DLM paper's programs by local part, block size and store, next to the kernel's means");
    auto flags = std::make_shared<DlmFlags>();
    dlm->add_option("--programs", flags->programs,
                    "comma-separated, of " + bench::dlm_program_names() + " (default " +
                        bench::default_dlm_programs(false) + ")");
    dlm->add_option("--local-percent", flags->percents,
                    "comma-separated local parts of the arrays (default 80,65,40,20,10)");
    dlm->add_option("--blocks", flags->blocks,
                    "comma-separated block sizes, auto the default one (default auto)");
    dlm->add_option("--stores", flags->stores,
                    "comma-separated, of file, server (one of its own over loopback), server_10g "
                    "and server_1g (over a link of so many Gbit/s between two networks) "
                    "(default file,server,server_10g)");
    dlm->add_option("--systems", flags->systems,
                    "comma-separated, of hanare (built by hanare-cc), run (the plain program "
                    "under hanare run), swap, zram, mmap (a mapped file for the arrays) (default "
                    "hanare,run,swap,mmap)");
    dlm->add_option("--rounds", flags->rounds, "runs of each; the median counts (default 1)");
    dlm->add_option(
        "--patience", flags->patience_s,
        "seconds after which a run is stopped, 1 to 86400 (default 60; 40 with --quick)");
    dlm->add_flag("--quick", flags->quick,
                  "smaller programs, a file store, fewer local parts, patience of 40 s");
    dlm->add_option("--resume", flags->resume,
                    "remember each run in this file, and do not run again what is in it");
    dlm->add_option("--json", flags->json, "write the results to this file");
    dlm->add_option("--link", flags->link)->group("");  // keeps the link of this store
    flags->overrides = add_option_flags(*dlm, {OptionId::store, OptionId::engine});
    dlm->get_option("--store")->description("directory of the file store, file:DIR");
    set_run(*dlm, [flags] { return run_bench_dlm(*flags); });
}

void add_bench_dsm(CLI::App& bench) {
    CLI::App* dsm = bench.add_subcommand(
        "dsm", "the DSM paper's programs with shared memory: time, messages, faults; MPI and PVM");
    auto flags = std::make_shared<DsmBenchFlags>();
    dsm->add_option("--programs", flags->programs,
                    "comma-separated, of " + bench::dsm_program_names() + " (default all; " +
                        bench::kQuickDsmPrograms + " with --quick)");
    dsm->add_option("--compare", flags->compare, "comma-separated, of mpi,pvm (default both)");
    dsm->add_option("--processes", flags->processes,
                    "how many of each program, 1 to 64 (default 2)");
    dsm->add_option("--rounds", flags->rounds,
                    "runs of each; the median counts (default 5; 1 with --quick)");
    dsm->add_option("--patience", flags->patience_s,
                    "seconds after which a run is stopped, 1 to 86400 (default 120)");
    dsm->add_option("--folder", flags->folder,
                    "where the programs are (default bench/dsm of the build)");
    dsm->add_option("--network", flags->network,
                    "of what goes over TCP: loopback, or veth: half of the processes in a network "
                    "of their own");
    dsm->add_flag("--far", flags->is_far_end)->group("");
    dsm->add_flag("--quick", flags->quick, "small sizes, fewer programs, one round");
    dsm->add_option("--json", flags->json, "write the results to this file");
    set_run(*dsm, [flags] { return run_bench_dsm(*flags); });
}

void add_bench_dlm_pagesize(CLI::App& bench) {
    CLI::App* pagesize = bench.add_subcommand(
        "dlm-pagesize", "the DLM paper's Fig. 13: a write with one swap, by block size");
    auto flags = std::make_shared<DlmPagesizeFlags>();
    pagesize->add_option("--rounds", flags->rounds,
                         "runs of each size; the median counts (default 5)");
    pagesize->add_flag("--quick", flags->quick, "one round");
    pagesize->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(*pagesize, {OptionId::engine});
    set_run(*pagesize, [flags] { return run_bench_dlm_pagesize(*flags); });
}

void add_bench_numpy(CLI::App& bench) {
    CLI::App* numpy = bench.add_subcommand(
        "numpy", "NumPy on arrays larger than local memory: Hanare, numpy.memmap, plain memory");
    auto flags = std::make_shared<NumpyFlags>();
    numpy->add_option("--compare", flags->compare,
                      "comma-separated, of plain,memmap (default both)");
    numpy->add_option("--cases", flags->cases,
                      "comma-separated, of " + bench::numpy_case_names() + " (default all)");
    numpy->add_option("--size", flags->size, "of all arrays of a case, 64M or more (default 512M)");
    numpy->add_option("--rounds", flags->rounds,
                      "runs of each case; the median counts (default 5)");
    numpy->add_option("--patience", flags->patience_s,
                      "seconds after which a run is stopped, 1 to 86400 (default 300)");
    numpy->add_option(
        "--python", flags->python,
        "an interpreter that has the package hanare (default $HANARE_PYTHON, which the "
        "package's own command sets, else python3)");
    numpy->add_flag("--quick", flags->quick, "smaller arrays, one round, patience 60");
    numpy->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(
        *numpy, {OptionId::local_bytes, OptionId::store, OptionId::block_bytes, OptionId::engine});
    numpy->get_option("--local")->description("local memory (default a quarter of --size)");
    numpy->get_option("--store")->description("directory of the file store, file:DIR");
    set_run(*numpy, [flags] { return run_bench_numpy(*flags); });
}

void add_bench_stencil(CLI::App& bench) {
    CLI::App* stencil = bench.add_subcommand(
        "stencil",
        "a stencil on a domain larger than its memory, next to codes in memory and mmap");
    auto flags = std::make_shared<StencilFlags>();
    stencil->add_option(
        "--compare", flags->compare,
        std::string("comma-separated, of ") + bench::kStencilComparable + " (default all)");
    stencil->add_option("--size", flags->size,
                        "of the domain, as two buffers (default 4G; 512M with --sweep)");
    stencil->add_option("--times", flags->times,
                        "comma-separated: the domain is so many times its memory (default 4,8,16)");
    stencil->add_option("--steps", flags->steps, "steps of a run (default 128; 64 with --sweep)");
    stencil->add_option("--rounds", flags->rounds,
                        "runs of each system; the median counts (default 3)");
    stencil->add_option("--threads", flags->threads,
                        "of all systems (default the processors that there are)");
    stencil->add_option("--patience", flags->patience_s,
                        "seconds after which a run is stopped, 1 to 86400 (default 1200)");
    stencil->add_option("--python", flags->python,
                        "an interpreter that has the package devito (default $HANARE_PYTHON, else "
                        "python3; scripts/devito_environment makes one)");
    stencil->add_flag("--sweep", flags->sweep,
                      "the paper's scheme by planes of a slab, steps of a pass and levels, in "
                      "memory and out of it");
    stencil->add_flag("--quick", flags->quick, "a smaller domain, few steps, one round");
    stencil->add_option("--json", flags->json, "write the results to this file");
    stencil->add_option("--worker", flags->worker)->group("");  // how the bench runs its systems
    flags->overrides = add_option_flags(*stencil, {OptionId::store});
    stencil->get_option("--store")->description("directory of the files, file:DIR");
    set_run(*stencil, [flags] { return run_bench_stencil(*flags); });
}

void add_bench_remote(CLI::App& bench) {
    CLI::App* remote = bench.add_subcommand(
        "remote", "arrays in the memory of memory servers, next to raw sockets that move the same");
    auto flags = std::make_shared<RemoteFlags>();
    remote->add_option("--size", flags->size, "size of the data (default 512M)");
    remote->add_option("--cases", flags->cases,
                       "comma-separated, of " + remote_case_names() + " (default all)");
    remote->add_option("--networks", flags->networks,
                       "comma-separated, of " + remote_network_names() + " (default all)");
    remote->add_option("--rounds", flags->rounds,
                       "runs of each case; the median counts (default 7)");
    remote->add_flag("--quick", flags->quick, "smaller data, loopback and veth, one round");
    remote->add_option("--json", flags->json, "write the results to this file");
    remote->add_option("--near", flags->near)->group("");  // the processes of the bench
    remote->add_option("--far", flags->far)->group("");
    flags->overrides = add_option_flags(
        *remote, {OptionId::block_bytes, OptionId::engine, OptionId::read_ahead_blocks});
    set_run(*remote, [flags] { return run_bench_remote(*flags); });
}

}  // namespace

void add_bench(CLI::App& app) {
    CLI::App* bench = app.add_subcommand("bench", "measure Hanare next to its alternatives");
    bench->require_subcommand(1);
    CLI::App* resident = bench->add_subcommand(
        "resident", "STREAM with everything in local memory, against plain memory");
    auto flags = std::make_shared<ResidentFlags>();
    resident->add_flag("--quick", flags->quick, "smaller arrays, fewer repetitions");
    resident->add_option("--json", flags->json, "write the results to this file");
    flags->overrides =
        add_option_flags(*resident, {OptionId::store, OptionId::block_bytes, OptionId::engine});
    set_run(*resident, [flags] { return run_bench_resident(*flags); });
    add_bench_fault(*bench);
    add_bench_fabric(*bench);
    add_bench_intercept(*bench);
    add_bench_numpy(*bench);
    add_bench_pager(*bench);
    add_bench_remote(*bench);
    add_bench_space(*bench);
    add_bench_stencil(*bench);
    add_bench_dlm_test1(*bench);
    add_bench_dlm(*bench);
    add_bench_dlm_pagesize(*bench);
    add_bench_dsm(*bench);
}

}  // namespace hanare::cli
