# Gimlet itself in a container, around a static binary (docs/install.md says how to make one). The folder that is sent to
# the engine holds that binary, `gimlet-jail` if it was built too, and nothing else:
#
#   docker build --file docker/gimlet.Dockerfile --tag gimlet FOLDER
#
# BASE may be any image with a shell; git, Python and certificates are added where it has no git or no Python.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN if ! { command -v git && command -v python3; } >/dev/null; then \
        apt-get update \
        && apt-get install --yes --no-install-recommends ca-certificates git python3 \
        && rm -rf /var/lib/apt/lists/*; \
    fi \
    && mkdir -p -m 1777 /home/gimlet /project
COPY gimlet* /usr/local/bin/
ENV HOME=/home/gimlet GIMLET_HOME=/home/gimlet/.gimlet
WORKDIR /project
ENTRYPOINT ["gimlet"]
