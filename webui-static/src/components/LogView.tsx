// Owns the log of one trial: its newest lines, then every line as it comes. Lines are text to the page, never
// markup. Rows are made by hand, not by Preact: a log grows a line at a time and old rows never change.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { pieces } from '../ansi';
import * as api from '../api';
import { subscribe } from '../events';
import { clock, dateTime } from '../format';
import { Refresher } from '../live';
import { sessionEnded } from '../session';
import type { LogEntry } from '../wire';
import { ErrorNote } from './notes';

// Lines loaded at first; at most kMaxLines are kept, the oldest are let go.
const kTail = 1000;
const kMaxLines = 20000;
// Rows live in blocks, so that the browser lays out only the full blocks in sight and old ones are let go
// whole.
const kBlock = 200;

function row(entry: LogEntry): HTMLElement {
  const line = document.createElement('div');
  const level = entry.level.replace(/^LOG_LEVEL_/, '').toLowerCase();
  line.className = `log-line log-${level}`;
  const time = document.createElement('time');
  time.textContent = clock(entry.timestamp);
  time.title = dateTime(entry.timestamp);
  line.append(time);
  if (entry.rankId > 0) {
    const rank = document.createElement('span');
    rank.className = 'log-rank';
    rank.textContent = `[rank=${entry.rankId}]`;
    line.append(rank);
  }
  const text = document.createElement('span');
  text.className = 'log-text';
  for (const piece of pieces(entry.log)) {
    const part = document.createElement('span');
    part.textContent = piece.text;
    if (piece.color !== undefined) part.classList.add(`ansi-${piece.color}`);
    if (piece.bold) part.classList.add('ansi-bold');
    if (piece.dim) part.classList.add('ansi-dim');
    text.append(part);
  }
  line.append(text);
  return line;
}

// The rows of one log inside `host`.
class Rows {
  count = 0;
  dropped = 0;
  private lastId = '';

  constructor(private readonly host: HTMLElement) {}

  get newest(): string {
    return this.lastId;
  }

  append(entries: LogEntry[]): void {
    for (const entry of entries) {
      let block = this.host.lastElementChild;
      if (!block || block.childElementCount >= kBlock) {
        block?.classList.add('log-full');
        block = document.createElement('div');
        this.host.append(block);
      }
      block.append(row(entry));
      this.lastId = entry.id;
      this.count++;
    }
    while (this.count > kMaxLines && this.host.firstElementChild) {
      const gone = this.host.firstElementChild.childElementCount;
      this.host.firstElementChild.remove();
      this.count -= gone;
      this.dropped += gone;
    }
  }
}

export function LogView({ trialId, taskId }: { trialId: number; taskId: string }) {
  const host = useRef<HTMLDivElement>(null);
  const follow = useSignal(true);
  const status = useSignal<{ lines: number; dropped: number } | undefined>(undefined);
  const error = useSignal<api.ApiError | undefined>(undefined);
  const refresher = useRef<Refresher>();

  const scrolled = useRef(0);

  const toEnd = (): void => {
    if (host.current) host.current.scrollTop = host.current.scrollHeight;
  };

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const abort = new AbortController();
    const content = document.createElement('div');
    element.replaceChildren(content);
    const rows = new Rows(content);
    // The height also changes when the browser lays out a block for the first time, not only when lines come.
    const grown = new ResizeObserver(() => follow.value && toEnd());
    grown.observe(content);
    status.value = undefined;
    const show = (entries: LogEntry[]): void => {
      rows.append(entries);
      status.value = { lines: rows.count, dropped: rows.dropped };
    };
    const load = async (): Promise<void> => {
      if (rows.newest === '') show(await api.logTail(trialId, kTail, abort.signal));
      else {
        let entries: LogEntry[];
        do {
          entries = await api.logAfter(trialId, rows.newest, kTail, abort.signal);
          if (abort.signal.aborted) return;
          if (entries.length > 0) show(entries);
        } while (entries.length === kTail);
      }
    };
    const own = new Refresher(async () => {
      try {
        await load();
        error.value = undefined;
      } catch (cause) {
        if (abort.signal.aborted) return;
        error.value = cause instanceof api.ApiError ? cause : new api.ApiError(-1, String(cause));
        if (error.value.status === 401) sessionEnded();
      }
    }, 200);
    refresher.current = own;
    own.request();
    const unsubscribe = subscribe((change) => {
      if (change === 'everything' || (change.kind === 'logs' && change.taskId === taskId)) own.request();
    });
    return () => {
      unsubscribe();
      grown.disconnect();
      own.close();
      abort.abort();
    };
  }, [trialId, taskId]);

  // Scrolling up lets go of the end; scrolling back to it takes hold again.
  const onScroll = (): void => {
    const element = host.current;
    if (!element) return;
    const up = element.scrollTop < scrolled.current;
    scrolled.current = element.scrollTop;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - 8) follow.value = true;
    else if (up) follow.value = false;
  };
  const setFollow = (on: boolean): void => {
    follow.value = on;
    if (on) toEnd();
  };

  return (
    <section aria-labelledby="log-title">
      <div class="section-head">
        <h2 id="log-title">Log</h2>
        <span class="quiet">
          {status.value && `${status.value.lines.toLocaleString()} lines`}
          {status.value &&
            status.value.dropped > 0 &&
            ` (${status.value.dropped.toLocaleString()} older ones let go)`}
        </span>
        <span class="spring" />
        <label class="check">
          <input
            type="checkbox"
            checked={follow.value}
            onChange={(e) => setFollow(e.currentTarget.checked)}
          />{' '}
          Follow
        </label>
      </div>
      <ErrorNote error={error.value} retry={() => refresher.current?.request()} />
      {status.value?.lines === 0 && <p class="quiet">No lines yet.</p>}
      <div
        class="log"
        ref={host}
        role="log"
        aria-label={`Log of trial ${trialId}`}
        aria-live="off"
        tabIndex={0}
        onScroll={onScroll}
        hidden={status.value?.lines === 0}
      />
    </section>
  );
}
