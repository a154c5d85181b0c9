// The shared worker: one event stream for all pages of a browser, which opens only six connections to a master.
import { EventStream, type Connection, type Notice } from './stream';

const ports = new Set<MessagePort>();
let connection: Connection = 'connecting';

const stream = new EventStream((notice: Notice) => {
  if ('connection' in notice) connection = notice.connection;
  for (const port of ports) port.postMessage(notice);
});

// A page connects to attach. It sends 'leave' before it is closed or cached, 'renew' after a new sign-in.
(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (!port) return;
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === 'renew') return stream.renew();
    ports.delete(port);
    if (ports.size === 0) stream.close();
  };
  port.postMessage({ connection } satisfies Notice);
  stream.open();
};
