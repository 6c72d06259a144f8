"""Checks a patch: reads the files it is for and the patch itself, and asks git. Its exit code is git's, or 3 if git was not asked."""

import json
import os
import subprocess
import sys
import tempfile

try:
    draft = json.load(sys.stdin.buffer)
    with tempfile.TemporaryDirectory(dir="/workspace") as folder:
        for file in draft["files"]:
            path = os.path.join(folder, file["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as copy:
                copy.write(file["text"].encode())
            os.chmod(path, file["mode"] & 0o777)
        words = ["git", "apply", "--check", "--whitespace=nowarn", "-"]
        code = subprocess.run(words, cwd=folder, input=draft["diff"].encode()).returncode
except Exception as error:
    print(error, file=sys.stderr)
    code = 3
sys.exit(code)
