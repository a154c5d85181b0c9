// The shared worker: one event stream for all pages of a browser, which opens only six connections to a master.
import { Pages } from './ports';
import { EventStream, type Notice } from './stream';

const pages: Pages<MessagePort> = new Pages({
  open: () => stream.open(),
  close: () => stream.close(),
  renew: () => stream.renew(),
  last: () => stream.last,
});
const stream = new EventStream((notice: Notice) => pages.send(notice));

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (!port) return;
  port.onmessage = ({ data }) => pages.receive(port, data, performance.now());
  pages.add(port, performance.now());
};
