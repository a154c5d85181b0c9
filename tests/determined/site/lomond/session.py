"""Stand-in for lomond.session: a WebSocket client (RFC 6455) for binary messages."""
import base64
import os
import socket
import struct
import urllib.parse

from . import events

BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
MAX_HEADER = 64 << 10


class WebsocketSession:
    """One connection. A subclass chooses its TLS context by _wrap_socket()."""

    def __init__(self, websocket):
        self.websocket = websocket
        self.sock = None
        self.buffer = b""

    def _wrap_socket(self, sock, host):
        raise NotImplementedError

    def _receive(self):
        more = self.sock.recv(65536)
        if not more:
            raise ConnectionError("the master has closed the connection")
        self.buffer += more

    def _take(self, size):
        """Returns the next `size` bytes. Raises ConnectionError at the end of the stream."""
        while len(self.buffer) < size:
            self._receive()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def _open(self):
        """Connects and asks for the upgrade. Returns the reply's header."""
        url = urllib.parse.urlsplit(self.websocket.url)
        secure = url.scheme == "wss"
        self.sock = socket.create_connection((url.hostname, url.port or (443 if secure else 80)))
        if secure:
            self.sock = self._wrap_socket(self.sock, url.hostname)
        lines = [f"GET {url.path or '/'} HTTP/1.1", f"Host: {url.netloc}", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name.decode()}: {value.decode()}" for name, value in self.websocket.headers]
        self.sock.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self.buffer and len(self.buffer) < MAX_HEADER:
            self._receive()
        header, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return header.decode("latin-1")

    def send(self, opcode, data):
        size = len(data)
        if size < 126:
            header = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            header = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            header = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        # A mask of zeros is one, too.
        self.sock.sendall(header + bytes(4) + data)

    def _frames(self):
        """Yields (opcode, data) of whole messages."""
        opcode, data = 0, b""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size >= 126:
                form, width = ("!H", 2) if size == 126 else ("!Q", 8)
                size = struct.unpack(form, self._take(width))[0]
            part = self._take(size)
            if first & 0x0F >= CLOSE:
                yield first & 0x0F, part
                continue
            opcode, data = (first & 0x0F) or opcode, data + part
            if first & 0x80:
                yield opcode, data
                data = b""

    def run(self):
        """Yields the events of the connection, the last of which ends it."""
        try:
            header = self._open()
        except OSError as error:
            yield events.ConnectFail(str(error))
            return
        status = header.split("\r\n", 1)[0]
        if " 101 " not in status + " ":
            yield events.Rejected(status)
            return
        yield events.Ready(status)
        try:
            for opcode, data in self._frames():
                if opcode == CLOSE:
                    yield events.Closing()
                    return
                if opcode == PING:
                    self.send(PONG, data)
                elif opcode != PONG:
                    yield events.Binary(data)
        except OSError as error:
            yield events.Disconnected(str(error))
        finally:
            self.sock.close()
