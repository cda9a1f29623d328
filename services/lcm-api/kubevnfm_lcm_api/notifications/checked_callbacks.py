"""The addresses that notifications go to, checked and tested before they are stored."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import KeyRing

from kubevnfm_lcm_api.notifications.domain.callback import Authentication, CallbackRefused, Subscriber
from kubevnfm_lcm_api.notifications.domain.subscription import (
    APIS,
    SEALED_ADDRESS,
    ApiName,
    callback_of,
    stored_address,
)


@dataclass(frozen=True)
class CheckedCallbacks:
    """Checks and tests callbacks."""

    subscriber: Subscriber
    ring: KeyRing
    tests: bool
    """Whether they are tested at all."""

    async def checked(self, api: ApiName, uri: str, authentication: Authentication | None) -> JsonObject:
        """Return the attributes to store for a callback. Raises CallbackRefused, InvalidInput."""
        return await self.changed(api, {}, uri=uri, authentication=authentication, keeps_authentication=False)

    async def changed(
        self,
        api: ApiName,
        present: JsonMapping,
        *,
        uri: str | None,
        authentication: Authentication | None,
        keeps_authentication: bool,
    ) -> JsonObject:
        """Return the attributes to store for a callback that was changed; None: the present address stays.

        ``keeps_authentication``: that of ``present`` stays, which is sealed. Raises CallbackRefused, InvalidInput.
        """
        kept_names = ("callbackUri", SEALED_ADDRESS) if uri is None else ()
        body = {name: present[name] for name in (*kept_names, "authentication") if name in present}
        if uri is not None:
            body.update(stored_address(uri, self.ring))
        if not keeps_authentication:
            body.pop("authentication", None)
            if authentication is not None:
                authentication.check_addresses(self.ring)
                body["authentication"] = authentication.document(self.ring)
        callback = callback_of(body)
        # Before the test call, which would already reach an address that is not allowed (SSRF).
        if (obstacle := await self.subscriber.obstacle(callback)) is not None:
            raise CallbackRefused(obstacle)
        is_tested = self.tests and APIS[api].version is not None
        if is_tested and (trouble := await self.subscriber.test(callback)) is not None:
            raise CallbackRefused(f"callbackUri: GET should answer 204, but {trouble}")
        return body
