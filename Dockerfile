# Millstream in a container: docker build -t millstream . ; then
#   docker run --rm -v "$PWD:/work" -e OPENAI_API_KEY millstream run sweep.toml
# The wheels are built from the pinned requirements, by their hashes, and installed without a network.
FROM python:3.13-slim AS wheels
WORKDIR /source
COPY requirements.txt .
RUN pip wheel --no-cache-dir --quiet --require-hashes --wheel-dir /wheels --requirement requirements.txt
COPY . .
RUN pip wheel --no-cache-dir --quiet --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 millstream && install -d -o millstream /cache
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --quiet --no-index --find-links /wheels millstream
USER millstream
# The cache and what was learned of quotas outlive a container if this is a volume.
ENV XDG_CACHE_HOME=/cache
WORKDIR /work
ENTRYPOINT ["millstream"]
CMD ["help"]
