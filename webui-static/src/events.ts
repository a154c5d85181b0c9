// The page's end of the event stream: attaches to the shared worker, and notifies subscribers. Fetches no data:
// an event only names the data that is out of date.
import { signal } from '@preact/signals';
import type { Experiment } from './wire';
import { alerts } from './settings';
import { PING_MS, type Alive, type Request } from './ports';
import { EventStream, type Change, type Connection, type Notice, type ServerEvent } from './stream';

export { backoff, EventParser, toChange, type Change, type EventKind, type ServerEvent } from './stream';

// State of the connection. `lost` means that the displayed data may be out of date.
export const connection = signal<Connection>('connecting');

const subscribers = new Set<(change: Change) => void>();

// Calls `listener` on every change until the returned function is called.
export function subscribe(listener: (change: Change) => void): () => void {
  subscribers.add(listener);
  return () => subscribers.delete(listener);
}

function publish(change: Change): void {
  for (const listener of [...subscribers]) listener(change);
}

// An experiment with the progress of an event about it. Its state is derived from its trials, so it is read again.
export const withEvent = (experiment: Experiment, { kind, experimentId, progress }: ServerEvent): Experiment =>
  kind === 'experiment' && experimentId === experiment.id && progress !== undefined && progress !== experiment.progress
    ? { ...experiment, progress }
    : experiment;

// A hidden page leaves the stream after this time, except with alerts.
const HIDDEN_MS = 10000;
// Limit of settled(). Counted in steps: a page that was busy must handle the messages that arrived in the meantime first.
const SETTLE_STEPS = 6;
const SETTLE_STEP_MS = 100;

async function settleLimit(): Promise<void> {
  for (let step = 0; step < SETTLE_STEPS; step++) await new Promise((resolve) => setTimeout(resolve, SETTLE_STEP_MS));
}

interface Link {
  renew: () => void;
  leave: () => void;
}

// A worker that does not answer a report within this time is dead.
const ANSWER_MS = 5000;

function ownStream(notify: (notice: Notice) => void): Link {
  const stream = new EventStream(notify);
  stream.open();
  return { renew: () => stream.renew(), leave: () => stream.close() };
}

// Attaches to the shared worker. `failed` is called once if the worker cannot start or stops answering.
function sharedStream(worker: SharedWorker, notify: (notice: Notice) => void, failed: () => void): Link {
  const { port } = worker;
  let late = 0;
  const leave = (): void => {
    clearInterval(timer);
    clearTimeout(late);
    worker.onerror = null;
    port.onmessage = null;
    port.postMessage('leave' satisfies Request);
    port.close();
  };
  const fail = (): void => {
    leave();
    failed();
  };
  const ask = (request: Request): void => {
    clearTimeout(late);
    late = window.setTimeout(fail, ANSWER_MS);
    port.postMessage(request);
  };
  const timer = window.setInterval(() => ask('ping'), PING_MS);
  worker.onerror = fail;
  port.onmessage = ({ data }: MessageEvent<Notice | Alive>) => {
    clearTimeout(late);
    if (!('alive' in data)) notify(data);
  };
  ask('ping');
  return { renew: () => ask('renew'), leave };
}

// Attaches to the stream of the browser, or opens one for this page where shared workers are missing or fail.
function attach(notify: (notice: Notice) => void): Link {
  const url = document.querySelector<HTMLMetaElement>('meta[name="events-worker"]')?.content;
  if (!url || typeof SharedWorker !== 'function') return ownStream(notify);
  let link = sharedStream(new SharedWorker(url, { name: 'events' }), notify, () => {
    link = ownStream(notify);
    notify({ changes: ['everything'] });
  });
  return { renew: () => link.renew(), leave: () => link.leave() };
}

// Keeps the page attached between start() and stop(), except while it is hidden or in the back/forward cache: a
// frozen page would hold its connection. `refused` is called when the session has ended.
class Events {
  private link: Link | undefined;
  private wanted = false;
  private stale = false; // data was loaded while the page was not attached
  private hiddenTimer = 0;
  private first = Promise.resolve(0);
  private settle: (after: number) => void = () => {};
  private refused: () => void = () => {};

  start(refused: () => void): void {
    if (this.wanted) return;
    this.wanted = true;
    this.refused = refused;
    this.stale = false;
    this.first = new Promise((resolve) => {
      this.settle = resolve;
      void settleLimit().then(() => resolve(0));
    });
    document.addEventListener('visibilitychange', this.onVisibility);
    window.addEventListener('pagehide', this.leave);
    window.addEventListener('pageshow', this.join);
    this.join();
  }

  stop(): void {
    this.wanted = false;
    document.removeEventListener('visibilitychange', this.onVisibility);
    window.removeEventListener('pagehide', this.leave);
    window.removeEventListener('pageshow', this.join);
    this.leave();
  }

  // Uses the session of a new sign-in.
  renew(): void {
    this.link?.renew();
  }

  // Resolves when the stream has been live, or 600 ms after start(). Data misses no change if it is loaded afterwards
  // or contains the returned event; 0: not known.
  async settled(): Promise<number> {
    const after = await this.first;
    if (connection.value !== 'live') this.stale = true;
    return after;
  }

  private readonly join = (): void => {
    clearTimeout(this.hiddenTimer);
    this.link ??= attach(this.onNotice);
  };

  private readonly leave = (): void => {
    clearTimeout(this.hiddenTimer);
    if (!this.link) return;
    this.link.leave();
    this.link = undefined;
    this.stale = true;
    connection.value = 'connecting';
  };

  private readonly onVisibility = (): void => {
    if (!document.hidden) this.join();
    else if (!alerts.value) this.hiddenTimer = window.setTimeout(this.leave, HIDDEN_MS);
  };

  private readonly onNotice = (notice: Notice): void => {
    if ('refused' in notice) return this.refused();
    if ('changes' in notice) return notice.changes.forEach(publish);
    connection.value = notice.connection;
    if (notice.connection === 'connecting') return;
    this.settle(notice.after ?? 0);
    if (notice.connection === 'lost' || !this.stale) return;
    this.stale = false;
    publish('everything');
  };
}

export const events = new Events();
