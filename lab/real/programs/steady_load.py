"""A hundred requests a second for a page of a server on loopback, one after the other:
`steady_load.py PORT`."""

import http.client
import sys
import time

server = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
while True:
    begin = time.monotonic()
    server.request("GET", "/index.html")
    server.getresponse().read()
    time.sleep(max(0.0, begin + 0.01 - time.monotonic()))
