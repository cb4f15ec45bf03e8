"""The server that several machines share, as one engine uses it: the connection to it, the answers and quotas on it.

Reads user and password from the environment. Imported only where a shared cache is named.
"""

from __future__ import annotations

from random import Random

from ..engine.server_address import PASSWORD_VARIABLE, USER_VARIABLE, ServerAddress
from ..engine.shared.answers import SharedAnswers
from ..engine.shared.connection import SharedConnection
from ..engine.shared.quota import SharedQuota
from ..engine.shared.server_ledgers import ServerLedgers
from ..engine.store.cache import Cache
from .settings import Settings


class SharedCache:
    """An open connection, and what is shared over it: quotas, and answers; None: this engine shares no answers."""

    def __init__(self, connection: SharedConnection, answers: SharedAnswers | None) -> None:
        self.connection = connection
        self.answers = answers
        self.quota = SharedQuota(ServerLedgers(connection), Random())

    @classmethod
    async def open(cls, settings: Settings, address: ServerAddress, cache: Cache) -> SharedCache:
        """Connects. Raises LocalFault if the server can't be used."""
        variables = settings.variables
        connection = SharedConnection(
            address,
            user=variables.get(USER_VARIABLE, ""),
            password=variables.get(PASSWORD_VARIABLE, ""),
            patience_s=settings.policy.patience_s,
        )
        await connection.open()
        # Nothing of a live run is for others, and a snapshot stands in place of every cache.
        shares_none = settings.mode == "live" or (settings.mode == "strict" and settings.snapshot is not None)
        return cls(
            connection, None if shares_none else SharedAnswers(connection, cache, sends=settings.mode != "strict")
        )

    async def close(self) -> None:
        if self.answers is not None:
            await self.answers.close()
        await self.connection.close()
