# An image that trains the quickstart:
#   docker build -t tartan . && docker run --rm tartan
# Your own data and runs are mounted:
#   docker run --rm -v "$PWD/data:/home/user/tartan/data" -v "$PWD/runs:/home/user/tartan/runs" tartan \
#       python -m src.run +experiment=custom task.train=data/labels.csv encoder=minilm
# PyTorch's default build brings CUDA's libraries (several GB); --build-arg PIP_EXTRA_INDEX_URL=ADDRESS
# adds an index of CPU builds.
FROM python:3.11-slim AS base

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home user \
    && mkdir -p /home/user/tartan/runs \
    && chown -R user /home/user/tartan

USER user
WORKDIR /home/user/tartan
ENV PIP_NO_CACHE_DIR=1

FROM base AS quickstart
ARG PIP_EXTRA_INDEX_URL

# the environment depends on these files alone, so that other changes do not install it anew
COPY --chown=user pyproject.toml constraints.txt README.md LICENSE Makefile ./
RUN mkdir -p src/tartan && touch src/tartan/__init__.py && make setup

COPY --chown=user . .
# copied files may be newer than the environment, which make would then set up again
RUN touch .venv/.ready
ENV PATH="/home/user/tartan/.venv/bin:$PATH"
CMD ["make", "quickstart"]
