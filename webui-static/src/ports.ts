// The pages that are attached to the shared worker. Pages report every PING_MS; a page that crashed does not leave,
// and is dropped when its reports stay away. No timers: reports of the other pages drive it.
import type { Connection, Notice } from './stream';

export const PING_MS = 20000;
// Three missed reports. A visible page's timers are never throttled that far; a hidden page leaves after 10 s.
export const SILENT_MS = 3 * PING_MS;

// Requests of a page: 'ping' every PING_MS, 'renew' after a new sign-in, 'leave' before it is closed or cached.
export type Request = 'ping' | 'renew' | 'leave';
// The answer to 'ping'.
export type Alive = { alive: true };

interface Port {
  postMessage: (message: Notice | Alive) => void;
}

interface Stream {
  open: () => void;
  close: () => void;
  renew: () => void;
  last: () => number; // number of the last event
}

export class Pages<P extends Port> {
  private readonly seen = new Map<P, number>(); // milliseconds of the last report
  private connection: Connection = 'connecting';

  constructor(private readonly stream: Stream) {}

  get size(): number {
    return this.seen.size;
  }

  add(port: P, now: number): void {
    this.seen.set(port, now);
    this.expire(now);
    port.postMessage(this.connection === 'live' ? { connection: 'live', after: this.stream.last() } : { connection: this.connection });
    this.stream.open();
  }

  receive(port: P, request: Request, now: number): void {
    if (request === 'leave') {
      this.seen.delete(port);
    } else {
      // A page that was dropped by mistake, such as after a suspended machine, is attached again.
      const known = this.seen.has(port);
      this.seen.set(port, now);
      port.postMessage({ alive: true });
      if (!known) port.postMessage({ changes: ['everything'] });
      if (request === 'renew') this.stream.renew();
      else this.stream.open();
    }
    this.expire(now);
    if (this.seen.size === 0) this.stream.close();
  }

  send(notice: Notice): void {
    if ('connection' in notice) this.connection = notice.connection;
    for (const port of this.seen.keys()) port.postMessage(notice);
  }

  private expire(now: number): void {
    for (const [port, at] of [...this.seen]) if (now - at > SILENT_MS) this.seen.delete(port);
  }
}
