# Parlor in a container; docker-compose.yml says which command each process runs, and which of them need torch.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# The environment first: it changes more seldom than the code.
WORKDIR /parlor
COPY pyproject.toml constraints.txt LICENSE README.md ./
COPY app/__init__.py app/__init__.py
COPY training/__init__.py training/__init__.py
COPY workers/__init__.py workers/__init__.py
ARG EXTRAS=""
RUN pip install -c constraints.txt -e ".${EXTRAS}"

COPY . .

# Nothing runs as root, and nothing but the home is written to.
RUN useradd --uid 1000 parlor && mkdir /srv/parlor && chown parlor:parlor /srv/parlor
USER parlor
ENV PARLOR_HOME=/srv/parlor HOST=0.0.0.0
EXPOSE 8000
CMD ["gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"]
