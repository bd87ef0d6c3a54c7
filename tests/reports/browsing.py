"""Look at the pages of a site in a browser: what is wrong with them, by kind."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urldefrag

from playwright.sync_api import TimeoutError, sync_playwright

KINDS = (
    *("errors", "requests", "unnamed", "contrast", "sideways", "schemes", "print"),
    *("scripts", "sorting", "filters", "links", "height", "beginning", "silent"),
)
"""What is looked for; `survey` has a list of sentences for each."""

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LOOKS = [
    (f"{width}-{scheme}", size, scheme)
    for width, size in (("wide", WIDE), ("narrow", NARROW))
    for scheme in ("light", "dark")
]
_ELSEWHERE = re.compile("^(?!file:|data:|blob:|about:)")
PAPER = {"width": 794, "height": 1123}  # A4 at 96 pixels an inch
PATIENCE = 15_000  # milliseconds: much, as a machine may be busy
_TALLEST = 3_000  # pixels of a page that a screenshot shows
_SCRIPT = (Path(__file__).parent / "in_the_page.js").read_text(encoding="utf-8")


def chromium() -> str | None:
    """Return the path of a Chromium, or None if there is none."""
    if named := os.environ.get("DPAUDIT_CHROMIUM"):
        return named
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def browser(executable: str) -> Iterator:
    """Start a browser without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable)
        yield started
        started.close()


def survey(
    browser,
    folder: Path,
    screenshots: Path | None = None,
    most: int | None = None,
    pages: tuple[str, ...] = (),
) -> dict:
    """Visit the pages of a folder; return what is wrong, by kind.

    Parameters
    ----------
    browser : playwright.sync_api.Browser
    folder : Path
    screenshots : Path, optional
        Where to keep pictures of one page of each kind. Pages in one folder are of one
        kind, but for its index.
    most : int, optional
        How many pages of a kind are visited; all by default.
    pages : tuple of str
        Their names, if not all are looked at.
    """
    visitor = _Visitor(browser, folder, screenshots)
    found = [path.relative_to(folder) for path in folder.rglob("*.html")]
    found = [path for path in found if not pages or path.as_posix() in pages]
    found.sort(key=lambda path: (len(path.parts), path.name != "index.html", path))
    seen = Counter()
    for page in found:
        kind = (page.parent, page.name == "index.html")
        if most is None or seen[kind] < most:
            visitor.visit(page.as_posix(), first=not seen[kind])
        seen[kind] += 1
    visitor.close()
    return visitor.found


class _Visitor:
    def __init__(self, browser, folder, screenshots):
        self.found = {kind: [] for kind in KINDS}
        self._folder, self._screenshots = folder.resolve(), screenshots
        options = {"reduced_motion": "reduce"}
        self._contexts = [
            browser.new_context(java_script_enabled=scripts, **options)
            for scripts in (True, False)
        ]
        self._page, self._still = (each.new_page() for each in self._contexts)
        self._name = ""
        self._page.on("console", self._told)
        self._page.on("pageerror", lambda error: self._note("errors", str(error)))
        for page in (self._page, self._still):
            page.on("request", self._requested)
            page.on("requestfailed", self._missed)
        for each in self._contexts:
            each.route(_ELSEWHERE, lambda route: route.abort())

    def close(self):
        for each in self._contexts:
            each.close()

    def visit(self, name, *, first):
        """Look at a page from all sides; at the first of its kind more closely."""
        self._name, page = name, self._page
        url = (self._folder / name).as_uri()
        page.goto(url)
        backgrounds = set()
        for look, size, scheme in LOOKS:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            self._measure(name, size, look)
        self._ask("unfold")
        for look, size, scheme in LOOKS:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            self._note("silent", *self._ask("silent"), look=look)
            backgrounds.add(self._ask("background"))
            self._note("contrast", *self._ask("contrast"), look=look)
            if size is NARROW and scheme == "light":
                self._note("sideways", *self._ask("sideways"), look=look)
            if first and self._screenshots is not None:
                self._picture(look, size)
        if len(backgrounds) != 2:
            self._note("schemes", f"the background is {' and '.join(backgrounds)}")
        page.set_viewport_size(PAPER)
        page.emulate_media(media="print")
        self._note("print", *self._ask("printed"))
        page.emulate_media(media="screen", color_scheme="light")
        page.set_viewport_size(WIDE)
        self._note("unnamed", *self._ask("unnamed"))
        self._note("sorting", *self._ask("sorting"))
        self._note("filters", *self._ask("filters"))
        if first:
            self._compare_without_scripts(url)
            self._follow(url)

    def _measure(self, name, size, look):
        """See how high a page of a report is that decides, and what comes first."""
        wide = size is WIDE
        if name.endswith("index.html") and self._page.query_selector("#fell"):
            self._note("height", *self._ask("height", 3 if wide else 6), look=look)
            self._note("beginning", *self._ask("beginning"), look=look)
        elif name.startswith("sections/") and wide:
            self._note("height", *self._ask("height", 6), look=look)

    def _ask(self, question, *arguments, page=None):
        call = f"all => ({_SCRIPT}).{question}(...all)"
        return (page or self._page).evaluate(call, arguments)

    def _note(self, kind, *sentences, look=""):
        where = f"{self._name} ({look})" if look else self._name
        self.found[kind] += [f"{where}: {each}" for each in sentences]

    def _told(self, message):
        if message.type in {"error", "warning"}:
            self._note("errors", message.text)

    def _requested(self, request):
        if _ELSEWHERE.match(request.url):
            self._note("requests", f"asks for {request.url}")

    def _missed(self, request):
        # What is aborted is what nobody waits for any more: the page was left.
        if not (_ELSEWHERE.match(request.url) or "ABORTED" in request.failure):
            self._note("requests", f"did not get {request.url}")

    def _picture(self, look, size):
        height = self._page.evaluate("document.documentElement.scrollHeight")
        name = self._name.removesuffix(".html").replace("/", "-")
        self._page.screenshot(
            path=self._screenshots / f"{name}-{look}.png",
            full_page=True,
            clip={
                **{"x": 0, "y": 0, "width": size["width"]},
                "height": min(height, _TALLEST),
            },
        )

    def _compare_without_scripts(self, url):
        self._still.goto(url)
        self._ask("unfold", page=self._still)
        gone = Counter(self._ask("words")) - Counter(
            self._ask("words", page=self._still)
        )
        if gone:
            some = " ".join(list(gone)[:8])
            self._note("scripts", f"without scripts {gone.total()} words: {some}")

    def _follow(self, url, most=8):
        """Click on some links: the page they name opens, the place is in sight."""
        self._page.goto(url)  # sorted as it was
        places, alike = {}, {}
        for place, target in self._ask("links"):
            page, fragment = urldefrag(target)
            places.setdefault(target, place)
            if page.startswith("file:") and page.endswith(".html"):
                folder = page if page == url else page.rpartition("/")[0]
                alike.setdefault((folder, bool(fragment)), []).append(target)
        chosen = {each for some in alike.values() for each in (some[0], some[-1])}
        for target in sorted(chosen)[:most]:
            try:
                self._page.locator("a[href]").nth(places[target]).click(
                    timeout=PATIENCE
                )
                self._page.wait_for_url(target, timeout=PATIENCE)
            except TimeoutError:
                self._note("links", f"a click on the link to {target} leads nowhere")
            else:
                self._find_place(target)
            self._page.goto(url)

    def _find_place(self, target):
        if not (place := unquote(urldefrag(target)[1])):
            return
        try:
            call = f"place => ({_SCRIPT}).inSight(place)"
            self._page.wait_for_function(call, arg=place, timeout=PATIENCE)
        except TimeoutError:
            self._note("links", f"after a click, {target} is not in sight")
