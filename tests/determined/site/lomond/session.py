"""Stand-in for lomond.session."""


class WebsocketSession:
    def __init__(self, *_, **__):
        raise ConnectionError("lomond is not installed: WebSocket connections are not tested")
