# SPDX-License-Identifier: Apache-2.0
"""The page itself: HTML that holds all it needs."""
from __future__ import annotations

import html
from collections.abc import Sequence

from ._section import Cell, Figure, Section, Table, Tile
from ._units import number

_ROWS_IN_SIGHT = 16  # of a table

_CSS = """
:root{color-scheme:light dark;--ground:#fff;--raised:#f4f5f7;--ink:#1c2430;--faint:#5a6472;
--rule:#a9b1bc;--link:#0b57a4;--paper:#7b6a58;--c1:#0b6bb8;--c2:#c2501a;--c3:#1f7a4d;--c4:#8a3ea8;
--c5:#a37a00;--c6:#00797d;--c7:#b3366b;--c8:#5b6b7c}
@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light]){--ground:#12161c;--raised:#1b212a;
--ink:#e4e8ee;--faint:#a3adba;--rule:#56606d;--link:#7cb8f2;--paper:#c9b49b;--c1:#5aaef0;
--c2:#f08a56;--c3:#58c18c;--c4:#c98ae3;--c5:#e0b83a;--c6:#45bfc3;--c7:#ec7fae;--c8:#9fb0c3}}
@media screen{:root[data-theme=dark]{color-scheme:dark;--ground:#12161c;--raised:#1b212a;--ink:#e4e8ee;
--faint:#a3adba;--rule:#56606d;--link:#7cb8f2;--paper:#c9b49b;--c1:#5aaef0;--c2:#f08a56;
--c3:#58c18c;--c4:#c98ae3;--c5:#e0b83a;--c6:#45bfc3;--c7:#ec7fae;--c8:#9fb0c3}}
:root[data-theme=light]{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
header,main,footer{max-width:62rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}h1,h2,nav a,.tile dd{overflow-wrap:anywhere}h1{font-size:1.6rem;line-height:1.25;margin:0 0 .5rem}
h2{font-size:1.3rem;margin:2.5rem 0 .5rem;padding-top:.5rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:0}p{margin:.4rem 0;max-width:46rem;overflow-wrap:anywhere}
a{color:var(--link)}a:focus-visible,summary:focus-visible,button:focus-visible,
.plot:focus-visible,.wide:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:.5rem;background:var(--ground)}
nav ol{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;margin:.5rem 0}
button{font:inherit;font-size:.9rem;color:inherit;background:var(--raised);
border:1px solid var(--rule);border-radius:.4rem;padding:.2rem .7rem;cursor:pointer}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;
margin:1rem 0;padding:0}
.tile{background:var(--raised);border-radius:.5rem;padding:.6rem .8rem}
.tile dt{font-size:.85rem;color:var(--faint)}.tile dd{margin:0;font-size:1.25rem;font-weight:600}
.tile dd+dd{font-size:.85rem;font-weight:400;color:var(--faint)}
.advice{background:var(--raised);border-left:4px solid var(--c1);border-radius:.3rem;
padding:.5rem 1rem;margin:1rem 0}.advice ul{margin:.3rem 0;padding-left:1.2rem}
figure{margin:1.8rem 0}figcaption p{color:var(--faint);font-size:.95rem}
.plot{overflow-x:auto;margin:.4rem 0}.plot svg{display:block;width:100%;min-width:34rem;height:auto}
.plot svg text{font-family:inherit!important}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;margin:.5rem 0;
font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--faint);padding:.2rem 0}
th,td{padding:.2rem .7rem .2rem 0;text-align:left;border-bottom:1px solid var(--rule);
vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
summary{cursor:pointer;color:var(--link);font-size:.9rem;width:fit-content}
footer{padding-bottom:2rem;color:var(--faint);font-size:.9rem}
@media print{:root{--ground:#fff;--raised:#fff;--ink:#000;--faint:#333;
--rule:#999;color-scheme:light}nav,button,.skip{display:none}figure,.tiles,.advice{break-inside:avoid}
h2{break-after:avoid}.plot svg{min-width:0}.tile{border:1px solid #999}a{color:inherit}}
"""

# What it adds: another theme than the system's, and numbers beside figures on paper.
_SCRIPT = """
const root=document.documentElement,button=document.getElementById('theme');
const dark=()=>root.dataset.theme?root.dataset.theme==='dark':
matchMedia('(prefers-color-scheme:dark)').matches;
button.hidden=false;
button.onclick=()=>{root.dataset.theme=dark()?'light':'dark'};
let opened=[];
addEventListener('beforeprint',()=>{opened=[...document.querySelectorAll('details:not([open])')];
opened.forEach(d=>d.open=true)});
addEventListener('afterprint',()=>opened.forEach(d=>d.open=false));
"""


def _text(value: str) -> str:
    return html.escape(value)


def _cell(value: Cell, tag: str = "td") -> str:
    if value is None:
        return f'<{tag} class="n">–</{tag}>'
    if not isinstance(value, (int, float)):
        return f"<{tag}>{_text(str(value))}</{tag}>"
    shown = f"{value:,}" if isinstance(value, int) else number(value)
    return f'<{tag} class="n">{shown}</{tag}>'


def _table(table: Table) -> str:
    numeric = [all(not isinstance(row[column], str) for row in table.rows)
               for column in range(len(table.header))]
    head = "".join(f'<th scope="col"{" class=n" if right else ""}>{_text(name)}</th>'
                   for name, right in zip(table.header, numeric, strict=True))
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    return (f'<div class="wide" tabindex="0" role="region" aria-label="{_text(table.caption)}">'
            f"<table><caption>{_text(table.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def _figure(figure: Figure) -> str:
    numbers = ""
    if figure.numbers is not None:
        numbers = f"<details><summary>Numbers</summary>{_table(figure.numbers)}</details>"
    return (f"<figure><figcaption><h3>{_text(figure.title)}</h3><p>{_text(figure.text)}</p>"
            f'</figcaption><div class="plot" tabindex="0" role="region" '
            f'aria-label="{_text(figure.title)}">{figure.svg}</div>{numbers}</figure>')


def _tile(tile: Tile) -> str:
    remark = f"<dd>{_text(tile.remark)}</dd>" if tile.remark else ""
    return f'<div class="tile"><dt>{_text(tile.name)}</dt><dd>{_text(tile.value)}</dd>{remark}</div>'


def _section(section: Section, place: int) -> str:
    parts = [f'<section aria-labelledby="s{place}"><h2 id="s{place}">{_text(section.title)}</h2>']
    if section.text:
        parts.append(f"<p>{_text(section.text)}</p>")
    if section.tiles:
        parts.append(f'<dl class="tiles">{"".join(_tile(tile) for tile in section.tiles)}</dl>')
    if section.advice:
        items = "".join(f"<li>{_text(line)}</li>" for line in section.advice)
        parts.append(f'<div class="advice"><h3>What this tells</h3><ul>{items}</ul></div>')
    for part in section.parts:
        if isinstance(part, Figure):
            parts.append(_figure(part))
        elif len(part.rows) > _ROWS_IN_SIGHT:
            parts.append(f"<details><summary>{_text(part.caption)}</summary>{_table(part)}"
                         "</details>")
        else:
            parts.append(_table(part))
    return "".join(parts) + "</section>"


def page(sections: Sequence[Section], title: str) -> str:
    """HTML, with style, script and drawings in it."""
    links = "".join(f'<li><a href="#s{place}">{_text(section.title)}</a></li>'
                    for place, section in enumerate(sections, 1))
    body = "".join(_section(section, place) for place, section in enumerate(sections, 1))
    return ("<!DOCTYPE html>\n"
            f'<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            '<link rel="icon" href="data:,">'
            f"<style>{_CSS}</style></head><body>"
            '<a class="skip" href="#content">To the content</a>'
            f"<header><h1>{_text(title)}</h1>"
            '<button id="theme" type="button" hidden>Light or dark</button>'
            f'<nav aria-label="Sections"><ol>{links}</ol></nav></header>'
            f'<main id="content">{body}</main>'
            "<footer><p>Made by hanare report; this page needs nothing besides itself.</p></footer>"
            f"<script>{_SCRIPT}</script></body></html>\n")
