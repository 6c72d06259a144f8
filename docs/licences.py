#!/usr/bin/env python3
"""Writes docs/licences.md: every package that is part of the binary, its version and its licence.

`docs/licences.py` writes it, `docs/licences.py --check` fails when it is out of date.
"""

import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).with_name("licences.md")
ROOT = PAGE.parent.parent


def cargo(*args: str) -> str:
    return subprocess.run(["cargo", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def shipped() -> set[str]:
    """Ids of the packages that are linked into the binary on Linux: no build scripts' and no tests' own."""
    tree = cargo(
        "tree", "--package", "gimlet-agent", "--edges", "normal", "--prefix", "none", "--locked",
        "--target", "x86_64-unknown-linux-gnu", "--format", "{p}",
    )
    return {" ".join(line.split()[:2]) for line in tree.splitlines() if line}


def page() -> str:
    packages = json.loads(cargo("metadata", "--format-version", "1", "--locked"))["packages"]
    names = shipped()
    rows = sorted(
        (package["name"], package["version"], package["license"] or f"see {package['license_file']}")
        for package in packages
        if f"{package['name']} v{package['version']}" in names and package["source"]
    )
    lines = [
        "# Licences of what is in the binary",
        "",
        f"{len(rows)} packages beside Gimlet's own, as `docs/licences.py` lists them. `cargo deny check` holds them to `deny.toml`.",
        "",
        "| package | version | licence |",
        "|---|---|---|",
        *(f"| {name} | {version} | {licence} |" for name, version, licence in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text() == text:
            return 0
        print("docs/licences.md is out of date; run docs/licences.py", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
