# The image of Gimlet's Docker sandbox: Python and git, nothing that needs more. Packages for the code executor go here.
FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir --mode=1777 /workspace
USER 65534:65534
WORKDIR /workspace
