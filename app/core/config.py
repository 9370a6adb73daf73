"""Every setting of Parlor: its type, its default and its meaning. Read from the environment and from `.env`.

A bad value stops the start with one line: the setting, the expected value, the given one.
"""

import hashlib
import os
import secrets
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from app.core.errors import Invalid, Verbatim, shown

ROOT = Path(__file__).resolve().parent.parent.parent
TRANSLATIONS = ROOT / "translations"
SHIPPED_PRICES = Path("data", "prices.csv")
LAUNCHERS = ROOT / "training" / "configs" / "accelerate"
ENGLISH = "en"  # the language that the code is written in
QUEUES = ("turns", "batch", "train")
NO_QUEUES = "none"
NO_BROKER = "none"  # as REDIS_URL: workers and pages poll the database instead
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
_LONGEST_SOCKET_PATH = 100  # a unix socket's path holds 107 bytes on Linux and fewer elsewhere


class Settings(BaseSettings):
    """The settings, by the names of their environment variables."""

    model_config = SettingsConfigDict(env_file=ROOT / ".env", extra="ignore", case_sensitive=True, frozen=True)

    PARLOR_HOME: Path = Field(Path("var"), description="Folder of database, broker, secret key and logs.")
    DATABASE_URL: str = Field("", description="SQLAlchemy URL; empty: SQLite in PARLOR_HOME.")
    REDIS_URL: str = Field("", description="Redis URL; empty: a server of its own in PARLOR_HOME; none: no server.")
    SETTINGS_FOLDER: str = Field("", description="Folder of files that each hold the setting they are named after.")
    HOST: str = Field("127.0.0.1", description="Address that the web process listens on.")
    PORT: int = Field(8000, ge=1, le=65535, description="Port that the web process listens on.")
    PUBLIC_URL: str = Field("", description="Where people reach Parlor, if not http://HOST:PORT.")
    WEB_URL: str = Field("", description="Where workers reach the web process, if not at http://127.0.0.1:PORT.")
    SECRET_KEY: str = Field("", description="Signs cookies and tickets; empty: made once and kept in PARLOR_HOME.")
    TRUSTED_PROXIES: int = Field(0, ge=0, le=5, description="Reverse proxies in front whose headers are believed.")
    ADMIN_HOURS: float = Field(12, gt=0, description="How long an experimenter stays signed in, in hours.")
    API_HOSTS: str = Field("", description="Hosts that API models may be at, with commas between; empty: any.")
    KEY_VARIABLES: str = Field(
        "*_API_KEY,OPENAI_*", description="Variables that may hold a model's key, * for anything, commas between."
    )
    LOG_MEGABYTES: float = Field(10, gt=0, description="Size at which the log of a process starts again, in MB.")
    LANGUAGES: str = Field("", description="Languages of the pages, the preferred one first; empty: all there are.")

    GUEST_PLAY: bool = Field(True, description="Whether anyone may start a match from the home page.")
    GUEST_CONFIG: bool = Field(
        False, description="Whether guests may fix what a match draws: the secret word, the items and their values."
    )
    ARRIVALS_PER_MINUTE: int = Field(
        40, ge=0, description="People who come into studies a minute and address; 0: no limit."
    )
    CONSENTS_PER_MINUTE: int = Field(
        15, ge=0, description="People who agree to take part in studies a minute and address; 0: no limit."
    )
    PROLIFIC_KEYS_URL: str = Field(
        "https://api.prolific.com/.well-known/study/jwks.json",
        description="Where the public keys are by which Prolific signs the links of its people.",
    )
    GUEST_MATCHES_PER_MINUTE: int = Field(30, ge=0, description="Guest matches a minute and address; 0: no limit.")
    API_REQUESTS_PER_MINUTE: int = Field(600, ge=0, description="Requests of the API a minute and token; 0: no limit.")
    CONTEXTS_FILE: str = Field("", description="Contexts of live negotiations, selfplay.txt format; empty: generated.")
    TICKET_HOURS: float = Field(24, gt=0, description="How long a ticket to a seat is good for, in hours.")
    MOVE_CHARACTERS: int = Field(2000, ge=1, le=100_000, description="Longest text of one move, in characters.")
    MOVES_PER_SECOND: float = Field(20, ge=0, description="Moves a second from one seat, in the long run; 0: no limit.")
    CONNECTIONS_PER_ADDRESS: int = Field(200, ge=0, description="Open pages of one address at once; 0: no limit.")
    READING_WORDS_PER_MINUTE: int = Field(
        240, ge=0, description="Pace at which a model's answer appears, as if read and written; 0: at once."
    )
    LONGEST_DELAY: float = Field(12, ge=0, le=120, description="Longest such delay, in seconds.")
    TURN_CLOCK: float = Field(0, ge=0, le=86400, description="Seconds that a person has for a turn; 0: no clock.")
    MATCH_CLOCK: float = Field(0, ge=0, le=604800, description="Seconds after which a match is over; 0: no clock.")
    HEARTBEAT: int = Field(5, ge=1, le=60, description="Seconds between two heartbeats that a page must answer.")
    OPEN_MATCHES: int = Field(10, ge=0, le=20, description="Unfinished guest matches of one browser; 0: no limit.")

    INFERENCE_CACHE_MB: int = Field(
        512,
        ge=1,
        description="Megabytes for keys and values of local models on the CPU, in the process that holds them.",
    )
    MODELS_PROCESS: bool = Field(
        False,
        description="Whether workers ask the process `workers.models` for answers of local models, and hold none;"
        " the supervisor sets it for its own.",
    )
    MODEL_MEMORY_MB: int = Field(
        0, ge=0, description="Megabytes of weights of local models that stay loaded in a process; 0: half the memory."
    )
    WORKER_GPU: str = Field(
        "", pattern=r"^\d*$", description="Number of the GPU that a worker's models use; empty: the first there is."
    )
    SMALL_MODELS: bool = Field(True, description="Whether the small models that Parlor comes with are registered.")

    TURN_LEASE: float = Field(6, gt=0.5, description="Seconds after which a dead worker's turn is given to another.")
    TURN_SECONDS: float = Field(60, gt=0, description="Longest that a model may take for a turn, retries included.")
    ROUND_LEASE: float = Field(15, gt=1, description="Seconds after which a dead worker's part of a round is given on.")
    ROUND_PATIENCE: float = Field(
        600, ge=0, description="Seconds that a round waits for a model that gives no answer, before it stops."
    )
    ROUND_THREADS: int = Field(4, ge=1, le=64, description="Rounds that a worker process plays at once.")
    CONFIRM_MATCHES: int = Field(
        2000, ge=0, description="Matches above which the page asks before it starts rounds; 0: it does not ask."
    )
    CONFIRM_COST: float = Field(
        10, ge=0, description="US dollars above which the page asks before it starts rounds; 0: it does not ask."
    )
    JOB_BUDGET_USD: float = Field(
        0,
        ge=0,
        description="Budget of jobs that are given none, for calls of models or a training, in USD; 0: none.",
    )
    SPENDING_LIMIT_USD: float = Field(
        0, ge=0, description="Budget of the whole installation for models and their trainings, USD a period; 0: none."
    )
    SPENDING_PERIOD: Literal["day", "month"] = Field(
        "month", description="Period of SPENDING_LIMIT_USD, in UTC: day or month."
    )
    PRICES_FILE: str = Field(
        "", description="Table of prices of models, a CSV file as docs/models.md has it; empty: data/prices.csv."
    )
    HF_TOKEN: str = Field("", repr=False, description="Token of the hub that models and datasets are pushed to.")
    HF_ENDPOINT: str = Field("https://huggingface.co", description="Hub for pushed and pulled models and datasets.")
    DATASET_UPLOAD_MB: float = Field(
        100, gt=0, le=2000, description="Largest file of rows that the page of datasets imports, in MB."
    )
    TRAINING_LAUNCHER: str = Field(
        "",
        description="How trainings are started: ddp, fsdp, another name or a file of accelerate; empty: one process.",
    )
    TRAINING_DEVICES: str = Field(
        "", description="Numbers of the GPUs that trainings use, with commas between; empty: all that there are."
    )
    PARLOR_TRAINING: str = Field(
        "auto", description="Whether and how `make run` installs torch and what else trains: auto, cpu, gpu or off."
    )
    TORCH_INDEX_URL: str = Field("", description="Index that torch comes from; empty: as PARLOR_TRAINING says.")
    TRAIN_LEASE: float = Field(15, gt=1, description="Seconds after which a dead worker's training is given on.")
    TRAIN_POLL: float = Field(20, gt=0, description="Seconds between two looks at a training that goes on at a vendor.")
    WORKER_QUEUES: str = Field(
        "", description="Queues whose workers the supervisor starts, with commas between, or none; empty: all."
    )
    UPKEEP_EVERY: float = Field(2, gt=0, description="Seconds between two passes of upkeep.")
    OPEN_MATCH_HOURS: float = Field(
        48, ge=0, description="Hours after its last move at which an open match of a person ends; 0: never."
    )
    UNDO_HOURS: float = Field(24, ge=0, description="Hours for which a clean-up of the disk can be undone.")
    PROCESS_TIMEOUT: float = Field(
        60, ge=0, description="Seconds without a heartbeat after which the supervisor replaces a process; 0: never."
    )
    WORK_NICENESS: int = Field(
        10,
        ge=0,
        le=19,
        description="How far rounds and trainings give way to live play, as `nice` counts.",
    )
    LOW_DISK_MB: int = Field(
        50, ge=0, description="Megabytes free in PARLOR_HOME below which /healthz says that the disk is full."
    )
    SMTP_HOST: str = Field("", description="Server that sends notices by mail; empty: none are sent by mail.")
    SMTP_PORT: int = Field(587, ge=1, le=65535, description="Port of SMTP_HOST.")
    SMTP_SECURITY: Literal["starttls", "ssl", "none"] = Field(
        "starttls", description="How the connection to SMTP_HOST is encrypted: starttls, ssl or none."
    )
    SMTP_USER: str = Field("", description="Name at SMTP_HOST; empty: it is not asked to sign in.")
    SMTP_PASSWORD: str = Field("", description="Password of SMTP_USER.")
    SMTP_FROM: str = Field("", description="Sender of notices; empty: parlor@ and the host of PUBLIC_URL.")
    NOTICE_MAIL_TO: str = Field(
        "", description="Addresses that all notices go to by mail, with commas between; empty: none."
    )
    NOTICE_WEBHOOK_URL: str = Field("", description="https address that all notices are posted to; empty: none.")
    NOTICE_WEBHOOK_FORM: Literal["json", "slack"] = Field(
        "json", description="What is posted: json has all fields, slack the one that chat programs take, text."
    )
    NOTICE_WEBHOOK_SECRET: str = Field("", description="Signs what is posted to NOTICE_WEBHOOK_URL; empty: unsigned.")
    NOTICE_PRIVATE_ADDRESSES: bool = Field(
        False, description="Whether NOTICE_WEBHOOK_URL may be http, on this machine or in a private network."
    )
    NOTICE_GROUP_SECONDS: float = Field(
        60, ge=0, le=3600, description="Seconds that a notice waits for others, which are sent together with it."
    )
    NOTICE_TRIES: int = Field(8, ge=1, le=20, description="Times that a notice is tried before it counts as failed.")
    TURN_THREADS: int = Field(32, ge=1, le=500, description="Model turns in flight at once in a worker process.")

    @field_validator("DATABASE_URL")
    @classmethod
    def _psycopg_3(cls, url: str) -> str:
        # A bare postgresql:// means psycopg 2 to SQLAlchemy, which would block the event loop.
        scheme, mark, rest = url.partition("://")
        url = f"postgresql+psycopg{mark}{rest}" if scheme in ("postgres", "postgresql") else url
        try:
            known = not url or make_url(url).drivername in ("sqlite", "postgresql+psycopg")
        except (ArgumentError, ValueError):
            known = False
        if not known:
            raise ValueError(
                "expected a URL like postgresql://user:password@host:5432/name or sqlite:////folder/file.db"
            )
        return url

    @field_validator("*", mode="before")
    @classmethod
    def _text_in_utf_8(cls, value: Any) -> Any:
        # Invalid UTF-8 from the environment becomes lone surrogates, which no file or page can hold.
        if isinstance(value, str | PurePath) and not is_whole(str(value)):
            raise ValueError("expected text in UTF-8")
        return value

    @field_validator("REDIS_URL")
    @classmethod
    def _redis_scheme(cls, url: str) -> str:
        if url not in ("", NO_BROKER) and urlsplit(url).scheme not in ("redis", "rediss", "unix"):
            raise ValueError("expected a URL that begins with redis://, rediss:// or unix://, or none")
        return url

    @field_validator("NOTICE_WEBHOOK_URL")
    @classmethod
    def _address_of_webhook(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (not parts.hostname or parts.scheme not in ("https", "http") or parts.username):
            raise ValueError("expected a URL that begins with https:// and holds no name or password")
        return url

    @field_validator("PROLIFIC_KEYS_URL")
    @classmethod
    def _nobody_changes_on_the_way(cls, url: str) -> str:
        parts = urlsplit(url)
        schemes = ("https", "http") if parts.hostname in _THIS_MACHINE else ("https",)
        if not parts.hostname or parts.scheme not in schemes:
            raise ValueError("expected a URL that begins with https://, or with http:// on this machine")
        return url

    @field_validator("LANGUAGES")
    @classmethod
    def _known_languages(cls, languages: str) -> str:
        if set(_comma_separated(languages)) - set(known_languages()):
            raise ValueError(f"expected some of {', '.join(known_languages())}, with commas between")
        return languages

    @field_validator("WORKER_QUEUES")
    @classmethod
    def _known_queues(cls, queues: str) -> str:
        if queues.strip() != NO_QUEUES and set(_comma_separated(queues)) - set(QUEUES):
            raise ValueError(f"expected some of {', '.join(QUEUES)}, with commas between, or {NO_QUEUES}")
        return queues

    @field_validator("PARLOR_TRAINING")
    @classmethod
    def _known_training(cls, training: str) -> str:
        if training not in (known := ("auto", "cpu", "gpu", "off")):
            raise ValueError(f"expected one of {', '.join(known)}")
        return training

    @field_validator("TRAINING_LAUNCHER")
    @classmethod
    def _known_launcher(cls, launcher: str) -> str:
        known = sorted(path.stem for path in LAUNCHERS.glob("*.yaml"))
        if launcher and launcher not in known and not (ROOT / launcher).is_file():
            raise ValueError(f"expected {', '.join(known)}, or a file of `accelerate config`")
        return launcher

    @field_validator("TRAINING_DEVICES")
    @classmethod
    def _numbers_of_devices(cls, devices: str) -> str:
        numbers = _comma_separated(devices)
        if not all(number.isdecimal() for number in numbers):
            raise ValueError("expected numbers with commas between, such as 0,1")
        return ",".join(numbers)

    @cached_property
    def home(self) -> Path:
        """PARLOR_HOME as an absolute path; a relative one is under the project's folder."""
        return (ROOT / self.PARLOR_HOME.expanduser()).resolve()

    @property
    def prices_file(self) -> Path:
        """The price table; a relative path is under the project's folder."""
        return ROOT / (Path(self.PRICES_FILE).expanduser() if self.PRICES_FILE else SHIPPED_PRICES)

    @property
    def database_url(self) -> str:
        return self.DATABASE_URL or sqlite_url(self.home / "parlor.db")

    @property
    def database_setting(self) -> str:
        """The setting that says where the database is."""
        return "DATABASE_URL" if self.DATABASE_URL else "PARLOR_HOME"

    @property
    def redis_socket(self) -> Path:
        """The socket of the embedded Redis server."""
        return self._socket("redis.sock")

    @property
    def models_socket(self) -> Path:
        """The socket of the process that holds local models."""
        return self._socket("models.sock")

    def _socket(self, name: str) -> Path:
        """The path of a unix socket: in PARLOR_HOME, or elsewhere if that path would be too long for a socket."""
        path = self.home / "run" / name
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
            return path
        of_home = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path("/tmp") / f"parlor-{os.getuid()}-{of_home}" / name  # noqa: S108 - private, by workers/sockets.py

    @property
    def has_broker(self) -> bool:
        """Whether there is a Redis server, or the supervisor of this PARLOR_HOME has found one to start."""
        return self.REDIS_URL != NO_BROKER and (bool(self.REDIS_URL) or not self.no_broker_mark.exists())

    @property
    def no_broker_mark(self) -> Path:
        """The file that a supervisor creates if it has found no Redis server to start."""
        return self.home / "run" / "no-broker"

    @property
    def redis_url(self) -> str:
        """The URL for redis-py; empty without a broker."""
        if not self.has_broker:
            return ""
        return self.REDIS_URL or f"unix://{quote(str(self.redis_socket))}"

    @property
    def broker_url(self) -> str:
        """The URL of the same server for Celery, which has its own form for unix sockets."""
        url = self.redis_url
        return "redis+socket" + url.removeprefix("unix") if url.startswith("unix://") else url

    @property
    def limiter_url(self) -> str:
        """The URL of the same server for Flask-Limiter, in a third form; without a broker each process counts alone."""
        url = self.redis_url or "memory://"
        return "redis+" + url if url.startswith("unix://") else url

    @property
    def api_hosts(self) -> tuple[str, ...]:
        """The hosts in API_HOSTS, in lower case; if empty, any host is allowed."""
        return tuple(host.lower() for host in _comma_separated(self.API_HOSTS))

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The names in KEY_VARIABLES."""
        return _comma_separated(self.KEY_VARIABLES)

    @property
    def notice_mail_to(self) -> tuple[str, ...]:
        """The addresses in NOTICE_MAIL_TO."""
        return _comma_separated(self.NOTICE_MAIL_TO)

    @property
    def notice_sender(self) -> str:
        """The sender of notices."""
        return self.SMTP_FROM or f"parlor@{urlsplit(self.public_url).hostname or 'localhost'}"

    @property
    def worker_queues(self) -> tuple[str, ...]:
        """The queues whose workers the supervisor starts."""
        return () if self.WORKER_QUEUES.strip() == NO_QUEUES else _comma_separated(self.WORKER_QUEUES) or QUEUES

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages of the pages; the first is for people who have asked for none of them."""
        return _comma_separated(self.LANGUAGES) or known_languages()

    @property
    def public_url(self) -> str:
        host = "127.0.0.1" if self.HOST in ("0.0.0.0", "::", "") else self.HOST  # noqa: S104
        return self.PUBLIC_URL.rstrip("/") or f"http://{host}:{self.PORT}"

    @property
    def web_url(self) -> str:
        """The URL that bots of a rehearsal use."""
        return self.WEB_URL.rstrip("/") or f"http://127.0.0.1:{self.PORT}"

    @cached_property
    def secret_key(self) -> str:
        """SECRET_KEY, or the key generated for this PARLOR_HOME, which only its owner can read."""
        if self.SECRET_KEY:
            return self.SECRET_KEY
        path = self.home / "secret_key"
        try:
            return _kept_key(path)
        except OSError as error:
            raise Invalid(
                "PARLOR_HOME",
                expected="a folder whose file secret_key this user may read, or may make",
                got=Verbatim(f"{path} ({error.strerror})"),
                remedy="give the folder to this user, or choose another one",
            ) from None


def _kept_key(path: Path) -> str:
    """The key in a file, which is created if it is missing. Raises OSError."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))
        try:
            os.link(draft, path)  # atomic: the first process here wins
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="utf-8")


def sqlite_url(path: Path) -> str:
    """The URL of an SQLite file, whose path may contain any characters."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def known_languages() -> tuple[str, ...]:
    """English, and the languages with a translation."""
    return ENGLISH, *sorted(path.parts[-3] for path in TRANSLATIONS.glob("*/LC_MESSAGES/messages.po"))


def _comma_separated(text: str) -> tuple[str, ...]:
    """The comma-separated items, without duplicates."""
    return tuple(dict.fromkeys(each for part in text.split(",") if (each := part.strip())))


def is_whole(text: str) -> bool:
    """Whether a text has no unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings from the environment, with `overrides` on top. Raises Invalid in one line."""
    folder = str((overrides or {}).get("SETTINGS_FOLDER") or os.environ.get("SETTINGS_FOLDER") or "")
    if folder and not Path(folder).is_dir():
        raise Invalid("SETTINGS_FOLDER", expected="a folder", got=folder)
    try:
        settings = Settings(**{**(overrides or {}), "_secrets_dir": folder or None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "settings"
        message = first["msg"].removeprefix("Value error, ").replace("Input should be ", "").removeprefix("expected ")
        # A URL may hold a password, and so may a value meant as one.
        came = "another" if name.endswith(("_URL", "_KEY")) else shown(first["input"])
        raise Invalid(name, expected=message, got=Verbatim(came)) from None
    if not is_whole(str(settings.home)):  # due to the name of the user's or the project's folder
        raise Invalid("PARLOR_HOME", expected="a path in UTF-8", got=Verbatim(shown(str(settings.home))))
    return settings
