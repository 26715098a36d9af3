# SPDX-License-Identifier: Apache-2.0
#
# One command each for what people do; CMake does the work (CMakePresets.json).  Every target that
# builds installs what it needs first (scripts/bootstrap).

JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
PREFIX ?= /usr/local
DEMO_FLAGS ?=
SORT_FLAGS ?=
BENCH_FLAGS ?= --quick
PROGRAMS_FLAGS ?=

BUILD := cmake --build --parallel $(JOBS) --preset
# Prints one line per suite with its time, the output of those that fail, and the totals at the end.
CTEST := ctest --output-on-failure --no-tests=error --parallel $(TEST_JOBS) --test-dir

.PHONY: help demo test test-python test-sanitizers test-stress test-thread-safety test-programs test-servers test-mpi \
        bench install \
        format check-format clean bootstrap bootstrap-all bootstrap-programs bootstrap-mpi release
.NOTPARALLEL:

help:
	@echo 'make demo                matrix times vector, 4 times larger than its local memory; GNU'
	@echo '                         sort in a quarter of its memory (DEMO_FLAGS=..., SORT_FLAGS=...'
	@echo '                         are passed on; see hanare demo --help, hanare demo sort --help)'
	@echo 'make test                all tests, the unit tests under ASan and UBSan, and fuzzers'
	@echo 'make test-python         the tests of the Python package, in build/python/environment'
	@echo 'make test-sanitizers     all tests under ASan and UBSan, and under TSan'
	@echo 'make test-stress         10^8 writes for every engine and block size, 1000 random runs'
	@echo 'make test-thread-safety  clang build with -Wthread-safety -Werror'
	@echo 'make test-programs       programs of Debian and PyPI: plain, hanare run, swap; an hour'
	@echo '                         and more (PROGRAMS_FLAGS=..., see tests/programs/README.md)'
	@echo 'make test-mpi            ranks of Open MPI and MPICH as tasks of a space, up to 128; the'
	@echo '                         NAS Parallel Benchmarks with each number of ranks'
	@echo 'make test-servers        1000 drains of a busy memory server, 100 programs each with and'
	@echo '                         without redundancy whose server fails at random; a matrix of'
	@echo '                         1.27 times the memory on a server and in a file'
	@echo 'make bench               benchmarks (BENCH_FLAGS=..., default --quick)'
	@echo 'make install             into PREFIX (default /usr/local), below DESTDIR if set'
	@echo 'make format              clang-format over all sources; check-format only tells'
	@echo 'make clean               removes build/'

bootstrap:
	@scripts/bootstrap

bootstrap-all:
	@scripts/bootstrap --all

release: bootstrap
	@cmake --preset release
	@$(BUILD) release

demo: bootstrap
	@cmake --preset release
	@$(BUILD) release --target hanare_cli hanare_run_library
	@build/release/cli/hanare demo $(DEMO_FLAGS)
	@echo
	@build/release/cli/hanare demo sort $(SORT_FLAGS)

test: bootstrap-all release
	@echo '== release: all tests'
	@$(CTEST) build/release
	@$(MAKE) --no-print-directory test-python
	@echo '== address and undefined-behaviour sanitizers: quick subset'
	@cmake --preset asan
	@$(BUILD) asan --target hanare_asan_tests
	@$(CTEST) build/asan -L asan
	@echo '== what comes from outside: fuzzers, for a minute'
	@cmake --preset fuzz
	@$(BUILD) fuzz --target hanare_fuzzers
	@$(CTEST) build/fuzz -L fuzz

PYTHON_ENVIRONMENT := build/python/environment

test-python: bootstrap-all release
	@echo '== the Python package: pytest'
	@scripts/python_environment build/release $(PYTHON_ENVIRONMENT)
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON_ENVIRONMENT)/bin/python -m pytest -q --durations=5

# The checks look at sources and at the release library; they have no part here.
test-sanitizers: bootstrap-all
	@for preset in asan tsan; do \
	    echo "== $$preset: all tests" && \
	    cmake --preset $$preset && $(BUILD) $$preset && \
	    $(CTEST) build/$$preset -LE '^checks$$' || exit 1; \
	done

# 10^8 writes for every engine and block size, by 8 cases each, and 1000 random runs; about half an
# hour.
test-stress: release
	@HANARE_STRESS_WRITES=12500000 HANARE_STRESS_STEPS=20000 \
	    build/release/tests/stress/hanare_writers_test
	@HANARE_STRESS_RUNS=1000 build/release/tests/stress/hanare_random_runs_test
	@python3 -B tests/model/run.py --all
	@HANARE_TEST_RUNS=10000 HANARE_BINARY=build/release/cli/hanare \
	    DSM_PROGRAMS=build/release/tests/dsm/programs \
	    python3 -B tests/dsm/dsm_test.py DrawnPrograms

test-thread-safety: bootstrap-all
	@cmake --preset thread-safety
	@$(BUILD) thread-safety
	@echo 'thread-safety: no warnings'

bootstrap-programs:
	@scripts/bootstrap --programs

test-programs: bootstrap-programs release
	@python3 -B tests/programs/run_programs.py --install $(PROGRAMS_FLAGS)

test-servers: bootstrap
	@cmake --preset release
	@$(BUILD) release --target hanare_remote_pools_test hanare_cli example_matv
	@HANARE_TEST_RUNS=100 HANARE_TEST_DRAINS=1000 build/release/tests/remote/hanare_remote_pools_test \
	    --gtest_filter='RandomFaults.*:ComposedDrains.*'
	@python3 -B tests/remote/larger_than_memory.py --hanare build/release/cli/hanare \
	    --matv build/release/examples/example_matv

bootstrap-mpi:
	@scripts/bootstrap --mpi

test-mpi: bootstrap-mpi release
	@HANARE_LONG_TESTS=1 HANARE_BINARY=build/release/cli/hanare \
	    SPACE_PROGRAMS=build/release/tests/space/programs python3 -B tests/space/mpi_test.py -v

bench: bootstrap
	@cmake --preset release
	@$(BUILD) release --target hanare_cli
	@build/release/cli/hanare bench resident $(BENCH_FLAGS)

# What is installed, and nothing else, is built.
install: bootstrap
	@cmake --preset release
	@$(BUILD) release --target hanare hanare_run_library hanare_cli hanare_cc hanare_tmk
	@cmake --install build/release --prefix $(PREFIX)

FORMATTED = $$(git ls-files '*.c' '*.cpp' '*.h' '*.hpp')

format: bootstrap-all
	@clang-format-19 -i $(FORMATTED)

check-format: bootstrap-all
	@clang-format-19 --dry-run --Werror $(FORMATTED)

clean:
	@rm -rf build
