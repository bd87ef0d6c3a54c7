# dpaudit alone, without compilers and without a checkout:
#
#   docker build --tag dpaudit .
#   docker run --rm --network none --user "$(id -u)" --volume "$PWD:/work" dpaudit \
#       audit stats.py:noisy_mean --epsilon 1 --relation add-remove --domain "age:0..100"
#
# The code under audit is in the folder that is mounted, and what is written goes there.
FROM python:3.11.13-slim-bookworm AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11.13-slim-bookworm
COPY constraints.txt /tmp/
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile --constraint /tmp/constraints.txt \
        /wheels/*.whl \
    && rm /tmp/constraints.txt \
    && useradd --create-home --uid 1000 dpaudit
USER dpaudit
# Workers fill the cores by themselves. Another user has no home here.
ENV OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /work
ENTRYPOINT ["dpaudit"]
CMD ["--help"]
