"""The SDK's connections: only to the service, only at permitted addresses, and without redirects.

By default the SDK connects through a library (pyqwest) that resolves names and follows redirects itself, and sends the
key along. Each of its HTTP clients accepts an httpx client instead, but callers of the SDK cannot pass one: their class
is replaced where the SDK creates them. Source: the package `tinker` 0.38, `lib/internal_client_holder.py` and
`_client.py`.
"""

import asyncio
from importlib import import_module
from typing import Any

import httpx

from training.addresses import ForbiddenAddress, checked_addresses, proxy_of

_PORTS = {"http": 80, "https": 443}


class ConnectionGuard:
    """Guards all connections to one service. `refused` says why the first refused connection was not made."""

    def __init__(self, service: str) -> None:
        self.refused: str | None = None
        self._service = httpx.URL(service)
        self._proxy = proxy_of(service)
        self._client: Any = import_module("tinker._client").AsyncTinker

    def install(self) -> None:
        """Make the SDK create its HTTP clients here from now on."""
        holder: Any = import_module("tinker.lib.internal_client_holder")
        holder.AsyncTinker = self._new_client

    def _new_client(self, **given: Any) -> Any:
        transport = _GuardedTransport(self, self._service, self._proxy)
        return self._client(**given, http_client=httpx.AsyncClient(transport=transport))


class _GuardedTransport(httpx.AsyncHTTPTransport):
    """Sends requests to the origin of `service`, at its first address that accepts; each address is checked."""

    def __init__(self, guard: ConnectionGuard, service: httpx.URL, proxy: str | None) -> None:
        super().__init__(proxy=proxy, http2=True)
        self._guard = guard
        self._service = service
        self._proxied = proxy is not None  # the operator's own, which looks up names by itself

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises what httpx raises. A refusal is returned as a response, as the SDK retries for minutes after an
        error.
        """
        try:
            response = await self._send_to_checked_address(request)
            if response.is_redirect:
                await response.aclose()
                raise ForbiddenAddress(
                    f"expected an answer, got a redirect (HTTP {response.status_code}), and none is followed; add the"
                    " base with the address where it is"
                )
        except ForbiddenAddress as error:
            self._guard.refused = self._guard.refused or str(error)
            return httpx.Response(403, json={"detail": str(error)})
        return response

    async def _send_to_checked_address(self, request: httpx.Request) -> httpx.Response:
        if _origin_of_url(request.url) != _origin_of_url(self._service):
            raise ForbiddenAddress(f"expected a call of {self._service.host}, got one of {request.url.host}")
        if self._proxied:
            return await super().handle_async_request(request)
        _, host, port = _origin_of_url(request.url)
        failed: httpx.TransportError = httpx.ConnectError(f"expected an address of {host}, got none")
        try:
            addresses = await asyncio.to_thread(checked_addresses, host, port)
        except ForbiddenAddress:
            raise
        except OSError as error:
            raise httpx.ConnectError(str(error)) from None
        for address in addresses:
            try:
                return await super().handle_async_request(
                    httpx.Request(
                        request.method,
                        request.url.copy_with(host=address),
                        headers=request.headers,
                        stream=request.stream,
                        extensions={**request.extensions, "sni_hostname": host},  # certificates are those of the host
                    )
                )
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error
        raise failed


def _origin_of_url(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme, 0)
