// Log of a trial or command: the newest lines, or those around a linked line, then new lines as they arrive.
// The master does the filtering, so cost depends on the visible lines only.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import * as api from '../api';
import { events, subscribe } from '../events';
import { Refresher } from '../live';
import { sessionEnded } from '../session';
import { LogFilter, LogTools, readFilter, saveLines } from './LogFilter';
import { followEnd, scrollToEnd } from './followEnd';
import { Rows } from './logRows';
import { useAbove } from '../components/above';
import { Icon } from '../components/Icon';
import { ErrorNote } from '../components/notes';
import { once } from '../work';

// Lines per request.
const PAGE = 1000;

// What the filter looks for, to be marked. An expression that only the master can read marks nothing.
function matchOf({ searchText, enableRegex }: api.LogQuery): RegExp | undefined {
  if (!searchText) return undefined;
  try {
    return new RegExp(enableRegex ? searchText : searchText.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'g');
  } catch {
    return undefined;
  }
}

// The loaded part of one log.
class LogSheet {
  readonly rows: Rows;
  ended = false; // the last request found no newer lines
  begun = false; // there are no older lines

  constructor(
    private readonly frame: HTMLElement,
    readonly content: HTMLElement,
    private readonly of: string,
    private readonly filter: api.LogQuery,
    private readonly line: string | undefined,
    keys: Props['keys'],
    private readonly signal: AbortSignal,
  ) {
    this.rows = new Rows(content, { chosen: line, match: matchOf(filter), keys });
  }

  // Loads the first lines, or newer ones. `on` continues to the end of the log.
  async forward(on: boolean): Promise<void> {
    if (this.rows.newest === '' && !this.line && !this.filter.timestampAfter) {
      const tail = await api.logTail(this.of, PAGE, this.filter, this.signal);
      this.rows.append(tail);
      this.ended = true;
      this.begun = tail.length < PAGE;
      return;
    }
    do {
      const after = this.rows.newest || String(Math.max(0, Number(this.line ?? 1) - 1));
      const first = this.rows.count === 0;
      const entries = await api.logAfter(this.of, after, PAGE, this.filter, this.signal);
      if (this.signal.aborted) return;
      if (this.rows.append(entries)) this.begun = false;
      this.ended = entries.length < PAGE;
      if (first) {
        await this.backward();
        this.content.querySelector('.log-chosen')?.scrollIntoView({ block: 'center' });
      }
    } while (on && !this.ended);
  }

  // Loads older lines.
  readonly backward = once(async (): Promise<void> => {
    const { oldest } = this.rows;
    if (!oldest?.time) return;
    // Lines with the same timestamp are returned again and are recognized by their id.
    const before = new Date(Date.parse(oldest.time) + 1).toISOString();
    const query = { ...this.filter, timestampBefore: before };
    const page = await api.logTail(this.of, PAGE, query, this.signal);
    const older = page.filter((entry) => BigInt(entry.id) < BigInt(oldest.id));
    this.begun = page.length < PAGE || older.length === 0;
    const height = this.frame.scrollHeight;
    if (this.rows.prepend(older)) this.ended = false;
    this.frame.scrollTop += this.frame.scrollHeight - height;
  });
}

export interface Props {
  of: string; // "trials/7", "tasks/ID"
  name: string;
  taskId: string;
  ended?: boolean; // the task has ended: no lines arrive that could be followed
  keys?: Record<string, string>; // of the addresses of lines, besides those of the page
}

interface Sheet {
  host: { current: HTMLDivElement | null };
  status: { lines: number; begun: boolean } | undefined; // undefined until the first lines
  error: api.ApiError | undefined;
  backward: () => void;
  retry: () => void;
}

// The lines of a log in an element: loaded again when the log, the filter or the linked line changes, followed by new lines
// as they arrive. `fixed`: starts at a given line or time, not at the end.
function useSheet({ of, taskId, keys }: Props, filter: api.LogQuery, line: string | undefined, fixed: boolean, follow: Signal<boolean>): Sheet {
  const status = useSignal<Sheet['status']>(undefined);
  const error = useSignal<api.ApiError | undefined>(undefined);
  const host = useAbove(`${of} ${status.value === undefined} ${error.value !== undefined}`);
  const sheet = useRef<LogSheet>();
  const refresher = useRef<Refresher>();
  const guarded = async (work: () => Promise<void>): Promise<void> => {
    const own = sheet.current;
    try {
      await work();
      error.value = undefined;
    } catch (cause) {
      if (own !== sheet.current) return;
      error.value = cause instanceof api.ApiError ? cause : new api.ApiError(-1, String(cause));
      if (error.value.status === 401) sessionEnded();
    }
    if (own && own === sheet.current) status.value = { lines: own.rows.count, begun: own.begun };
  };
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const abort = new AbortController();
    const content = document.createElement('div');
    element.replaceChildren(content);
    const own = new LogSheet(element, content, of, filter, line, keys, abort.signal);
    sheet.current = own;
    if (fixed) follow.value = false;
    status.value = undefined;
    const refresh = new Refresher(async () => {
      await events.settled();
      await guarded(() => own.forward(follow.value));
    }, 200);
    refresher.current = refresh;
    refresh.request();
    const unsubscribe = subscribe((change) => {
      const ours = change === 'everything' || (change.kind === 'logs' && change.taskId === taskId);
      if (ours && (own.ended || follow.value || own.rows.count === 0)) refresh.request();
    });
    // Reaching the end resumes following, or loads more lines if there are any.
    const leaveEnd = followEnd(element, content, follow, () => {
      if (own.ended) follow.value = true;
      else refresh.request();
    });
    return () => {
      unsubscribe();
      leaveEnd();
      refresh.close();
      abort.abort();
      sheet.current = undefined;
    };
  }, [of, taskId, JSON.stringify(filter), line]);
  return {
    host,
    status: status.value,
    error: error.value,
    backward: () => void guarded(async () => sheet.current?.backward()),
    retry: () => refresher.current?.request(),
  };
}

// Buttons that go to the next match, or the one before, round the ends.
function Matches({ host, follow }: { host: Sheet['host']; follow: Signal<boolean> }) {
  const current = useRef<Element>();
  const go = (by: 1 | -1): void => {
    const all = [...(host.current?.querySelectorAll('mark') ?? [])];
    if (all.length === 0) return;
    current.current?.classList.remove('current');
    const at = all.indexOf(current.current as HTMLElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length];
    next?.classList.add('current');
    next?.scrollIntoView({ block: 'center' });
    current.current = next;
    follow.value = false;
  };
  return (
    <span class="segments">
      <button type="button" aria-label="Previous match" title="Previous match" onClick={() => go(-1)}>
        <Icon name="up" />
      </button>
      <button type="button" aria-label="Next match" title="Next match" onClick={() => go(1)}>
        <Icon name="down" />
      </button>
    </span>
  );
}

export function LogView(props: Props) {
  const { name, ended } = props;
  const { query, setQuery } = useQuery();
  const filter = readFilter(query);
  const line = /^\d{1,18}$/.test(query.line ?? '') ? query.line : undefined;
  // A view that starts at a given line or time does not follow the end.
  const fixed = line !== undefined || filter.timestampAfter !== undefined;
  const follow = useSignal(!fixed);
  const { host, status, error, backward, retry } = useSheet(props, filter, line, fixed, follow);
  const setFollow = (on: boolean): void => {
    follow.value = on;
    if (on && fixed) setQuery({ line: '', since: '' });
    else if (on && host.current) scrollToEnd(host.current);
  };
  return (
    <section aria-labelledby="log-title">
      <h2 id="log-title" class="hidden">
        Log
      </h2>
      <LogFilter kinds={['rank', 'time']} beside={filter.searchText && <Matches host={host} follow={follow} />}>
        <LogTools
          count={status?.lines}
          follow={follow.value}
          setFollow={ended ? undefined : setFollow}
          download={() => host.current && saveLines(host.current, name)}
        >
          {status && !status.begun && status.lines > 0 && (
            <button type="button" onClick={backward}>
              Older lines
            </button>
          )}
        </LogTools>
      </LogFilter>
      <ErrorNote error={error} retry={retry} />
      {status?.lines === 0 && !error && (
        <p class="quiet">{Object.keys(filter).length === 0 ? 'No lines yet.' : 'No line matches the filter.'}</p>
      )}
      <div
        class={query.wrap === '0' ? 'log log-long' : 'log'}
        ref={host}
        role="log"
        aria-label={`Log of ${name}`}
        aria-live="off"
        tabIndex={0}
        hidden={status?.lines === 0}
      />
    </section>
  );
}
