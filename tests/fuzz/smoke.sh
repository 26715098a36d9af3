#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# smoke.sh PROGRAM [SECONDS [CORPUS]]: runs a libFuzzer program for a while, from the inputs in the
# directory CORPUS, which hold what was found to reach far (-merge=1 into it adds to them).  A failing
# input is printed in base64 and, when HANARE_FUZZ_ARTIFACTS names a directory, kept there.
set -eu
program=$1
seconds=${2:-10}
work=$(mktemp -d "${TMPDIR:-/tmp}/hanare-fuzz-$$-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/new"
"$program" -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="${HANARE_FUZZ_ARTIFACTS:-$work}/" "$work/new" ${3:+"$3"} \
    2>"$work/log" || {
    cat "$work/log"
    exit 1
}
grep -E '^stat::|^Done' "$work/log"
