"""Experimenters, the links with which they sign in once, and the sessions in which they are signed in."""

from datetime import datetime

from flask_login import UserMixin
from sqlalchemy import ForeignKey, String
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
    list_columns: Mapped[dict[str, list[str]] | None] = mapped_column(Json)  # that were chosen, by the name of a list


class LoginLink(Model):
    """A link that signs its user in once. Only the hash of its token is kept."""

    __tablename__ = "login_link"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class UserSession(Model):
    """A browser in which somebody is signed in; without its row the browser's cookie is worth nothing.

    Only the hash of the token in the cookie is kept.
    """

    __tablename__ = "user_session"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("user.id", ondelete="CASCADE"), index=True)
    began_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
