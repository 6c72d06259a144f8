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

# The API documentation.
docs:
    cargo docs
