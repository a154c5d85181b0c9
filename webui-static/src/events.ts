// The server-sent event connection to the master: reads it, reconnects, and notifies subscribers. Does not
// fetch data: an event only names the data that is out of date.
import { signal } from '@preact/signals';
import { readLines } from './api';

export type EventKind = 'experiment' | 'trial' | 'metrics' | 'checkpoint' | 'logs' | 'agent' | 'command';

export interface ServerEvent {
  kind: EventKind;
  experimentId?: number;
  trialId?: number;
  taskId?: string; // of log events; trials are tasks, too
}

// 'everything': anything may have changed, because the connection was (re)established or events were missed.
export type Change = ServerEvent | 'everything';

const kKinds: readonly string[] = ['experiment', 'trial', 'metrics', 'checkpoint', 'logs', 'agent', 'command'];

// Parses the text/event-stream format. Input is one line at a time without line ends; a blank line completes
// a message. Comments (the master's heartbeat), ids and unknown fields are skipped.
export class EventParser {
  private name = '';
  private data: string[] = [];

  // Returns the message that `line` completes, or undefined.
  feed(line: string): { name: string; data: string } | undefined {
    if (line === '') {
      const message = { name: this.name || 'message', data: this.data.join('\n') };
      const any = this.data.length > 0;
      this.name = '';
      this.data = [];
      return any ? message : undefined;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'event') this.name = value;
    if (field === 'data') this.data.push(value);
    return undefined;
  }
}

// Converts a message; undefined for unknown kinds. Ids may be numbers or strings (int64). "reset"
// means that events were missed.
export function toChange(message: { name: string; data: string }): Change | undefined {
  if (message.name === 'reset') return 'everything';
  if (!kKinds.includes(message.name)) return undefined;
  const event: ServerEvent = { kind: message.name as EventKind };
  try {
    const data = JSON.parse(message.data);
    if (data?.experimentId) event.experimentId = Number(data.experimentId);
    if (data?.trialId) event.trialId = Number(data.trialId);
    if (data?.taskId) event.taskId = String(data.taskId);
  } catch {
    // Without readable data the kind alone still reports a change.
  }
  return event;
}

// Milliseconds to wait before retry `attempt` (from 0): exponential, capped at 15 s, with jitter in [½, 1].
export function backoff(attempt: number, random: number): number {
  return Math.min(15000, 500 * 2 ** Math.min(attempt, 10)) * (0.5 + random / 2);
}

export type Connection = 'connecting' | 'live' | 'lost';

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

// The connection counts as dead after this time without data; the master sends heartbeats more often.
const kSilenceMs = 45000;
// A hidden page closes its connection after this time, because browsers allow only six
// connections per server across all tabs.
const kHiddenMs = 10000;

// Keeps the connection open between start() and stop(). `refused` is called when the session has ended.
class EventStream {
  private wanted = false;
  private attempt = 0;
  private abort: AbortController | undefined;
  private retryTimer = 0;
  private silenceTimer = 0;
  private hiddenTimer = 0;
  private refused: () => void = () => {};

  start(refused: () => void): void {
    if (this.wanted) return;
    this.wanted = true;
    this.refused = refused;
    document.addEventListener('visibilitychange', this.onVisibility);
    window.addEventListener('online', this.onOnline);
    this.connect();
  }

  stop(): void {
    this.wanted = false;
    document.removeEventListener('visibilitychange', this.onVisibility);
    window.removeEventListener('online', this.onOnline);
    this.close();
    connection.value = 'connecting';
  }

  private close(): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.silenceTimer);
    clearTimeout(this.hiddenTimer);
    this.abort?.abort();
    this.abort = undefined;
  }

  private rest(): void {
    this.close();
    connection.value = 'connecting';
  }

  private readonly onVisibility = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = window.setTimeout(() => this.rest(), kHiddenMs);
    else if (!this.abort) this.connect();
  };

  private readonly onOnline = (): void => {
    if (connection.value === 'lost') this.connect();
  };

  private connect(): void {
    this.close();
    const abort = new AbortController();
    this.abort = abort;
    void this.read(abort).catch(() => {
      if (this.abort !== abort || !this.wanted) return;
      this.close();
      connection.value = 'lost';
      this.retryTimer = window.setTimeout(() => this.connect(), backoff(this.attempt++, Math.random()));
    });
  }

  // Reads events. Does not return while the connection lives; throws when it ends.
  private async read(abort: AbortController): Promise<void> {
    const heard = (): void => {
      clearTimeout(this.silenceTimer);
      this.silenceTimer = window.setTimeout(() => abort.abort(), kSilenceMs);
    };
    heard();
    const response = await fetch('/api/v1/events', {
      headers: { Accept: 'text/event-stream' },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: abort.signal,
    });
    if (response.status === 401) {
      this.refused();
      return;
    }
    if (!response.ok || !response.body) throw new Error(`events: status ${response.status}`);
    this.attempt = 0;
    connection.value = 'live';
    publish('everything');
    const parser = new EventParser();
    for await (const line of readLines(response.body)) {
      heard();
      const message = parser.feed(line);
      const change = message && toChange(message);
      if (change) publish(change);
    }
    throw new Error('events: the master closed the connection');
  }
}

export const events = new EventStream();
