"""Makes docs/demo.svg from a real run of the demo. Needs `pip install rich` and a built binary.

usage: python docs/picture.py [path of the gimlet binary]
"""

import os
import re
import subprocess
import sys

from rich.console import Console
from rich.text import Text

binary = sys.argv[1] if len(sys.argv) > 1 else "target/debug/gimlet"
run = subprocess.run(
    [binary, "demo"],
    env={**os.environ, "CLICOLOR_FORCE": "1", "COLUMNS": "100"},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    check=True,
)
console = Console(record=True, width=110, file=open(os.devnull, "w"), force_terminal=True)
console.print(Text.from_ansi("$ gimlet demo\n" + run.stdout.decode()), soft_wrap=False)
svg = console.export_svg(title="gimlet demo")
# The picture must not fetch anything: no web fonts.
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
svg = svg.replace("<svg ", "<svg xml:space=\"preserve\" ", 1)
svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
with open(os.path.join(os.path.dirname(__file__), "demo.svg"), "w") as file:
    file.write(svg)
