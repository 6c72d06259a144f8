# The image of Gimlet's Docker sandbox: Python and git, nothing that needs more. Packages for the code executor go here.
# BASE may be any image with Python and a shell; git is added where it has none.
ARG BASE=python:3.13-slim
FROM ${BASE}
RUN if ! command -v git >/dev/null; then \
        apt-get update \
        && apt-get install --yes --no-install-recommends git \
        && rm -rf /var/lib/apt/lists/*; \
    fi \
    && mkdir -p -m 1777 /workspace
USER 65534:65534
WORKDIR /workspace
