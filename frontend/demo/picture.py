"""The picture: digits with what the model takes them for, and how it learned; one HTML file that needs nothing else.

Curves are drawn as SVG, each digit is a PNG of 8 x 8 pixels inside the page. No drawing library is needed.
Read next: story.py.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

import numpy as np

from .train import SIDE, History

TILES = 60  # digits shown
WIDTH, HEIGHT = 460, 230  # of a chart, in SVG units
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 12, 28  # its margins


@dataclass(frozen=True, slots=True)
class Verdict:
    """One held-out image (f32[64], 0 to 1), the digit it shows, and the digit the model takes it for."""

    pixels: np.ndarray
    label: int
    predicted: int

    @property
    def right(self) -> bool:
        return self.label == self.predicted


def page(verdicts: Sequence[Verdict], history: History, trained_on: int, seconds: float) -> str:
    """The whole page as HTML."""
    wrong = [v for v in verdicts if not v.right]
    shown = [*wrong, *(v for v in verdicts if v.right)][:TILES]
    facts = [
        (f"{1 - len(wrong) / len(verdicts):.1%}", "of held-out digits right"),
        (f"{len(verdicts) - len(wrong)} of {len(verdicts)}", "images it had never seen"),
        (f"{trained_on:,}", "images trained on"),
        (f"{seconds:.1f} s", f"for {len(history.accuracies)} epochs, {len(history.losses)} steps"),
    ]
    others = len(shown) - len(wrong)
    return PAGE.substitute(
        facts="".join(f"<div><b>{escape(number)}</b><span>{escape(what)}</span></div>" for number, what in facts),
        loss=loss_chart(history.losses),
        accuracy=accuracy_chart(history.accuracies),
        tiles="".join(map(tile, shown)),
        caption=f"All {len(wrong)} mistakes first, then {others} of those that it got right."
        if others > 0
        else f"{len(shown)} of its {len(wrong)} mistakes.",
    )


def tile(verdict: Verdict) -> str:
    """One digit with the model's answer under it: green where it is right, red beside the truth where it is not."""
    source = "data:image/png;base64," + base64.b64encode(png(verdict.pixels)).decode()
    answer = f"<b>{verdict.predicted}</b>"
    if not verdict.right:
        answer += f"<small>is {verdict.label}</small>"
    kind = "right" if verdict.right else "wrong"
    alt = f"{verdict.label}, taken for {verdict.predicted}"
    return f'<figure class="{kind}"><img src="{source}" alt="{alt}"><figcaption>{answer}</figcaption></figure>'


def png(pixels: np.ndarray) -> bytes:
    """A grey PNG of one digit, ink dark on white.

    Source: W3C, "Portable Network Graphics", chunks IHDR, IDAT and IEND; each row opens with filter type 0.
    """
    grey = np.round(255 * (1 - pixels)).astype(np.uint8).reshape(SIDE, SIDE)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)  # 8 bits of grey, not interlaced
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


# Charts ---------------------------------------------------------------------------------------------------------------


def loss_chart(losses: Sequence[float]) -> str:
    """The loss of every step, thin, and its running mean, bold; on a logarithmic axis, as it falls by powers of ten."""
    floor = min(max(min(losses), 1e-4), 0.1)
    low, high = np.floor(np.log10(floor)), np.ceil(np.log10(max(max(losses), 1.0)))
    heights = (np.log10(np.maximum(losses, 10.0**low)) - low) / (high - low)
    ticks = [(i / (high - low), f"{10.0 ** (low + i):g}") for i in range(int(high - low) + 1)]
    lines = polyline(heights, "thin") + polyline(running_mean(heights, max(1, len(losses) // 40)), "bold")
    return chart(ticks, f"{len(losses)} steps", lines)


def accuracy_chart(accuracies: Sequence[float]) -> str:
    """The held-out accuracy after every epoch, from 80 % (or lower, where it began lower) to 100 %."""
    low = min(0.8, np.floor(min(accuracies) * 10) / 10)
    heights = (np.asarray(accuracies) - low) / (1 - low)
    marks = [low, (low + 1) / 2, 1.0]
    ticks = [((mark - low) / (1 - low), f"{mark:.0%}") for mark in marks]
    x, y = places(heights)[-1]
    last = (
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text class="last" x="{x - 8:.1f}" y="{y + 22:.1f}" text-anchor="end">{accuracies[-1]:.1%}</text>'
    )
    return chart(ticks, f"{len(accuracies)} epochs, the last under bfloat16 autocast", polyline(heights, "bold") + last)


def chart(ticks: Iterable[tuple[float, str]], below: str, marks: str) -> str:
    """A frame with labelled horizontal lines at heights from 0 to 1, and what is drawn in it."""
    grid = ""
    for height, label in ticks:
        y = HEIGHT - BOTTOM - height * (HEIGHT - TOP - BOTTOM)
        grid += f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        grid += f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    title = f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{below}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{grid}{title}{marks}</svg>'


def polyline(heights: np.ndarray, kind: str) -> str:
    """A line through heights from 0 to 1, from the left edge of the frame to the right one."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places(heights))}"/>'


def places(heights: np.ndarray) -> np.ndarray:
    """Returns where heights from 0 to 1 lie in the frame: [n, 2], x and y in SVG units."""
    xs = np.linspace(LEFT, WIDTH - RIGHT, len(heights)) if len(heights) > 1 else np.array([(LEFT + WIDTH - RIGHT) / 2])
    return np.stack([xs, HEIGHT - BOTTOM - heights * (HEIGHT - TOP - BOTTOM)], axis=1)


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of each value and the `window` before and after it, as far as there are so many."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    start, stop = np.maximum(at - window, 0), np.minimum(at + window + 1, len(values))
    return (sums[stop] - sums[start]) / (stop - start)


PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>redispatch: digits</title>
<style>
  :root { --paper: #fbfaf7; --card: #fff; --ink: #22242c; --soft: #757a86; --line: #e6e3db;
          --accent: #3f5bd8; --right: #1b8a54; --wrong: #cf3440; }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #16181d; --card: #1f2229; --ink: #e9e8e4; --soft: #9297a3; --line: #33373f;
            --accent: #8ea2ff; --right: #45c486; --wrong: #ff6f78; } }
  * { box-sizing: border-box }
  body { margin: 0 auto; max-width: 1040px; padding: 44px 24px 56px; background: var(--paper); color: var(--ink);
         font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  h1 { margin: 0; font-size: 30px; letter-spacing: -.02em }
  h2 { margin: 0 0 10px; font-size: 15px; font-weight: 600 }
  p { margin: 4px 0 0; color: var(--soft) }
  .facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 14px;
           margin: 28px 0 14px }
  .facts div, .card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
                      padding: 16px 18px }
  .facts b { display: block; font-size: 27px; letter-spacing: -.02em; font-variant-numeric: tabular-nums }
  .facts span { color: var(--soft); font-size: 13px }
  .facts div:first-child b { color: var(--right) }
  .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(360px, 1fr)); gap: 14px;
            margin-bottom: 14px }
  svg { display: block; width: 100%; height: auto }
  svg line { stroke: var(--line) }
  svg text { fill: var(--soft); font-size: 12px }
  svg .last { fill: var(--accent); font-weight: 700; font-size: 14px }
  polyline { fill: none; stroke: var(--accent); stroke-linejoin: round }
  .thin { stroke-width: 1; opacity: .3 }
  .bold { stroke-width: 2.4 }
  .dot { fill: var(--accent) }
  .tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(66px, 1fr)); gap: 10px; margin-top: 16px }
  figure { margin: 0; border: 2px solid var(--mark); border-radius: 10px; overflow: hidden; background: var(--card) }
  figure img { display: block; width: 100%; aspect-ratio: 1; padding: 5px; background: #fff;
               image-rendering: pixelated }
  figcaption { display: flex; justify-content: center; align-items: baseline; gap: 5px; padding: 2px 0 3px;
               color: var(--mark); border-top: 1px solid var(--line) }
  figcaption b { font-size: 17px }
  figcaption small { font-size: 11px; color: var(--soft) }
  .right { --mark: var(--right) }
  .wrong { --mark: var(--wrong) }
</style>
<h1>Handwritten digits, learned through redispatch</h1>
<p>A two-layer classifier on 8 × 8 scans, with an activation that is a custom operator.</p>
<div class="facts">$facts</div>
<div class="charts">
  <div class="card"><h2>Training loss</h2>$loss</div>
  <div class="card"><h2>Accuracy on held-out digits</h2>$accuracy</div>
</div>
<div class="card">
  <h2>What it takes them for</h2>
  <p>$caption Under each scan is the model's answer: green where it is right, red where it is not.</p>
  <div class="tiles">$tiles</div>
</div>
</html>
""")
