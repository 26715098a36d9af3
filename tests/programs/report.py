# SPDX-License-Identifier: Apache-2.0
"""What is computed from the runs of the programs, and how it is printed and recorded."""

import dataclasses
import json
import math
import statistics

MIB = 1 << 20
FLOOR_OF_MEAN = 1.0
GOAL_OF_MEAN = 2.0
LEAST_OF_ONE = 0.8
SYSTEMS = ("plain", "limited", "hanare", "swap")
IDENTICAL = "identical"


@dataclasses.dataclass
class Row:
    """All about one program.  Times are in seconds, one for each run that came to its end.

    results:  by system: IDENTICAL, "DIFFERENT: ..." or "failed: ..."; "limited" has "killed", as it
              should, or "fits"
    at_least: the systems whose times are those after which the runs were given up
    """

    name: str
    sizes: dict = dataclasses.field(default_factory=dict)
    skipped: str = ""
    remark: str = ""
    peak_bytes: int = 0
    limit_bytes: int = 0
    local_bytes: int = 0
    far_bytes_peak: int | None = None
    times: dict = dataclasses.field(default_factory=dict)
    results: dict = dataclasses.field(default_factory=dict)
    at_least: set = dataclasses.field(default_factory=set)

    def time_s(self, system):
        """The median, or None."""
        times = self.times.get(system)
        return statistics.median(times) if times else None

    def ratio(self, above, below):
        """Of the times of two systems, or None when one is missing or only a bound of the lower."""
        first, second = self.time_s(above), self.time_s(below)
        if first is None or second is None or below in self.at_least:
            return None
        return first / second

    def far_share(self):
        """What part of the plain program's memory Hanare has had, or None."""
        if self.far_bytes_peak is None or not self.peak_bytes:
            return None
        return self.far_bytes_peak / self.peak_bytes

    def result(self):
        """The one word, and the reason where that is not enough."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        bad = [f"{system} {text}" for system, text in self.results.items() if is_bad(system, text)]
        if bad:
            return "; ".join(bad)
        return IDENTICAL if len(self.results) > len({"limited"} & set(self.results)) else ""

    def failed(self):
        return any(is_bad(system, text) for system, text in self.results.items())


def is_bad(system, text):
    """Swap is the peer: that it did not come to an end is a figure, not a fault."""
    if system == "limited":
        return False
    return text != IDENTICAL and not (system == "swap" and text.startswith("failed"))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def judge(ratios):
    """"met", "floor" or "missed" for the ratios swap / hanare of all programs."""
    mean = geometric_mean(ratios)
    if mean is None:
        return "not measured"
    if mean >= GOAL_OF_MEAN and min(ratios) >= LEAST_OF_ONE:
        return "met"
    return "floor" if mean >= FLOOR_OF_MEAN else "missed"


def ratios_of(rows, above, below):
    return [ratio for row in rows if (ratio := row.ratio(above, below)) is not None]


COLUMNS = (("program", 10), ("peak", 7), ("limit", 7), ("plain", 8), ("limited", 8),
           ("hanare", 8), ("swap", 8), ("sw/han", 7), ("far", 6), ("result", 0))
UNITS = ("", "MiB", "MiB", "s", "", "x plain", "x plain", "", "share", "")


def line(cells):
    parts = [f"{cell:<{width}}" if index == 0 or not width else f"{cell:>{width}}"
             for index, (cell, (_, width)) in enumerate(zip(cells, COLUMNS))]
    return " ".join(parts).rstrip()


def header():
    return f"{line([name for name, _ in COLUMNS])}\n{line(UNITS)}"


def number(value, digits=2, mark=""):
    return "-" if value is None else f"{mark}{value:.{digits}f}"


def row_line(row):
    if row.skipped:
        return line([row.name, *["-"] * 8, row.result()])
    mark = ">" if "swap" in row.at_least else ""
    return line([row.name, number(row.peak_bytes / MIB, 0) if row.peak_bytes else "-",
                 number(row.limit_bytes / MIB, 0) if row.limit_bytes else "-",
                 number(row.time_s("plain")), row.results.get("limited", "-").split(":")[0],
                 number(row.ratio("hanare", "plain")), number(row.ratio("swap", "plain"), 2, mark),
                 number(row.ratio("swap", "hanare"), 2, mark), number(row.far_share()),
                 row.result()])


def summary(rows):
    """The lines below the table."""
    lines = []
    for system in ("hanare", "swap"):
        ratios = ratios_of(rows, system, "plain")
        if ratios:
            lines.append(f"{system} / plain: geometric mean {geometric_mean(ratios):.2f} of "
                         f"{len(ratios)} programs, worst {max(ratios):.2f}")
    ratios = ratios_of(rows, "swap", "hanare")
    if ratios:
        lines.append(f"swap / hanare: geometric mean {geometric_mean(ratios):.2f} of {len(ratios)} "
                     f"programs, least {min(ratios):.2f} (floor {FLOOR_OF_MEAN:.1f}, goal "
                     f"{GOAL_OF_MEAN:.1f} and none below {LEAST_OF_ONE:.1f}: {judge(ratios)})")
    for row in rows:
        if row.results.get("limited") == "fits":
            lines.append(f"{row.name}: the plain program comes to its end under the limit, too")
        if "swap" in row.results and row.results["swap"].startswith("failed"):
            lines.append(f"{row.name}: swap {row.results['swap']}")
        if row.remark:
            lines.append(f"{row.name}: {row.remark}")
    counts = {what: sum(test(row) for row in rows) for what, test in (
        ("identical", lambda row: row.result() == IDENTICAL), ("not identical", Row.failed),
        ("skipped", lambda row: bool(row.skipped)))}
    lines.append(", ".join(f"{count} {what}" for what, count in counts.items()))
    return lines


def records(rows):
    """As the `--json` files of `hanare bench` hold them."""
    made = []
    for row in rows:
        params = {"limit_bytes": row.limit_bytes, "local_bytes": row.local_bytes,
                  "sizes": row.sizes, "result": row.result()}

        def add(system, metric, unit, values, case=row.name, params=params):
            made.append({"bench": "programs", "case": case, "system": system, "metric": metric,
                         "unit": unit, "median": statistics.median(values), "min": min(values),
                         "max": max(values), "runs": len(values),
                         "params": {**params, "result_of_system": row.results.get(system, "")}})

        for system, times in row.times.items():
            if times and system != "limited":
                add(system, "time", "s", times)
        if row.peak_bytes:
            add("plain", "peak", "bytes", [row.peak_bytes])
        for system in ("hanare", "swap"):
            if (ratio := row.ratio(system, "plain")) is not None:
                add(system, "slowdown", "ratio", [ratio])
        if (ratio := row.ratio("swap", "hanare")) is not None:
            add("hanare", "swap_over_hanare", "ratio", [ratio])
        if row.far_bytes_peak is not None:
            add("hanare", "far_peak", "bytes", [row.far_bytes_peak])
        if "limited" in row.results:
            add("limited", "killed", "count", [int(row.results["limited"] != "fits")])
    return made


def write_json(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(records(rows), file, indent=1)
        file.write("\n")
