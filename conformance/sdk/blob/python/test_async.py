"""The SDK's asynchronous clients: many requests of one process at a time."""

import asyncio
import os

from azure.storage.blob.aio import ContainerClient

from conftest import CREDENTIAL, ENDPOINT, MIB, OPTIONS, fresh_name


def run(act, **more):
    async def with_container():
        async with ContainerClient(ENDPOINT, fresh_name(), credential=CREDENTIAL, **(OPTIONS | more)) as container:
            await container.create_container()
            try:
                await act(container)
            finally:
                await container.delete_container()

    asyncio.run(with_container())


async def content(blob, **more):
    return await (await blob.download_blob(**more)).readall()


def test_a_hundred_blobs():
    async def act(container):
        async def round_trip(number):
            blob = await container.upload_blob(f"{number:03}", str(number) * number)
            assert await content(blob) == (str(number) * number).encode()

        await asyncio.gather(*map(round_trip, range(100)))
        found = [one.name async for one in container.list_blobs()]
        assert found == [f"{number:03}" for number in range(100)]
        await container.delete_blobs(*found)

    run(act)


def test_parallel_blocks():
    async def act(container):
        data = os.urandom(5 * MIB + 1)
        blob = await container.upload_blob("a", data, max_concurrency=4)
        assert await content(blob, max_concurrency=4) == data
        chunks = [chunk async for chunk in (await blob.download_blob()).chunks()]
        assert b"".join(chunks) == data

    run(act, max_single_put_size=MIB, max_block_size=MIB, max_single_get_size=MIB, max_chunk_get_size=MIB)


def test_a_stream():
    async def act(container):
        async def parts():
            for number in range(100):
                yield f"part {number};".encode()

        blob = await container.upload_blob("a", parts())
        assert await content(blob) == "".join(f"part {number};" for number in range(100)).encode()

    run(act)
