# SPDX-License-Identifier: Apache-2.0
"""What the programs work on: made from seeds, so the same everywhere, and kept between runs.

A maker is called with the path to write and with those sizes of the program that its parameters are
named after.  The name of what it has made tells maker and sizes, its code included; whatever
changes, is made anew.
"""

import dataclasses
import hashlib
import inspect
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from interrupts import undisturbed

WORKLOADS = pathlib.Path(__file__).resolve().parent / "workloads"
CHUNK_BYTES = 1 << 24
BASES = b"ACGT" * 64


def text(path, text_bytes):
    """Lines of random letters, of 30 characters on average."""
    letters = bytes(10 if value < 8 else 97 + value % 26 for value in range(256))
    generator = random.Random(1)
    with open(path, "wb") as file:
        for begin in range(0, text_bytes, CHUNK_BYTES):
            file.write(generator.randbytes(min(CHUNK_BYTES, text_bytes - begin)).translate(letters))


def similar_text(path, similar_bytes):
    """Lines of words from a small dictionary, in which the same passages come again and again."""
    generator = random.Random(2)
    words = [generator.randbytes(generator.randrange(2, 9)).hex().encode() for _ in range(3000)]
    passages = [b" ".join(generator.choices(words, k=400)) + b"\n" for _ in range(60)]
    written = 0
    with open(path, "wb") as file:
        while written < similar_bytes:
            passage = generator.choice(passages)
            cut = generator.randrange(len(passage))
            written += file.write(passage[cut:] + generator.choice(words) + passage[:cut])


def words(path, word_lines):
    """Lines with a key of up to a third as many values, a number and a word."""
    generator = random.Random(3)
    with open(path, "w", encoding="ascii") as file:
        for _ in range(word_lines):
            key = generator.randrange(word_lines // 3)
            file.write(f"k{key:08x} {generator.randrange(1000)} w{key % 977}\n")


def c_source(path, c_functions, c_constants):
    """A C file of functions with arithmetic and branches, and a table of constants."""
    generator = random.Random(4)
    with open(path, "w", encoding="ascii") as file:
        file.write("#include <stddef.h>\nextern const int table[];\n")
        for number in range(c_functions):
            other = generator.randrange(number + 1)
            a, b, c = (generator.randrange(1, 1 << 16) for _ in range(3))
            file.write(f"long f{number}(long x, long y) {{\n"
                       f"    long s = x * {a} + y;\n"
                       f"    for (long i = 0; i < (y & {b % 63 + 1}); i++) {{\n"
                       f"        if ((s ^ i) & {1 << b % 9}) s += table[i + {c % 1000}] * x;\n"
                       f"        else s = s / (i + {c}) - f{other}(s, i);\n"
                       f"    }}\n    return s;\n}}\n")
        file.write(f"const int table[{c_constants}] = {{\n")
        for begin in range(0, c_constants, 1000):
            values = (str(generator.randrange(1 << 30)) for _ in range(begin, begin + 1000))
            file.write(",".join(values) + ",\n")
        file.write("};\n")


def genome(path, genome_bases):
    """A FASTA file with one sequence."""
    with open(path, "wb") as file:
        file.write(b">chromosome\n")
        for line in fasta_lines(genome_sequence(genome_bases)):
            file.write(line + b"\n")


def genome_sequence(bases):
    return random.Random(5).randbytes(bases).translate(BASES)


def fasta_lines(sequence):
    return (sequence[begin:begin + 80] for begin in range(0, len(sequence), 80))


def genome_reads(sequence, count, length, seed, wrong):
    """The bases of reads; of each read as many are wrong as `wrong` says in turn."""
    generator = random.Random(seed)
    for number in range(count):
        place = generator.randrange(len(sequence) - length)
        read = bytearray(sequence[place:place + length])
        for _ in range(wrong[number % len(wrong)]):
            read[generator.randrange(length)] = b"ACGT"[generator.randrange(4)]
        yield bytes(read)


def short_reads(path, genome_bases, read_count):
    """A FASTQ file of reads of 100 bases of that genome."""
    with open(path, "wb") as file:
        reads = genome_reads(genome_sequence(genome_bases), read_count, 100, seed=6,
                             wrong=(1, 0, 0, 0))
        for number, read in enumerate(reads):
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, read, b"I" * 100))


def long_reads(path, genome_bases, long_read_count):
    """A FASTA file of reads of 5000 bases of that genome."""
    with open(path, "wb") as file:
        reads = genome_reads(genome_sequence(genome_bases), long_read_count, 5000, seed=7,
                             wrong=(50,))
        for number, read in enumerate(reads):
            file.write(b">l%d\n%s\n" % (number, read))


def alignments(path, alignment_count):
    """An unsorted SAM file."""
    length = 20_000_000
    generator = random.Random(8)
    sequence = genome_sequence(1_000_000).decode("ascii")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chromosome\tLN:{length}\n")
        for number in range(alignment_count):
            place, cut = generator.randrange(length - 100), generator.randrange(999_900)
            file.write(f"a{number}\t0\tchromosome\t{place + 1}\t60\t100M\t*\t0\t0\t"
                       f"{sequence[cut:cut + 100]}\t{'I' * 100}\tNM:i:{number % 7}\n")


@dataclasses.dataclass(frozen=True)
class Build:
    """A maker: what a command makes of a source; {source} and {made} stand for their paths."""

    source: str
    command: tuple

    def __call__(self, path):
        words = [word.format(source=WORKLOADS / self.source, made=path) for word in self.command]
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:  # for what nobody asked for
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, cwd=scratch)


def fingerprint(make):
    """A text that changes with whatever `make` consists of."""
    if isinstance(make, Build):
        code = (WORKLOADS / make.source).read_text() + repr(make.command)
    else:
        code = inspect.getsource(make) + inspect.getsource(genome_reads)
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def name_of(make):
    return make.source.replace(".", "-") if isinstance(make, Build) else make.__name__


def provide(make, sizes, directory):
    """The path of the input, made first where it is not there yet."""
    wanted = inspect.signature(make).parameters
    arguments = {name: sizes[name] for name in wanted if name != "path"}
    sizes_text = "".join(f"-{value}" for value in arguments.values())
    path = pathlib.Path(directory, f"{name_of(make)}{sizes_text}-{fingerprint(make)}")
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        make(unfinished, **arguments)
        unfinished.rename(path)
    finally:
        with undisturbed():
            discard(unfinished)
    return path


def discard(path):
    """Removes a file or a directory, if there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def warm(path):
    """Reads it once, so that no run has to wait for the disk for what the next one finds read."""
    files = [path] if path.is_file() else [entry for entry in path.rglob("*") if entry.is_file()]
    for file in files:
        with open(file, "rb", buffering=0) as data:
            while data.read(CHUNK_BYTES):
                pass
