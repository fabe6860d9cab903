# One isolated environment per framework, made by the same script and locks as on the host.
#   docker build --build-arg FRAMEWORKS="pytorch jax" --build-arg ACCELERATOR=cpu --tag repro:0.1.0 .
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS base
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/*

# What only installing needs stays behind in this stage.
FROM base AS environments
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3-venv
WORKDIR /opt/repro
COPY requirements requirements
ARG FRAMEWORKS="pytorch tensorflow jax"
ARG ACCELERATOR=cuda
# Bytecode is compiled now: at run time the root is read-only.
RUN UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1 requirements/install.sh --accelerator=$ACCELERATOR $FRAMEWORKS \
 && rm -rf .venv/uv

FROM base
COPY --from=environments /opt/repro/.venv /opt/repro/.venv
COPY . /opt/repro/
ARG COMMIT=unknown
RUN echo "$COMMIT" >/opt/repro/COMMIT && python3 -m compileall -q /opt/repro/repro /opt/repro/benchmarks /opt/repro/mnist_*.py
LABEL org.opencontainers.image.title="repro" \
      org.opencontainers.image.description="One small network in PyTorch, TensorFlow and JAX that trains to the same bits again" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.licenses="Apache-2.0"
# No name is needed: any other --user works as well.
USER 1000:1000
ENTRYPOINT ["/opt/repro/run.sh"]
