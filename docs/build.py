"""Builds the documentation site: `make docs`.

Warnings are errors, every example runs, and every link within the site has to lead somewhere:

1. Sphinx builds the pages and runs the gallery; a warning or a failed example fails the build.
2. Links and anchors of the finished pages are looked up.
3. The Python blocks of the pages and the examples of the docstrings run as tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).parent
OUT = HERE / "_build" / "html"
EXAMPLES = ("tests/docs/test_pages.py", "tests/integration/test_readme.py")


def sphinx(source: Path, out: Path, gallery: bool = True) -> None:
    """Build the pages; without `gallery` its examples are shown, but do not run."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "--quiet"]
    if not gallery:
        command += ["-D", "plot_gallery=0"]
    subprocess.run([*command, "-d", str(out.parent / "doctrees"), source, out], check=True)


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to and what it is called."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def finished_pages(site: Path) -> list[Path]:
    """Return the pages of a site; what the theme keeps in _static is none."""
    return [p for p in site.rglob("*.html") if "_static" not in p.relative_to(site).parts]


def broken_links(site: Path) -> Iterator[str]:
    """Yield every link within the site that leads nowhere, with the page it stands on."""
    pages = {path.resolve(): Page(path) for path in finished_pages(site)}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else {anchor}
            if not target.exists() or (anchor and anchor not in known):
                yield f"{path.relative_to(site.resolve())}: {link}"


def main() -> None:
    """Build, check and say how much there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-gallery", action="store_true", help="do not run the gallery")
    asked, started = parser.parse_args(), time.perf_counter()
    sphinx(HERE, OUT, gallery=not asked.no_gallery)
    if broken := list(broken_links(OUT)):
        sys.exit("Links that lead nowhere:\n" + "\n".join(broken))
    command = [sys.executable, "-m", "pytest", "-q", *EXAMPLES]
    subprocess.run(command, cwd=HERE.parent, check=True)
    n_pages, seconds = len(finished_pages(OUT)), time.perf_counter() - started
    sys.stdout.write(f"{n_pages} pages in {seconds:.0f} s: {OUT / 'index.html'}\n")


if __name__ == "__main__":
    main()
