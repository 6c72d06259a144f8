# Each recipe is one plain cargo line; the docs show the same lines.

# Watch the whole story with no model server.
demo:
    cargo demo

# Run every test.
verify:
    cargo verify

# Lints, as strict as CI.
lint:
    cargo lint

# Formatting, as CI checks it.
fmt:
    cargo fmt --all --check

# Licences, advisories and sources of dependencies.
deny:
    cargo deny check

# The library's examples.
examples:
    cargo examples

# What a step of the loop costs beside a bare HTTP round trip.
bench:
    cargo bench-loop

# What a Python session costs, and its speed beside CPython and (GIMLET_BENCH_SMOLAGENTS=PYTHON) smolagents.
bench-python:
    cargo bench-python

# Gimlet beside smolagents, goose and codex; `bench/peers` installs them first.
bench-peers:
    bench/run

# Random Python programs in a jailed worker, for two minutes.
soak:
    cargo build -p gimlet-python --ignore-rust-version --locked
    cargo soak python_worker 120 1

# The API documentation.
docs:
    cargo docs
