"""Stand-in for the package lomond: lets Determined's client start. Connections fail."""
from . import session


class WebSocket:
    def __init__(self, *_, **__):
        raise ConnectionError("lomond is not installed: WebSocket connections are not tested")
