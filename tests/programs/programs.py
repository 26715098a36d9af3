# SPDX-License-Identifier: Apache-2.0
"""The table: which programs are run, on what, and what counts as their result.

In the commands, {NAME} stands for the input or the size of that name; {python} for the interpreter
that has the packages of requirements.txt, {python3} for the one that runs the harness, {workloads}
for the folder of that name.  All that a program writes goes to its working directory.
"""

import dataclasses
import hashlib
import pathlib
import shlex
import shutil

import inputs
from runner import Step

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Program:
    """One row of the table.

    steps:     (command, standard input, client), run one after the other
    debian:    the packages of Debian that have it; `commands` are what they are recognised by
    modules:   the Python packages that it needs, as in requirements.txt
    makers:    by name, what makes the inputs (inputs.py)
    full:      the sizes of the inputs, and what else the commands depend on; `quick` is smaller,
               and None where the program does not belong to the quick third
    output:    whether the standard output is a result
    files:     results beside it: patterns of names in the working directory
    patience:  how many times longer than others it may take before it is given up
    digests:   for results that are not the same bytes each time: name, and a function from the
               working directory to a text
    remark:    what a reader of the table should know
    """

    name: str
    about: str
    steps: tuple
    full: dict
    debian: tuple = ()
    commands: tuple = ()
    modules: tuple = ()
    makers: dict = dataclasses.field(default_factory=dict)
    quick: dict | None = None
    output: bool = True
    files: tuple = ()
    digests: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    patience: float = 1
    remark: str = ""

    def missing(self, has_module):
        """What is not installed here, as a text; empty when it can be run."""
        absent = [command for command in self.commands if shutil.which(command) is None]
        if absent:
            return f"no {', '.join(absent)} (Debian: {' '.join(self.debian)})"
        absent = [module for module in self.modules if not has_module(module)]
        return f"no Python package {', '.join(absent)} (--install)" if absent else ""

    def made_steps(self, values):
        return tuple(Step(tuple(word.format(**values) for word in shlex.split(command)),
                          stdin.format(**values) if stdin else "/dev/null",
                          tuple(word.format(**values) for word in shlex.split(client)))
                     for command, stdin, client in self.steps)


def step(command, stdin="", client=""):
    return command, stdin, client


def script(name, arguments, modules):
    """The one step of a Python program that is a file of workloads/."""
    interpreter = "{python}" if modules else "{python3}"
    return (step(f"{interpreter} {{workloads}}/{name}.py {arguments}"),)


def python_program(name, about, file, module, **more):
    """A row whose program is a Python package, with one size, `rows`."""
    return Program(name, about, script(file, "{rows}", (module,)), modules=(module,), **more)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def counts_of_jellyfish(directory):
    """A table of k-mers without its header (its length and it), which tells command and directory."""
    data = pathlib.Path(directory, "counts.jf").read_bytes()
    length = 9
    return sha256(data[length + int(data[:length]):])


PROGRAMS = (
    Program("sort", "GNU sort of a text file in memory, 2 threads",
            (step("sort -S 2G --parallel=2 -o sorted {text}"),),
            debian=("coreutils",), commands=("sort",), makers={"text": inputs.text},
            full={"text_bytes": 220 * MIB}, quick={"text_bytes": 70 * MIB}, files=("sorted",)),
    Program("sqlite3", "SQLite in memory: indices, joins, updates",
            (step("sqlite3 -bail -cmd '.param set :rows {rows}' :memory:",
                  "{workloads}/table.sql"),),
            debian=("sqlite3",), commands=("sqlite3",),
            full={"rows": 3_200_000}, quick={"rows": 1_000_000}),
    Program("redis", "redis-server: loading, BGSAVE, DEBUG DIGEST before and after a reload",
            (step("redis-server --port 0 --unixsocket server.sock --save '' --appendonly no "
                  "--enable-debug-command yes --rdbcompression no", "",
                  "{python3} {workloads}/redis_client.py server.sock {keys}"),),
            debian=("redis-server",), commands=("redis-server",),
            full={"keys": 1_100_000},
            remark="the client is outside of the limit"),
    Program("memcached", "memcached: storing, replacing and reading",
            (step("memcached -u root -s server.sock -A -m 4000 -t 2", "",
                  "{python3} {workloads}/memcached_client.py server.sock {items}"),),
            debian=("memcached",), commands=("memcached",), full={"items": 600_000},
            remark="the client is outside of the limit"),
    python_program("numpy", "NumPy: product, sort, file, transposition", "arrays_numpy", "numpy",
                   full={"rows": 4000}),
    python_program("scipy", "SciPy: Fourier transforms, sparse matrices", "transforms_scipy",
                   "scipy", full={"rows": 300}),
    python_program("pandas", "pandas: join, groups, sort, CSV", "frames_pandas", "pandas",
                   full={"rows": 3_500_000}),
    python_program("pyarrow", "Arrow: sort, groups, join, Parquet", "tables_pyarrow", "pyarrow",
                   full={"rows": 4_500_000}),
    python_program("polars", "Polars: join, groups, sort", "frames_polars", "polars",
                   full={"rows": 4_500_000}),
    python_program("duckdb", "DuckDB in memory: join, groups, windows", "queries_duckdb", "duckdb",
                   full={"rows": 8_000_000}),
    python_program("sklearn", "scikit-learn: components, clusters, neighbours",
                   "clusters_sklearn", "scikit-learn", full={"rows": 1_000_000}),
    python_program("lightgbm", "LightGBM: boosted trees", "trees_lightgbm", "lightgbm",
                   full={"rows": 700_000}),
    python_program("igraph", "igraph: components, ranks, cores, distances", "graph_igraph",
                   "igraph", full={"rows": 1_400_000}),
    Program("pool", "multiprocessing.Pool: forked workers read the array of their parent",
            script("pool", "{numbers}", ()), full={"numbers": 72 << 20},
            quick={"numbers": 24 << 20}),
    Program("python", "CPython: dictionaries, lists, strings", script("objects", "{rows}", ()),
            full={"rows": 1_200_000}, patience=3),
    Program("octave", "Octave: matrices of whole numbers, sort, file",
            (step("octave-cli --no-gui --norc --no-history {workloads}/matrices.m {order}"),),
            debian=("octave",), commands=("octave-cli",), full={"order": 4500}),
    Program("r", "R: data frame sorted, aggregated, fitted",
            (step("Rscript --vanilla {workloads}/frames.R {rows}"),),
            debian=("r-base-core",), commands=("Rscript",), full={"rows": 5_000_000}),
    Program("bwa", "bwa index and mem: suffix array of a genome, alignment of reads",
            (step("bwa index -a is -p index {genome}"),
             step("bwa mem -t 2 -K 20000000 -v 1 index {reads}")),
            debian=("bwa",), commands=("bwa",),
            makers={"genome": inputs.genome, "reads": inputs.short_reads},
            full={"genome_bases": 52_000_000, "read_count": 15_000},
            files=("index.bwt", "index.sa")),
    Program("minimap2", "minimap2: index of a genome, alignment of long reads",
            (step("minimap2 -t 2 -ax map-ont -I 8G {genome} {reads}"),),
            debian=("minimap2",), commands=("minimap2",),
            makers={"genome": inputs.genome, "reads": inputs.long_reads},
            full={"genome_bases": 60_000_000, "long_read_count": 1500}),
    Program("samtools", "samtools sort of a SAM file in memory",
            (step("samtools sort --no-PG -m 3G -@ 2 -l 1 -o sorted.bam {alignments}"),),
            debian=("samtools",), commands=("samtools",), makers={"alignments": inputs.alignments},
            full={"alignment_count": 2_500_000}, files=("sorted.bam",)),
    Program("velvet", "velveth and velvetg: assembly of short reads",
            (step("velveth assembly 31 -short -fastq {reads}"),
             step("velvetg assembly -cov_cutoff 4 -exp_cov auto -min_contig_lgth 100")),
            debian=("velvet",), commands=("velveth", "velvetg"),
            makers={"reads": inputs.short_reads},
            full={"genome_bases": 3_000_000, "read_count": 250_000},
            output=False, files=("assembly/contigs.fa",),
            environment={"OMP_NUM_THREADS": "1"},
            remark="one thread, as its results depend on how many there are", patience=4),
    Program("jellyfish", "jellyfish: counting of k-mers, 2 threads",
            (step("jellyfish count -m 25 -s 120M -t 2 -C -o counts.jf {reads}"),
             step("jellyfish histo counts.jf")),
            debian=("jellyfish",), commands=("jellyfish",), makers={"reads": inputs.short_reads},
            full={"genome_bases": 20_000_000, "read_count": 60_000},
            digests={"counts": counts_of_jellyfish}, patience=6),
    Program("fortran", "gfortran: fields in COMMON, smoothed",
            (step("{program} {columns} {rounds}"),),
            debian=("gfortran",), commands=("gfortran",),
            makers={"program": inputs.Build("common.f90",
                                            ("gfortran", "-O2", "-o", "{made}", "{source}"))},
            full={"columns": 6400, "rounds": 12}, quick={"columns": 2000, "rounds": 6}),
    Program("openmp", "C with OpenMP: sort by counting, 2 threads",
            (step("{program} {numbers}"),), debian=("gcc",), commands=("gcc",),
            makers={"program": inputs.Build("parallel.c", ("gcc", "-O2", "-fopenmp", "-o", "{made}",
                                                           "{source}"))},
            full={"numbers": 40_000_000}, quick={"numbers": 10_000_000}),
    Program("java", "OpenJDK: HashMap, TreeMap, sorted arrays; fixed heap",
            (step("java -Xms64m -Xmx1200m -XX:+UseSerialGC -XX:-UsePerfData -cp {classes} Maps "
                  "{entries}"),),
            debian=("openjdk-17-jdk-headless",), commands=("java", "javac"),
            makers={"classes": inputs.Build("Maps.java", ("javac", "-d", "{made}", "{source}"))},
            full={"entries": 1_200_000}),
    Program("node", "node: Map of objects, sort, Buffers",
            (step("node --max-old-space-size=4000 {workloads}/maps.js {entries}"),),
            debian=("nodejs",), commands=("node",), full={"entries": 1_300_000}),
    Program("xz", "xz -9 with 2 threads", (step("xz -9 -T2 --block-size={block} -k -c {text}"),),
            debian=("xz-utils",), commands=("xz",), makers={"text": inputs.similar_text},
            full={"similar_bytes": 60 * MIB, "block": "30MiB"},
            quick={"similar_bytes": 16 * MIB, "block": "8MiB"}),
    Program("gcc", "gcc of a large file that was generated",
            (step("gcc -O1 -c --param ggc-min-expand=100 --param ggc-min-heapsize=131072 "
                  "-o made.o -x c {source}"),),
            debian=("gcc",), commands=("gcc",), makers={"source": inputs.c_source},
            full={"c_functions": 4000, "c_constants": 2_400_000},
            quick={"c_functions": 500, "c_constants": 1_000_000}, files=("made.o",)),
    Program("gawk", "gawk: groups of lines in arrays",
            (step("gawk -f {workloads}/groups.awk {lines}"),),
            debian=("gawk",), commands=("gawk",), makers={"lines": inputs.words},
            full={"word_lines": 500_000}, patience=5),
    Program("perl", "Perl: hash of arrays, sorted",
            (step("perl {workloads}/groups.pl", "{lines}"),),
            debian=("perl",), commands=("perl",), makers={"lines": inputs.words},
            full={"word_lines": 1_000_000},
            environment={"PERL_HASH_SEED": "0"}, patience=5),
)
