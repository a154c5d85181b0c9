// The server-sent event connection to the master: reads it, reconnects and resumes it. Runs in the shared worker,
// or in the page where the browser has no shared workers.
import { readLines } from './http';

export type EventKind = 'experiment' | 'trial' | 'metrics' | 'checkpoint' | 'logs' | 'agent' | 'command';

export interface ServerEvent {
  kind: EventKind;
  experimentId?: number;
  trialId?: number;
  taskId?: string; // of log events; trials are tasks, too
  state?: string; // of experiment and trial events: "STATE_…"; missing if a user changed a name, labels or the like
  progress?: number; // 0..1
  group?: string; // of metrics events
  batches?: number; // of trial and metrics events
  sameState?: boolean; // the state and the place in the queue were reported before: only numbers have changed
}

// 'everything': anything may have changed, because the connection was (re)established or events were missed.
export type Change = ServerEvent | 'everything';

const KINDS: readonly string[] = ['experiment', 'trial', 'metrics', 'checkpoint', 'logs', 'agent', 'command'];

// Parses the text/event-stream format. Input is one line at a time without line ends; a blank line completes
// a message. Comments (the master's heartbeat) and unknown fields are skipped.
export class EventParser {
  id = ''; // of the last completed message that had one
  private newId = '';
  private name = '';
  private data: string[] = [];

  // Returns the message that `line` completes, or undefined.
  feed(line: string): { name: string; data: string } | undefined {
    if (line === '') {
      const message = { name: this.name || 'message', data: this.data.join('\n') };
      const any = this.data.length > 0;
      this.name = '';
      this.data = [];
      this.id = this.newId;
      return any ? message : undefined;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'id') this.newId = value;
    if (field === 'event') this.name = value;
    if (field === 'data') this.data.push(value);
    return undefined;
  }
}

// Converts a message; undefined for unknown kinds. Ids may be numbers or strings (int64). "reset"
// means that events were missed.
export function toChange(message: { name: string; data: string }): Change | undefined {
  if (message.name === 'reset') return 'everything';
  if (!KINDS.includes(message.name)) return undefined;
  const event: ServerEvent = { kind: message.name as EventKind };
  try {
    const data = JSON.parse(message.data);
    if (data?.experimentId) event.experimentId = Number(data.experimentId);
    if (data?.trialId) event.trialId = Number(data.trialId);
    if (data?.taskId) event.taskId = String(data.taskId);
    if (typeof data?.state === 'string') event.state = data.state;
    if (typeof data?.group === 'string') event.group = data.group;
    if (typeof data?.progress === 'number') event.progress = data.progress;
    if (typeof data?.batches === 'number') event.batches = data.batches;
    if (data?.sameState === true) event.sameState = true;
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

// A message of the stream to its pages. `after`: number of the last event before a live connection. `refused`: the
// session has ended.
export type Notice = { connection: Connection; after?: number } | { changes: Change[] } | { refused: true };

// The connection counts as dead after this time without data; the master sends heartbeats every 15 s.
const SILENCE_MS = 45000;

// Changes are sent to the pages at most this often: eight running trials make about 90 events a second.
const BATCH_MS = 250;

// Collects changes and sends them together: the first at once, further ones BATCH_MS after the last batch. An event
// replaces an earlier one about the same thing and state.
export class ChangeBatch {
  private readonly waiting = new Map<string, Change>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sent = -BATCH_MS;

  constructor(
    private readonly send: (changes: Change[]) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  add(change: Change): void {
    if (change === 'everything') {
      this.waiting.clear();
      this.waiting.set('', change);
    } else if (!this.waiting.has('')) {
      const key = [change.kind, change.experimentId, change.trialId, change.taskId, change.group, change.state].join(' ');
      const before = this.waiting.get(key);
      this.waiting.delete(key);
      this.waiting.set(key, before && before !== 'everything' ? { ...change, sameState: before.sameState } : change);
    }
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.sent + BATCH_MS - this.now()));
  }

  // Sends what is collected now.
  flush(): void {
    const changes = [...this.waiting.values()];
    this.clear();
    if (changes.length === 0) return;
    this.sent = this.now();
    this.send(changes);
  }

  // Drops what is collected.
  clear(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.waiting.clear();
  }
}

// Keeps one connection between open() and close(), both idempotent.
export class EventStream {
  private wanted = false;
  private attempt = 0;
  private lastId = '';
  private abort: AbortController | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;

  private readonly batch: ChangeBatch;

  constructor(private readonly notify: (notice: Notice) => void) {
    this.batch = new ChangeBatch((changes) => notify({ changes }));
  }

  // Number of the last event that was received or came before the connection; 0 before the first connection.
  get last(): number {
    return Number(this.lastId);
  }

  open(): void {
    if (this.wanted) return;
    this.wanted = true;
    self.addEventListener('online', this.onOnline);
    this.connect();
  }

  close(): void {
    this.wanted = false;
    this.lastId = '';
    this.batch.clear();
    self.removeEventListener('online', this.onOnline);
    this.disconnect();
    this.notify({ connection: 'connecting' });
  }

  // Connects again with the current session cookie, also after a refusal.
  renew(): void {
    if (this.wanted) this.connect();
    else this.open();
  }

  private disconnect(): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.silenceTimer);
    this.abort?.abort();
    this.abort = undefined;
  }

  private readonly onOnline = (): void => {
    if (!this.abort) this.connect();
  };

  private connect(): void {
    this.disconnect();
    const abort = new AbortController();
    this.abort = abort;
    void this.read(abort).catch(() => {
      if (this.abort !== abort || !this.wanted) return;
      this.disconnect();
      this.batch.flush();
      this.notify({ connection: 'lost' });
      this.retryTimer = setTimeout(() => this.connect(), backoff(this.attempt++, Math.random()));
    });
  }

  // Reads events. Does not return while the connection lives; throws when it ends.
  private async read(abort: AbortController): Promise<void> {
    const restartSilence = (): void => {
      clearTimeout(this.silenceTimer);
      this.silenceTimer = setTimeout(() => abort.abort(), SILENCE_MS);
    };
    restartSilence();
    const response = await fetch('/api/v1/events', {
      headers: { Accept: 'text/event-stream', ...(this.lastId === '' ? {} : { 'Last-Event-ID': this.lastId }) },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: abort.signal,
    });
    // A refusal that arrives after renew() is about the old session.
    if (abort.signal.aborted) return;
    if (response.status === 401) {
      this.close();
      this.notify({ refused: true });
      return;
    }
    if (!response.ok || !response.body) throw new Error(`events: status ${response.status}`);
    this.attempt = 0;
    let live = false;
    const parser = new EventParser();
    for await (const line of readLines(response.body)) {
      restartSilence();
      const message = parser.feed(line);
      if (parser.id !== '') this.lastId = parser.id;
      // The master begins with the number of the last event before the stream.
      if (!live && parser.id !== '') {
        live = true;
        this.notify({ connection: 'live', after: this.last });
      }
      const change = message && toChange(message);
      if (change) this.batch.add(change);
    }
    throw new Error('events: the master closed the connection');
  }
}
