"""An asyncio web server: `quotes.py PORT UPSTREAM_PORT`. `/health` answers at once; `/quote` asks
another server by urllib, which is not asynchronous."""

import asyncio
import sys
import urllib.request


def fetch_quote():
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/quote") as answer:
        return answer.read()


async def serve(reader, writer):
    request = (await reader.readline()).decode()
    while (await reader.readline()).strip():
        pass
    body = fetch_quote() if "/quote" in request else b"well"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
