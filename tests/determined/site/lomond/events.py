"""Stand-in for lomond.events: what the generator of WebSocket.connect() yields."""


class Event:
    def __init__(self, text=""):
        self.text = text

    def __str__(self):
        return f"{type(self).__name__}({self.text})"


class Ready(Event):
    pass


class ConnectFail(Event):
    pass


class ProtocolError(Event):
    pass


class Closing(Event):
    pass


class Disconnected(Event):
    pass


class Rejected(Event):
    @property
    def response(self):
        return self.text


class Binary(Event):
    def __init__(self, data):
        super().__init__(f"{len(data)} bytes")
        self.data = data
