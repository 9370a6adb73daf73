"""Experimenters, their one-time sign-in links, their sessions, their programs' tokens, and what was changed with these
tokens.
"""

from datetime import datetime
from typing import Any

from flask_login import UserMixin
from sqlalchemy import ForeignKey, Index, String
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime


class User(UserMixin, Model):
    """An experimenter, who may see the admin pages."""

    __tablename__ = "user"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(255))  # None: signs in with links only
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    time_zone: Mapped[str | None] = mapped_column(String(64))  # for times on pages: Europe/Berlin; None: UTC
    notice_mail: Mapped[str | None] = mapped_column(String(254))  # where notices go; None: nowhere
    notice_kinds: Mapped[list[str] | None] = mapped_column(Json)  # which ones: some of app/notices/causes.py
    notices_since: Mapped[datetime | None] = mapped_column(UtcDateTime)  # earlier events are not reported
    list_columns: Mapped[dict[str, list[str]] | None] = mapped_column(Json)  # the chosen ones, by the name of a list


class LoginLink(Model):
    """A link that signs its user in once. Only the hash of its token is kept."""

    __tablename__ = "login_link"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class UserSession(Model):
    """A browser in which a user is signed in; without its row the browser's cookie is not valid.

    Only the hash of the token in the cookie is stored.
    """

    __tablename__ = "user_session"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    began_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class ApiToken(Model):
    """A program's token for the API, on behalf of its experimenter. Only its hash is stored."""

    __tablename__ = "api_token"
    __table_args__ = (
        Index(
            "ix_api_token_name",
            "user_id",
            "name",
            unique=True,
            sqlite_where=sql("revoked_at IS NULL"),
            postgresql_where=sql("revoked_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(80))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]] = mapped_column(Json)  # read | run | people
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # accurate to the minute
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ApiRequest(Model):
    """An API request that changed something: by whom, what, and its answer, kept for a day for a repeated request with
    the same key.
    """

    __tablename__ = "api_request"
    __table_args__ = (
        Index(
            "ix_api_request_key",
            "token_id",
            "key",
            unique=True,
            sqlite_where=sql("key IS NOT NULL"),
            postgresql_where=sql("key IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    token_id: Mapped[int | None] = mapped_column(ForeignKey("api_token.id", ondelete="SET NULL"))
    user_name: Mapped[str] = mapped_column(String(80))
    token_name: Mapped[str] = mapped_column(String(80))
    at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    method: Mapped[str] = mapped_column(String(10))
    path: Mapped[str] = mapped_column(String(200))
    subject: Mapped[str] = mapped_column(String(200))  # what was changed, such as "round 3"
    key: Mapped[str | None] = mapped_column(String(200))  # a change with the same key is made only once
    digest: Mapped[str | None] = mapped_column(String(64))  # the hash of the request with that key
    status: Mapped[int | None]  # of the response
    answer: Mapped[Any | None] = mapped_column(Json)
