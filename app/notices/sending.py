"""Send a batch of notices by SMTP, or post it to a webhook. Nothing here knows the database."""

import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from urllib.parse import urlsplit

from app.core.config import Settings

_SECONDS = 15.0  # for each response of a server
_MOST_BYTES = 1000  # read from a response


class NotSent(Exception):
    """A server did not accept the message; the text says why, without secrets."""


def send_mail(mail: EmailMessage, settings: Settings) -> None:
    """Hand a mail to SMTP_HOST. Raises NotSent."""
    host, port, context = settings.SMTP_HOST, settings.SMTP_PORT, ssl.create_default_context()
    try:
        with (
            smtplib.SMTP_SSL(host, port, timeout=_SECONDS, context=context)
            if settings.SMTP_SECURITY == "ssl"
            else smtplib.SMTP(host, port, timeout=_SECONDS)
        ) as server:
            if settings.SMTP_SECURITY == "starttls":
                server.starttls(context=context)
            if settings.SMTP_USER:
                server.login(settings.SMTP_USER, settings.SMTP_PASSWORD)
            if refused := server.send_message(mail):
                raise NotSent(f"SMTP_HOST {host}:{port} refused {len(refused)} of the addresses")
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"SMTP_HOST {host}:{port} answered {error.smtp_code}") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:  # also a password that is not ASCII
        raise NotSent(f"SMTP_HOST {host}:{port}: {_system_error_text(error)}") from None


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> None:
    """Post JSON to a webhook; redirects are not followed. Raises NotSent.

    Without `private`, only to https addresses outside of private networks: the connected address is checked before
    anything is sent, so a name that resolves differently the second time has no effect.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" and not private:
        raise NotSent("NOTICE_WEBHOOK_URL is not https, which NOTICE_PRIVATE_ADDRESSES would have to allow")
    connection = (HTTPSConnection if parts.scheme == "https" else HTTPConnection)(host, parts.port)
    try:
        connection.sock = _connected(host, parts.port or connection.default_port, private)
        if parts.scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=host)
        path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        answer.read(_MOST_BYTES)
        if not 200 <= answer.status < 300:
            raise NotSent(f"{host} answered {answer.status}")
    except (OSError, HTTPException, ValueError) as error:  # also what cannot be in an address
        raise NotSent(f"{host}: {_system_error_text(error)}") from None
    finally:
        connection.close()


def _connected(host: str, port: int, private: bool) -> socket.socket:
    """A connection over which nothing was sent yet. Raises OSError, and NotSent for a private network if that is not
    allowed.
    """
    found = socket.create_connection((host, port), _SECONDS)
    if not private and not ip_address(found.getpeername()[0].partition("%")[0]).is_global:
        found.close()
        raise NotSent(f"{host} is in a private network, which NOTICE_PRIVATE_ADDRESSES would have to allow")
    return found


def _system_error_text(error: Exception) -> str:
    """The error in the words of the system."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())
