"""Pages that live elsewhere in the repository, and links that lead there.

The changelog, the results and a few others are read where they are, on the site as well as beside
the code. They are copied into the site before it is built. A page may link to any file of the
repository, as it would beside the code; links to files that are no page of the site become text.
"""

import os
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")
PICTURES = (".png", ".svg")

# Where a file of the repository stands on the site.
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "EQUATIONS.md": "project/equations.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",  # not copied: the first page has words of its own
    **{f"results/{p.name}": f"results/{p.name}" for p in (ROOT / "results").glob("*.md")},
    "results/README.md": "results/index.md",
}
ORDER = ["README", "claims", "many_tables", "dirt_zoo", "flags", "thresholds", "mri"]


def on_site(path: str) -> str | None:
    """Return where a file of the repository stands on the site; None if it does not."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    return path if path.startswith("results/") and path.endswith(PICTURES) else None


def relinked(text: str, home: str) -> str:
    """Turn the links of a file in the folder `home` into links of the site."""

    def link(found: re.Match[str]) -> str:
        picture, words, target, anchor = found.groups()
        place = on_site(os.path.normpath(os.path.join(home, target)))
        if place is None:
            return words
        return f"{picture}[{words}](/{place}{anchor or ''})"

    return LINK.sub(link, text)


def copied(text: str, home: str, wide: bool) -> str:
    """Return a copy's text; one with wide tables may take the whole width of the page."""
    front = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n" if wide else ""
    return front + relinked(text, home)


def copy_pages(app: Sphinx) -> None:
    """Write the copies; a copy that is up to date is left alone, so that it is not read again."""
    for source, place in PAGES.items():
        if source == "README.md":
            continue
        home = os.path.dirname(source)
        text = (ROOT / source).read_text("utf-8")
        if source == "results/README.md":
            text += contents_of_results()
        write(Path(app.srcdir) / place, copied(text, home, wide=home == "results"))
    for picture in (ROOT / "results").glob("*"):
        if picture.suffix in PICTURES:
            shutil.copy(picture, Path(app.srcdir) / "results" / picture.name)


def contents_of_results() -> str:
    """Return the table of contents of the results: the ones that matter most come first."""
    found = {p.stem for p in (ROOT / "results").glob("*.md")}
    names = [*ORDER[1:], *sorted(found - set(ORDER))]
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def write(path: Path, text: str) -> None:
    """Write a file unless it has this text already."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def relink(app: Sphinx, docname: str, source: list[str]) -> None:
    """Let pages of the site link to files of the repository as they would beside the code."""
    if app.env.doc2path(docname).suffix == ".md":
        source[0] = relinked(source[0], os.path.join("docs", os.path.dirname(docname)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about it."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", relink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
