"""A web site behind TLS: `tls_site.py PORT CERTIFICATE` takes one connection after the other."""

import socket
import ssl
import sys

port, certificate = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)


def answer(connection):
    request = connection.recv(4096)
    if request:
        head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + b"welcome\n")
    connection.close()


with open("/proc/self/comm", "w", encoding="ascii") as file:
    file.write("tls_site")
with socket.create_server(("127.0.0.1", int(port))) as listening:
    with context.wrap_socket(listening, server_side=True) as server:
        print("ready", flush=True)
        while True:
            try:
                answer(server.accept()[0])
            except (ssl.SSLError, ConnectionError):
                # It was no browser.
                continue
