"""From a figure of matplotlib to an SVG of the page.

A figure is drawn in placeholder colours, one per role, which are replaced here by CSS
variables (the stylesheet defines them for light and dark). Text stays text, so that it
takes the page's font, can be searched and is read aloud. What a mark stands for is said
beside a pointer (`told`), by the picture alone: it needs no script, and works in
a file of its own.
"""

import html
import io
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray

from dpaudit.reports.escaping import plain

# Colours that no figure would use by itself; `to_svg` swaps them for variables.
INK, MUTED, RULE, PAPER, REFUTED = (f"#0{i}0a0b" for i in range(1, 6))
SERIES = tuple(f"#0{i}0c0d" for i in range(1, 8))
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    PAPER: "--paper",
    REFUTED: "--refuted",
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES, start=1)},
}
_COLOUR = re.compile("|".join(_VARIABLES))

# CSS pixels: around a mark, which speaks for all whose middle is in there, or nearly.
_REACH, _NEAR = 9.0, 10.0
_BETWEEN = 12.0  # CSS pixels along a series, at least, between marks that speak


@dataclass(frozen=True)
class _Told:
    """What marks of a series stand for, in data units: discs if they have no size."""

    axes: Axes
    places: NDArray[np.float64]
    texts: Sequence[str]
    sizes: NDArray[np.float64] | None = None


class Canvas(Figure):
    """A figure that knows what its marks stand for."""

    told: list[_Told]


def told(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    texts: Sequence[str],
    size: tuple[float, float] | None = None,
) -> None:
    """Say what the marks of a series stand for, beside a pointer at them.

    Of a series whose marks are close to each other some speak. Marks of several series
    at one place speak together.

    ``axes``: of a figure by `canvas`. Its scales may still change. ``x``, ``y``: where
    the marks are, in data units. ``texts``: one for each. ``size``: of marks that are
    rectangles whose lower left corners are there.
    """
    figure = axes.figure
    assert isinstance(figure, Canvas)
    places = np.stack([np.asarray(x, float), np.asarray(y, float)], axis=-1)
    sizes = None if size is None else np.broadcast_to(size, places.shape)
    figure.told.append(_Told(axes, places, list(texts), sizes))


def told_whole(axes: Axes, text: str) -> None:
    """Say what axes show, beside a pointer where no mark says more."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    told(axes, [left], [bottom], [text], (right - left, top - bottom))


def to_svg(
    figure: Figure, name: str, *, narrow: bool, title: str, description: str
) -> str:
    """Return a figure as an inline ``<svg>`` element.

    ``figure``: drawn inside `canvas`, in the colours of this module. ``name``: unique
    on the page. With ``figure-`` in front and what it is for behind it is the
    identifier; ids inside begin with its checksum. ``narrow``: for phones. ``title``,
    ``description``: what a screen reader says instead of the picture.
    """
    name = f"figure-{name}-{'narrow' if narrow else 'wide'}"
    for written in figure.findobj(Text):
        lines = written.get_text().split("\n")
        written.set_text("\n".join(map(plain, lines)))
    text = element(figure, transparent=True)
    speaking = _speaking(figure)
    # The size comes from the stylesheet; the view box keeps the proportions.
    root, body = text.split(">", maxsplit=1)
    view_box = re.search(r'viewBox="[^"]*"', root)
    assert view_box is not None  # matplotlib always writes one
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    # In tags only: what is written in the figure stays as it is.
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]*)', body))
    prefix = _prefix("f", name)
    ids = {each: f"{prefix}-{number}" for number, each in enumerate(used)}
    body = _TAG.sub(lambda tag: _on_the_page(tag[0], ids), body)
    body = _UNSEEN.sub("", _MARKS.sub(_in_one_style, body))
    body = _without_plain_groups(body)
    opening = (
        f'<svg {view_box[0]} role="img" '
        f'id="{name}" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{html.escape(plain(title))}</title>'
        f'<desc id="{name}-description">{html.escape(plain(description))}</desc>'
    )
    drawn = re.sub(r"\n\s*", "\n", body).strip().removesuffix("</svg>")
    return f"{opening}{drawn}{speaking}</svg>"


def element(figure: Figure, **options: Any) -> str:
    """Return a figure as an ``<svg>`` element, as matplotlib draws it."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, **options)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _speaking(figure: Figure) -> str:
    """Return what shows words beside a pointer: shapes on top, which are not seen."""
    below: list[str] = []
    above: list[tuple[NDArray[np.float64], list[str]]] = []
    high = 72 * figure.get_size_inches()[1]
    for each in figure.told if isinstance(figure, Canvas) else ():
        move = each.axes.transData.transform
        places = move(each.places)
        if each.sizes is not None:
            others = move(each.places + each.sizes)
            corners, spans = np.minimum(places, others), np.abs(others - places)
            for (x, y), (w, h), text in zip(corners, spans, each.texts, strict=True):
                place = f'x="{x:.1f}" y="{high - y - h:.1f}" '
                place += f'width="{w:.1f}" height="{h:.1f}"'
                below.append(_speaker("rect", place, [text]))
            continue
        box = each.axes.get_window_extent().padded(_REACH)
        seen = [i for i, (x, y) in enumerate(places) if box.contains(x, y)]
        if not seen:
            continue
        steps = np.diff(places[seen], axis=0, prepend=places[seen[:1]])
        along = np.cumsum(np.hypot(*steps.T))
        for i in (seen[j] for j in thinned(along, _BETWEEN)):
            near = (s for at, s in above if np.hypot(*(at - places[i])) < _NEAR)
            if (said := next(near, None)) is not None:
                said.append(each.texts[i])
            else:
                above.append((places[i], [each.texts[i]]))
    for (x, y), texts in above:
        place = f'cx="{x:.1f}" cy="{high - y:.1f}" r="{_REACH:g}"'
        below.append(_speaker("circle", place, texts))
    if not below:
        return ""
    inside = "".join(below)
    return f'<g class="told" fill="none" pointer-events="all">\n{inside}</g>\n'


def _speaker(shape: str, place: str, texts: Sequence[str]) -> str:
    said = "&#10;".join(html.escape(plain(text)) for text in texts)
    return f"<{shape} {place}><title>{said}</title></{shape}>\n"


def with_classes(svg: str) -> str:
    """Return figures that say styles and clips of several elements once, as classes.

    They look the same, in two thirds of the bytes.

    ``svg``: from `to_svg`, one or several, the first of which has the classes of all.
    """
    # In tags only: a name may look like a style.
    used = Counter(each for tag in _TAG.findall(svg) for each in _LOOKS.findall(tag))
    prefix = _prefix("c", svg[: svg.index(">")])
    often = [look for look, times in used.most_common() if times > 1]
    classes = {look: f"{prefix}-{i}" for i, look in enumerate(often)}
    rules = "".join(
        f".{name}{{{style or f'clip-path: {clip}'}}}"
        for (clip, style), name in classes.items()
    )
    opening, rest = svg.split(">", maxsplit=1)

    def short(tag: re.Match[str]) -> str:
        looks = _LOOKS.findall(tag[0])
        names = " ".join(classes[each] for each in looks if each in classes)
        kept = _LOOKS.sub(lambda m: "" if m.groups("") in classes else m[0], tag[0])
        return re.sub(r"^<\w+", rf'\g<0> class="{names}"', kept) if names else kept

    return f"{opening}><style>{rules}</style>{_TAG.sub(short, rest)}"


def standalone(svg: str, stylesheet: str) -> str:
    """Return an inline ``<svg>`` as a file of its own.

    ``svg``: from `to_svg`. ``stylesheet``: CSS that defines the variables of the
    colours.
    """
    style = (
        f"{stylesheet}\ntext {{ font-family: var(--sans); }}\n"
        "svg { background: var(--paper); }"
    )
    opening, rest = with_classes(svg).split(">", maxsplit=1)
    opening = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{opening}><style>{style}</style>{rest}\n"


def _prefix(kind: str, name: str) -> str:
    """Return what ids and classes of a figure begin with, one of 1.7 million."""
    number = np.base_repr(zlib.crc32(name.encode()) % 36**4, 36)
    return f"{kind}{number.lower():0>4}"


_MARKS = re.compile(r'<g( clip-path="[^"]*")?>\s*((?:<use [^>]*/>\s*){2,})</g>')
_STYLE = re.compile(r' style="[^"]*"')
_TAG = re.compile(r"<[^>]*>")
# Paths of a point alone, and without ink.
_UNSEEN = re.compile(
    r'<path d="M[^a-zA-Z"]*"[^>]*/>\s*|<path d="[^"]*" style="fill: none"/>\s*'
)
_LOOKS = re.compile(r' clip-path="([^"]*)"| style="([^"]*)"')
_GROUP = re.compile(r"<g>\s*|<g [^>]*>|</g>\s*|<g */>\s*")


def _without_plain_groups(body: str) -> str:
    """Return a drawing without groups that say nothing of what is in them."""
    says: list[bool] = []  # of the groups around a place

    def kept(tag: re.Match[str]) -> str:
        if tag[0].startswith("</"):
            return tag[0] if says.pop() else ""
        if not tag[0].rstrip().endswith("/>"):
            says.append(tag[0].startswith("<g "))
        return tag[0] if tag[0].startswith("<g ") else ""

    return _GROUP.sub(kept, body)


def _in_one_style(marks: re.Match[str]) -> str:
    """Return a group of marks that all look the same with their style said once."""
    styles = set(_STYLE.findall(marks[2]))
    if len(styles) != 1 or marks[2].count("<use") != len(_STYLE.findall(marks[2])):
        return marks[0]
    return f"<g{marks[1] or ''}{styles.pop()}>\n{_STYLE.sub('', marks[2])}</g>"


def _on_the_page(tag: str, ids: Mapping[str, str]) -> str:
    """Return a tag with ids of its figure, and with the page's colours and fonts.

    An id that nothing refers to goes, and so does a turn by nothing.
    """
    if ' id="' in tag:
        tag = re.sub(
            r' id="([^"]*)"', lambda m: f' id="{ids[m[1]]}"' if m[1] in ids else "", tag
        )
    if "#" in tag:
        tag = re.sub(r'xlink:href="#([^"]*)"', lambda m: f'href="#{ids[m[1]]}"', tag)
        tag = re.sub(r"url\(#([^)]*)\)", lambda m: f"url(#{ids[m[1]]})", tag)
        tag = _COLOUR.sub(lambda m: f"var({_VARIABLES[m[0]]})", tag)
    if "." in tag:
        tag = _PLACES.sub(lambda m: _FRACTION.sub(_rounded, m[0]), tag)
    tag = tag.replace(" stroke-dashoffset: 0;", "")  # as it is anyway
    if ' d="' in tag:
        tag = re.sub(r' d="([^"]*)"', lambda m: f' d="{_in_steps(m[1])}"', tag)
    if tag.startswith("<text"):
        tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
        # The family is the page's; matplotlib wrote fonts into every text, in one of
        # two ways, by its version.
        tag = re.sub(r"font: ((?:\w+ )*?)([\d.]+px) [^;\"]*", _font, tag)
        tag = re.sub(r"font-family: [^;\"]*(?:; )?", "", tag)
    return tag


_PLACES = re.compile(r' (?:d|x|y|transform)="[^"]*"')
_DRAWN = re.compile(r"([MLQCz])([^MLQCz]*)")
_FRACTION = re.compile(r"\d+\.\d{2,}")


def _rounded(number: re.Match[str]) -> str:
    """Return a place to a tenth of a pixel; what is small to a hundredth."""
    value = float(number[0])
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _in_steps(path: str) -> str:
    """Return a path whose points are told from the last one: half of the bytes.

    The points are the same: hundredths of a pixel, which are added without an error.

    >>> _in_steps("M 52 -26.1 L 72.75 -21.8 C 72.75 0 60 0.5 58 8 L 58 0 z")
    'M52-26.1l20.75 4.3c0 21.8-12.75 22.3-14.75 29.8l0-8z'
    """
    steps, start, x, y = "", (0, 0), 0, 0
    for letter, numbers in _DRAWN.findall(path):
        places = [round(100 * float(each)) for each in numbers.split()]
        if letter == "M":
            start = x, y = places[0], places[1]
            steps += f"M{_joined(places)}"
        elif letter == "z":
            x, y = start
            steps += "z"
        else:  # of lines and curves
            away = [each - (y if i % 2 else x) for i, each in enumerate(places)]
            steps += letter.lower() + _joined(away)
            x, y = places[-2], places[-1]
    return steps


def _joined(hundredths: Sequence[int]) -> str:
    text = " ".join(f"{each / 100:g}" for each in hundredths)
    return re.sub(r"\b0\.", ".", text).replace(" -", "-")


def _font(match: re.Match[str]) -> str:
    weight = match[1].strip()
    return f"font-size: {match[2]}" + (f"; font-weight: {weight}" if weight else "")


def thinned(places: ArrayLike, gap: float) -> list[int]:
    """Return which of ascending places to keep, `gap` apart at least; the last stays.

    >>> thinned([0.0, 10.0, 18.0, 40.0, 45.0], gap=20.0)
    [2, 4]
    """
    ascending = np.asarray(places, dtype=float)
    kept: list[int] = []
    for i in reversed(range(len(ascending))):
        if not kept or ascending[kept[-1]] - ascending[i] >= gap:
            kept.append(i)
    return kept[::-1]
