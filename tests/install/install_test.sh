#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install_test.sh BUILD LIBDIR CMAKE PKG_CONFIG CC CXX
#
# Installs BUILD into a temporary prefix, builds user programs against it, runs them.
set -euo pipefail

build=$1 libdir=$2 cmake=$3 pkg_config=$4
export CC=$5 CXX=$6
source_folder=$(cd "$(dirname "$0")" && pwd)

work=$(mktemp -d "${TMPDIR:-/var/tmp}/hanare-install-$$-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

step() { printf '\n== %s\n' "$*"; }

step "install"
"$cmake" --install "$build" --prefix "$work/staged" >"$work/log" || { cat "$work/log"; exit 1; }
# Packages are built in one place and used in another.
mv "$work/staged" "$work/prefix"
(cd "$work/prefix" && find . -type f -o -type l | sort)
export LD_LIBRARY_PATH=$work/prefix/$libdir

step "make install builds what it installs, and nothing else"
mkdir "$work/stubs"
printf '#!/bin/sh\necho "cmake $*" >>"%s/calls"\n' "$work" >"$work/stubs/cmake"
chmod +x "$work/stubs/cmake"
PATH=$work/stubs:$PATH HANARE_NO_BOOTSTRAP=1 make -s -C "$source_folder/../.." install JOBS=1 \
    PREFIX="$work/elsewhere"
diff - "$work/calls" <<END
cmake --preset release
cmake --build --parallel 1 --preset release --target hanare hanare_run_library hanare_cli hanare_cc hanare_tmk
cmake --install build/release --prefix $work/elsewhere
END
built=$(cd "$work/prefix" && LC_ALL=C grep -rlaP '\A\x7fELF' . | sort)
[[ $built == "./bin/hanare
./bin/hanare-cc
./$libdir/libdlm.a
./$libdir/libhanare-run.so
./$libdir/libhanare.so."*"
./$libdir/libtmk.a
./libexec/hanare/hanare-bench-intercept
./libexec/hanare/hanare-space-root
./libexec/hanare/hanare-tools" && $(wc -l <<<"$built") == 9 ]]

step "the unit and the manual page of memory servers"
grep -q "^ExecStart=.* $work/staged/bin/hanare " "$work/prefix/lib/systemd/system/hanare-server.service"
[[ -s $work/prefix/share/man/man1/hanare-server.1 ]]

step "programs in one address space"
[[ $("$work/prefix/bin/hanare" space run -n 2 /bin/echo there) == "there
there" && $("$work/prefix/bin/hanare" space exec /bin/echo here) == here ]]

step "a C11 program through pkg-config"
export PKG_CONFIG_PATH=$work/prefix/$libdir/pkgconfig
read -ra flags <<<"$("$pkg_config" --cflags --libs hanare)"
"$CC" -std=c11 -Wall -Wextra -Werror -pedantic "$source_folder/user.c" -o "$work/user_c" "${flags[@]}"
"$work/user_c" "$("$pkg_config" --modversion hanare)"

step "a C++20 program through find_package(hanare)"
mkdir "$work/project"
cp "$source_folder/user.cpp" "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(hanare 0.1 REQUIRED)
add_executable(user user.cpp)
target_compile_features(user PRIVATE cxx_std_20)
target_link_libraries(user PRIVATE hanare::hanare)
END
"$cmake" -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
    >"$work/log" && "$cmake" --build "$work/project/build" >>"$work/log" ||
    { cat "$work/log"; exit 1; }
"$work/project/build/user"

step "a program of TreadMarks"
cat >"$work/tmk.c" <<'END'
#include <hanare/compat/Tmk.h>
static int *sum;
int main(int argc, char **argv) {
    Tmk_startup(argc, argv);
    if (Tmk_proc_id == 0) sum = Tmk_malloc(sizeof *sum), Tmk_distribute(&sum, sizeof sum);
    Tmk_barrier(0);
    Tmk_lock_acquire(0);
    *sum += 1;
    Tmk_lock_release(0);
    Tmk_barrier(1);
    if (*sum != (int)Tmk_nprocs || Tmk_nprocs != 2) Tmk_errexit("%d of %u", *sum, Tmk_nprocs);
    Tmk_exit(0);
}
END
"$CC" -std=c11 -Wall -Wextra -Werror "$work/tmk.c" -ltmk -o "$work/tmk" "${flags[@]}"
PATH=$work/prefix/bin:$PATH "$work/tmk" -- -n 2

step "tasks that share memory, in C++"
cat >"$work/shared.cpp" <<'END'
#include <hanare/dsm.hpp>
int main() {
    hanare::dsm::Runtime dsm;
    hanare::dsm::Array<int> sum(dsm, 1);
    hanare::dsm::Lock lock(dsm, 0);
    dsm.barrier();
    { const std::scoped_lock guard(lock); ++sum[0]; }
    dsm.barrier();
    return sum[0] == 2 ? 0 : 1;
}
END
"$CXX" -std=c++20 -Wall -Wextra -Werror "$work/shared.cpp" -o "$work/shared" "${flags[@]}"
"$work/prefix/bin/hanare" launch -n 2 -- "$work/shared"

step "a program with dlm arrays, through the installed compiler driver"
printf 'dlm int a[1 << 22];\nint main(void) { a[1 << 21] = 1; return a[1 << 21] + a[0] - 1; }\n' \
    >"$work/far.c"
(unset LD_LIBRARY_PATH && "$work/prefix/bin/dlmc" "$work/far.c" -ldlm -o "$work/far" && "$work/far")

step "the installed program, which must find its library by itself"
unset LD_LIBRARY_PATH
"$work/prefix/bin/hanare" --version
