# Gimlet itself in a container: `docker build --file docker/gimlet.Dockerfile --tag gimlet .`
#
#   docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/project" -v gimlet-home:/home/gimlet \
#     -e MODEL_API_BASE=http://host.docker.internal:11434 gimlet "why does the login test fail?"
#
# A container allows no namespaces of its own by default: commands are then jailed by Landlock and seccomp
# (`docker run … gimlet sandbox` says so). For Docker as an executor mount the engine's socket, if you trust it that far.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --ignore-rust-version --package gimlet-cli --bins

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git python3 \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir --mode=1777 /home/gimlet
COPY --from=build /source/target/release/gimlet /source/target/release/gimlet-jail /usr/local/bin/
ENV HOME=/home/gimlet GIMLET_HOME=/home/gimlet/.gimlet
WORKDIR /project
ENTRYPOINT ["gimlet"]
