# SPDX-License-Identifier: Apache-2.0
"""`hanare report`: the page, in a browser, and what is said of files that it cannot show."""
import copy
import json
import os
import re
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import hanare
from hanare.report import ReportError, _paper, sections_of, write

COMMAND = [sys.executable, "-m", "hanare", "report"]
PROGRAM = """
import numpy
a = numpy.zeros(6 << 20)
for turn in range(24):
    a += turn
print(a.sum())
"""


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """Of a real run: 48 MiB with 32 MiB of local memory."""
    folder = tmp_path_factory.mktemp("run")
    script = folder / "program.py"
    script.write_text(PROGRAM)
    result = hanare.run([script, "<&>"], local="32MiB", store=folder, capture_output=True)
    file = folder / "run.json"
    file.write_text(json.dumps(result.stats))
    return file


def record(bench, case, system, metric, median, **params):
    return {"bench": bench, "case": case, "system": system, "metric": metric, "unit": "s",
            "median": median, "min": median, "max": median, "runs": 1, "params": params}


@pytest.fixture(scope="module")
def bench_file(tmp_path_factory):
    """Records as the benches write them, of each that has a figure."""
    records = []
    for case in ("matv_16384", "stream_100M", "stream2_100M", "himeno_M", "ft_A", "is_A", "cg_A"):
        for local in (0.8, 0.1):
            for block in (65536, 1 << 20):
                for metric in ("time", "time_of_plain"):
                    records.append(record("dlm", case, "hanare", metric, 2 / local, store="file",
                                          local_ratio=local, block_bytes=block))
            records.append(record("dlm", case, "swap", "time", 9 / local, store="",
                                  local_ratio=local, block_bytes=0))
    for local in (1.0, 0.5):
        records.append(record("dlm-test1", "first write", "hanare", "relative_speed", local,
                              local_ratio=local, block_bytes=32768))
    for size in _paper.SWAP_US:
        records.append(record("dlm-pagesize", "write with one swap", "hanare", "time", 99.0,
                              block_bytes=size))
    records.append(record("resident", "triad", "hanare", "rate", 1e10))
    records.append(record("numpy", "sort", "hanare", "time_of_memmap", 0.5))
    records.append(record("fault", "<odd & case>", "hanare", "time", 1e-6))
    file = tmp_path_factory.mktemp("bench") / "bench.json"
    file.write_text(json.dumps(records))
    return file


@pytest.fixture(scope="module")
def page_file(run_file, bench_file, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "report.html"
    ended = subprocess.run([*COMMAND, run_file, bench_file, "-o", page],
                           capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return page


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page in a browser, and what it complained of or asked the network for."""

    def __init__(self, browser, file, width=1200, script=True, scheme="light"):
        self.troubles = []
        context = browser.new_context(viewport={"width": width, "height": 900},
                                      java_script_enabled=script, color_scheme=scheme)
        self.page = context.new_page()
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", self._note_request)
        self.page.goto(file.as_uri())

    def _note_request(self, request):
        if not request.url.startswith(("file:", "data:")):
            self.troubles.append(request.url)


def test_page_has_all_figures(page_file):
    text = page_file.read_text()
    for title in ("Time line", "Address space of process", "What caught which memory",
                  "Tables 3 and 4, Figs. 5 and 7", "Figs. 11 and 12", "Fig. 13",
                  "Table 6 and Fig. 14", "Table 7 and Fig. 15", "Fig. 16: STREAM",
                  "Fig. 16: STREAM2", "Fig. 17: NPB FT", "Fig. 17: NPB IS", "Fig. 17: NPB CG",
                  "Table 8 and Fig. 18", "NumPy on arrays larger"):
        assert title in text, title
    assert "<odd" not in text and "&lt;odd &amp; case&gt;" in text
    assert "'<&>'" not in text


def test_page_is_whole(page_file):
    """Each id once, each link to something, nothing from elsewhere."""
    text = page_file.read_text()
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert targets and targets <= set(ids)
    for place in re.findall(r'(?:src|href)="([^"#][^"]*)"', text):
        assert place.startswith("data:"), place[:80]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_without_script(browser, page_file, scheme):
    opened = Opened(browser, page_file, script=False, scheme=scheme)
    drawings = opened.page.locator("figure svg")
    assert drawings.count() >= 14
    for place in range(drawings.count()):
        box = drawings.nth(place).bounding_box()
        assert box["width"] > 500 and box["height"] > 100
    assert not opened.page.locator("#theme").is_visible()
    ground = opened.page.screenshot()
    assert len(ground) > 20_000  # a blank page is smaller by far
    assert opened.troubles == []


def colour(opened, selector, name):
    return opened.page.locator(selector).first.evaluate(
        "(node, name) => getComputedStyle(node)[name]", name)


def brightness(text):
    red, green, blue = (int(value) for value in re.findall(r"\d+", text)[:3])
    return (red * 299 + green * 587 + blue * 114) / 1000


def test_page_in_both_themes(browser, page_file):
    for scheme, lighter in (("light", True), ("dark", False)):
        opened = Opened(browser, page_file, scheme=scheme)

        def contrast():
            ink = brightness(colour(opened, "figure svg text", "fill"))
            return brightness(colour(opened, "body", "backgroundColor")) - ink
        assert (contrast() > 0) == lighter and abs(contrast()) > 125
        opened.page.locator("#theme").click()
        assert (contrast() > 0) != lighter and abs(contrast()) > 125
        assert opened.troubles == []


@pytest.mark.parametrize("width", [320, 768])
def test_page_on_narrow_screens(browser, page_file, width):
    opened = Opened(browser, page_file, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_page_by_keyboard(browser, page_file):
    opened = Opened(browser, page_file)
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "theme"
    numbers = page.locator("figure details").first
    numbers.locator("summary").focus()
    page.keyboard.press("Enter")
    assert numbers.locator("table").is_visible()
    assert colour(opened, "summary:focus", "outlineStyle") == "solid"


def test_page_on_paper(browser, page_file):
    opened = Opened(browser, page_file, scheme="dark")
    opened.page.emulate_media(media="print")
    assert brightness(colour(opened, "body", "backgroundColor")) == 255
    assert not opened.page.locator("nav").is_visible()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator("details:not([open])").count() == 0
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.locator("details[open]").count() == 0
    assert len(opened.page.pdf()) > 20_000


def test_maps_tell_where_memory_is(run_file):
    shots = [shot for shot in json.loads(run_file.read_text())["maps"]
             if shot["area"] == "mappings"]

    def mebibytes(shot, name):
        shares = bytes.fromhex(shot[name])
        return shot["bytes"] * sum(shares) / 255 / len(shares) / (1 << 20)
    # Of the array, as long as it is there; and of that, within the budget.
    assert max(mebibytes(shot, "kept") for shot in shots) > 45
    assert 8 < max(mebibytes(shot, "local") for shot in shots) <= 32


def test_run_is_told_in_words(run_file):
    section, = sections_of([str(run_file)])
    said = " ".join(section.advice)
    assert "--local" in said and "nothing would have been moved" in said
    tiles = {tile.name: tile.value for tile in section.tiles}
    assert tiles["memory used"].endswith("MiB") and tiles["processes"] == "1"


def test_recording_of_a_pool(pool, tmp_path):
    file = tmp_path / "recorded.json"
    with pool.recording(file):
        array = pool.zeros(2 << 20)
        for _ in range(80):
            array += 1
        del array
        pool.close()
    recorded = json.loads(file.read_text())
    totals = recorded["totals"]
    assert totals["far_bytes_peak"] == 16 << 20
    assert 4 << 20 < totals["local_bytes_peak"] <= 8 << 20
    assert totals["read_bytes"] > 320 << 20 and totals["wait_ns"] > 0
    assert totals["wait_ns"] < recorded["elapsed_s"] * 1e9
    assert recorded["samples"][0]["faults"] == 0
    assert recorded["samples"][-1]["faults"] == totals["faults"] > 64
    assert recorded["exit_status"] == 0
    write([str(file)], tmp_path / "page.html")
    assert "Time line" in (tmp_path / "page.html").read_text()


def test_recording_of_what_fails(pool, tmp_path):
    file = tmp_path / "recorded.json"
    with pytest.raises(ZeroDivisionError):
        with pool.recording(file):
            1 / 0
    assert json.loads(file.read_text())["exit_status"] == 1
    for bad in (3, True, None):
        with pytest.raises(hanare.ArgumentError, match="file: .* is no path"):
            with pool.recording(bad):
                pytest.fail("was begun")
    with pytest.raises(OSError):
        with pool.recording(tmp_path / "no" / "file"):
            pytest.fail("was begun")


@pytest.mark.parametrize("change, words", [
    (dict(read_bytes=0, written_bytes=0), "Nothing was moved"),
    (dict(far_bytes_peak=0), "never used memory that Hanare would keep"),
    (dict(read_bytes=100 << 30), "times over"),
    (dict(left_sites=3), "3 system call instructions"),
    (dict(processes=4), "4 processes had far memory"),
])
def test_advice(run_file, tmp_path, change, words):
    run = json.loads(run_file.read_text())
    run["totals"].update(change)
    changed = tmp_path / "run.json"
    changed.write_text(json.dumps(run))
    section, = sections_of([str(changed)])
    assert any(words in line for line in section.advice), section.advice


@pytest.mark.parametrize("content, words", [
    ("", "is no JSON"), ("{}", "is neither"), ("[]", "is neither"), ("[1]", "is neither"),
    ('{"totals": {}}', "is incomplete"), ("nonsense", "is no JSON"),
])
def test_bad_files(tmp_path, content, words):
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    with pytest.raises(ReportError, match=words) as caught:
        write([str(bad)], tmp_path / "page.html")
    assert "bad.json" in str(caught.value) and "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.json"]


ODD = [None, 0, -1, [], {}, "", "$x^$", [None], 1e308, float("inf"), 10 ** 400, "\ud800", True]


def test_damaged_files(run_file, bench_file, tmp_path):
    """Whatever stands anywhere gives a page or one line, never a traceback."""
    run = json.loads(run_file.read_text())
    run["samples"], run["maps"] = run["samples"][:4], run["maps"][:9]
    record = json.loads(bench_file.read_text())[0]
    places = [(run, (name,)) for name in run]
    places += [(run, ("totals", name)) for name in run["totals"]]
    places += [(run, ("processes", 0, name)) for name in run["processes"][0]]
    places += [(run, ("samples", 1, name)) for name in run["samples"][1]]
    places += [(run, ("maps", 1, name)) for name in run["maps"][1]]
    places += [([record], (0, name)) for name in record]
    random = np.random.default_rng(7)
    file = tmp_path / "damaged.json"
    for whole, place in places:
        for value in [ODD[at] for at in random.choice(len(ODD), 1)]:
            damaged = copy.deepcopy(whole)
            inner = damaged
            for name in place[:-1]:
                inner = inner[name]
            inner[place[-1]] = value
            file.write_text(json.dumps(damaged))
            try:
                write([str(file)], tmp_path / "page.html")
            except ReportError as error:
                assert "damaged.json" in str(error) and "\n" not in str(error)


def test_files_of_the_same_bench(bench_file, tmp_path):
    """Each by itself, with its name; of other benches together."""
    other, fault = tmp_path / "other.json", tmp_path / "fault.json"
    other.write_text(bench_file.read_text())
    fault.write_text(json.dumps([record("pager", "stream", "hanare", "rate", 1.0)]))
    titles = [section.title for section in sections_of([str(bench_file), str(other)])]
    assert len(titles) == len(set(titles)) and all(
        title.endswith((" (bench.json)", " (other.json)")) for title in titles)
    titles = [section.title for section in sections_of([str(bench_file), str(fault)])]
    assert "hanare bench pager" in titles and "hanare bench numpy" in titles


def test_output_that_is_no_file(run_file, tmp_path):
    """What is there is written to, and not replaced."""
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("before")
    page.chmod(0o640)
    link.symlink_to(page)
    write([str(run_file)], link)
    assert link.is_symlink() and page.read_text().startswith("<!DOCTYPE")
    assert page.stat().st_mode & 0o777 == 0o640
    write([str(run_file)], "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_command_says_what_is_wrong(run_file, tmp_path):
    def failing(*arguments):
        ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
        assert ended.returncode != 0 and ended.stdout == ""
        assert ended.stderr.count("\n") == 1, ended.stderr
        return ended.stderr
    assert "there-is-none.json: No such file" in failing("there-is-none.json")
    assert "cannot be written" in failing(run_file, "-o", tmp_path / "no" / "page.html")
    assert "FILE" in failing()
    assert "cannot be written" in failing(run_file, "-o", "-no/page.html", "--title", "-draft")
    assert "there-is-none" in failing(run_file, "--python", "/bin/there-is-none")
