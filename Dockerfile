# Parlor in a container; docker-compose.yml says which command each process runs, and which of them need torch.
# docs/operations.md says how to name the base image by its digest.
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# The environment first: it changes more seldom than the code. Every file is named by its hash, so that what an index
# hands out is what was tested; `make hashes` writes the lists.
WORKDIR /parlor
ARG REQUIREMENTS=web
COPY requirements/ requirements/
RUN pip install --require-hashes --no-deps -r requirements/${REQUIREMENTS}.txt

COPY . .
RUN pip install --no-index --no-deps --no-build-isolation -e . && python -m compileall -q app training workers

# Nothing runs as root, and nothing but the home is written to. The folders of passwords are volumes' mount points.
RUN useradd --uid 1000 --home-dir /srv/parlor parlor \
 && mkdir -p /srv/parlor /passwords/database /passwords/broker /passwords/parlor \
 && chown -R parlor:parlor /srv/parlor /passwords
USER parlor
ENV PARLOR_HOME=/srv/parlor HOST=0.0.0.0
EXPOSE 8000
CMD ["gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"]
