"""Builds the site into build/site, without a network: docs/, the README as its front page, contributing and changes,
and the reference of the command line, which is made from the parsers. A dead link or heading fails it.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
# Files beside docs/ that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
# Files that pages link to.
FILES = ("LICENSE", "CITATION.cff")
# What stands at the side, in this order: a heading and its pages.
CONTENTS = {
    "Begin": ("start", "your-own-benchmark", "reading-a-report", "gallery", "troubleshooting"),
    "Evaluate": ("using", "view", "millstone", "chameleon", "sycon", "labels-and-judges", "intervals"),
    "Quotas and money": ("quotas-and-money", "shared-cache", "scale", "providers", "probe", "load"),
    "Inside other tools": ("embedding", "gateway", "batch", "simulator"),
    "Reference": ("command-line", "reference", "words"),
    "The project": ("house", "reliability", "security", "contributing", "changelog"),
}
SETTINGS = {
    "project": "Millstream",
    "author": "Millstream contributors",
    "html_title": "Millstream",
    "html_theme": "furo",
    "html_theme_options": {"navigation_with_keys": True},
    "html_copy_source": False,
    "html_show_sphinx": False,
    "html_show_copyright": False,
    "html_css_files": ["code.css"],
    "html_js_files": ["code.js"],
    "extensions": ["myst_parser"],
    # Every heading of a page can be linked to, as on the pages in the repository.
    "myst_heading_anchors": 4,
    # Code in a language that has no colours, such as CSV, stands as it is.
    "suppress_warnings": ["misc.highlighting_failure"],
}
# Code is folded where it is too wide, so that all of it is seen, on paper too, and copied as it was written.
STYLE = """div.highlight { position: relative }
div.highlight pre { white-space: pre-wrap; overflow-wrap: anywhere; padding-right: 4.5rem }
div.highlight button { position: absolute; top: .4rem; right: .4rem; font: inherit; font-size: .75rem; cursor: pointer;
  color: inherit; background: var(--color-background-secondary); border: 1px solid currentColor; border-radius: .25rem }
@media print { div.highlight button { display: none } }
"""
SCRIPT = """for (const block of document.querySelectorAll("div.highlight")) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    const text = block.querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page that was opened as a file may not write to the clipboard in every browser.
      const area = Object.assign(document.createElement("textarea"), { value: text });
      block.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
}
"""
_LINK = re.compile(r"(\]\(|(?:src|srcset|href)=\")([^)\"#:]+)(?=[#)\"])")


def build(root: Path, site: Path) -> int:
    """Writes the site of a repository anew, and returns how many faults its pages have."""
    sources = site.with_name(f"{site.name}-sources")
    for folder in (sources, site):
        shutil.rmtree(folder, ignore_errors=True)
    _write_sources(root, sources)
    # Pictures that stand in HTML are copied as they are.
    settings = {
        **SETTINGS,
        "html_extra_path": [str(sources / "extra")],
        "html_static_path": [str(sources / "static")],
        "exclude_patterns": ["extra", "static", ".doctrees"],
    }
    application = Sphinx(
        srcdir=sources,
        confdir=None,
        outdir=site,
        doctreedir=sources / ".doctrees",
        buildername="html",
        confoverrides=settings,
        status=None,
        warning=sys.stderr,
        freshenv=True,
    )
    application.build(force_all=True)
    return application._warncount


def _write_sources(root: Path, folder: Path) -> None:
    """Writes the pages as the site has them, with links that lead within it."""
    shutil.copytree(root / "docs", folder)
    for source, page in PAGES.items():
        (folder / page).write_text((root / source).read_text("utf-8"), "utf-8")
    for name in FILES:
        shutil.copy(root / name, folder / name)
    shutil.copytree(folder / "pictures", folder / "extra" / "pictures")
    (folder / "static").mkdir()
    (folder / "static" / "code.css").write_text(STYLE, "utf-8")
    (folder / "static" / "code.js").write_text(SCRIPT, "utf-8")
    for page in folder.glob("*.md"):
        base = "" if page.name in PAGES.values() else "docs"
        page.write_text(_with_links_within(page.read_text("utf-8"), base), "utf-8")
    (folder / "command-line.md").write_text(command_line(), "utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as front:
        for heading, pages in CONTENTS.items():
            front.write("\n".join(("\n```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```", "")))


def _with_links_within(text: str, base: str) -> str:
    """Returns a page of the folder `base` of the repository with its links as the site has them."""

    def within(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(base, found.group(2)))
        return found.group(1) + (PAGES.get(target) or target.removeprefix("docs/"))

    return _LINK.sub(within, text)


def command_line() -> str:
    """Returns the reference of the command line: every verb with its options and examples."""
    from millstream.configuration.errors import EXIT_CODES
    from millstream.interfaces.cli.command import GROUPS, parser_of

    lines = ["# Command line", ""]
    lines += ["Every verb with its options, as `millstream VERB --help` shows them.", "", _sentence(EXIT_CODES), ""]
    for group, verbs in GROUPS.items():
        lines += [f"## {group}", ""]
        for verb in verbs:
            lines += _entry(f"millstream {verb}", parser_of(verb, []), 3)
    return "\n".join(lines)


def _entry(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Yields a verb's lines, and those of the verbs under it (`data millstone`)."""
    yield from (f"{'#' * level} `{name}`", "", _sentence(parser.description or ""), "")
    if examples := getattr(parser, "examples", ()):
        yield from ("```sh", *(f"millstream {example}" for example in examples), "```", "")
    for group in parser._action_groups:
        actions = [
            action for action in group._group_actions if action.help != argparse.SUPPRESS and action.dest != "help"
        ]
        below = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
        if plain := [action for action in actions if action not in below]:
            yield from (f"| {_cell(_sentence(group.title or '').rstrip('.'))} | |", "|:--|:--|")
            yield from (f"| `{_cell(_written(action))}` | {_cell(_help(action, parser))} |" for action in plain)
            yield ""
        for action in below:
            for word, nested in action.choices.items():
                yield from _entry(f"{name} {word}", nested, level + 1)


def _written(action: argparse.Action) -> str:
    """Returns how an option is written: its names and what follows them."""
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    value = " ".join(value) if isinstance(value, tuple) else value
    value = f"{value} …" if action.nargs in ("+", "*") else value
    return f"{', '.join(action.option_strings)} {value}".strip()


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Builds the site, of another repository into another folder if both are given. Returns 1 if a page has a fault."""
    root, site = (Path(word) for word in sys.argv[1:3] or (ROOT, ROOT / "build" / "site"))
    faults = build(root, site)
    print(f"{faults} faults" if faults else f"the site is {site / 'index.html'}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
