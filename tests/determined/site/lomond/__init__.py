"""Stand-in for the package lomond, as far as Determined's client uses it: tunnels over WebSocket."""
from . import events, session


class WebSocket:
    def __init__(self, url, proxies=None, **_):
        self.url, self.headers, self.session = url, [], None

    def add_header(self, name, value):
        self.headers.append((name, value))

    def connect(self, session_class=session.WebsocketSession, **_):
        self.session = session_class(self)
        return self.session.run()

    def send_binary(self, data):
        self.session.send(session.BINARY, data)

    def close(self):
        try:
            self.session.send(session.CLOSE, b"")
        except (OSError, AttributeError):
            pass  # it is closed, or was never open
