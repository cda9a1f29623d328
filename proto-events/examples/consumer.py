#!/usr/bin/env python3
"""Prints kubevnfm's events, one JSON line each: an example of a consumer with a read-only user.

It needs Python 3.11 and aio-pika, nothing of kubevnfm. The broker's address, with user and password, comes from the
environment, because arguments show up in process lists:

    KUBEVNFM_EVENTS_URL=amqp://observer:secret@rabbitmq:5672/ python consumer.py --pattern 'lcm.#' --pattern 'vim.#'

Without ``--queue`` the queue is deleted when the program ends. With ``--queue observer.mine`` it is durable and keeps
events while the program is away; delete it when it has no consumer any more, or it grows without limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import uuid

import aio_pika

EXCHANGE = "kubevnfm.events"


async def print_events(url: str, *, queue: str | None, patterns: list[str], count: int | None) -> None:
    """Print until ``count`` events were seen (None: without limit)."""
    connection = await aio_pika.connect_robust(url)
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=100)
        # The exchange is kubevnfm's: a read-only user may bind to it, not declare it.
        exchange = await channel.get_exchange(EXCHANGE, ensure=False)
        if queue is None:
            mine = await channel.declare_queue(f"observer.{uuid.uuid4()}", exclusive=True, auto_delete=True)
        else:
            mine = await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})
        for pattern in patterns:
            await mine.bind(exchange, pattern)
        sys.stderr.write(f"listening on {mine.name}\n")
        seen = 0
        async with mine.iterator() as messages:
            async for message in messages:
                async with message.process():  # acknowledged when the block ends well: delivery is at least once
                    event = json.loads(message.body)
                    line = {name: event.get(name) for name in ("time", "type", "id", "subject", "operationid", "data")}
                    sys.stdout.write(json.dumps(line) + "\n")
                    sys.stdout.flush()
                seen += 1
                if seen == count:
                    return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queue", help="a durable queue; its name must begin with 'observer.'")
    parser.add_argument("--pattern", action="append", help="routing key pattern, may be repeated (default: '#')")
    parser.add_argument("--count", type=int, help="end after so many events")
    arguments = parser.parse_args()
    url = os.environ.get("KUBEVNFM_EVENTS_URL")
    if not url:
        parser.error("the environment variable KUBEVNFM_EVENTS_URL (amqp://user:password@host:port/) is missing")
    asyncio.run(print_events(url, queue=arguments.queue, patterns=arguments.pattern or ["#"], count=arguments.count))


if __name__ == "__main__":
    main()
