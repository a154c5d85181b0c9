// The master's log as sentences: its newest lines, then new ones over a stream that is open while the page shows it.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useQuery } from '../address';
import type { ApiError, LogQuery } from '../api';
import { masterLog, type MasterLine } from '../calls/usage';
import { followEnd, scrollToEnd } from '../log/followEnd';
import { LogFilter, LogTools, readFilter, saveLines } from '../log/LogFilter';
import { readable } from './masterLine';
import { Rows } from '../log/logRows';
import { useAbove } from '../components/above';
import { ErrorNote } from '../components/notes';
import { subscribe } from '../events';
import { sessionEnded } from '../session';
import { toError } from '../work';

// Lines requested initially.
const TAIL = 2000;

// The level of a line; a refused request is a warning.
const levelOf = ({ level, message }: MasterLine): string =>
  level === 'LOG_LEVEL_INFO' && readable(message).isRefused ? 'LOG_LEVEL_WARNING' : level;

// Returns a predicate for the lines to show. An invalid regular expression matches nothing.
export function matcher(filter: LogQuery): (line: MasterLine) => boolean {
  let found = (text: string): boolean => !filter.searchText || text.toLowerCase().includes(filter.searchText.toLowerCase());
  if (filter.enableRegex && filter.searchText) {
    try {
      const expression = new RegExp(filter.searchText);
      found = (text) => expression.test(text);
    } catch {
      found = () => false;
    }
  }
  return (line) => (!filter.levels || filter.levels.includes(levelOf(line))) && (found(line.message) || found(readable(line.message).text));
}

const toEntry = (line: MasterLine, raw: boolean) => ({
  id: String(line.id),
  timestamp: line.timestamp,
  level: levelOf(line),
  rankId: -1,
  agentId: '',
  allocationId: '',
  log: raw ? line.message : readable(line.message).text,
});

// The lines in an element, which new ones follow. `chosen`: the id of a line that is shown first; `raw`: lines as written.
function useLines(filter: LogQuery, chosen: string | undefined, raw: boolean, follow: Signal<boolean>) {
  const count = useSignal<number | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const again = useSignal(0);
  const host = useAbove(`${count.value === undefined} ${error.value !== undefined}`);

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const abort = new AbortController();
    const content = document.createElement('div');
    element.replaceChildren(content);
    const rows = new Rows(content, { chosen, hasLevels: true, hasDays: true });
    const matches = matcher(filter);
    follow.value = chosen === undefined;
    let drawn = 0;
    const draw = (): void => {
      drawn = 0;
      count.value = rows.count;
      // A hidden element cannot scroll, and Preact would show it only in the next render.
      element.hidden = rows.count === 0;
      if (!follow.value && chosen) content.querySelector('.log-chosen')?.scrollIntoView({ block: 'center' });
    };
    const leaveEnd = followEnd(element, content, follow, () => (follow.value = true));
    const read = async (): Promise<void> => {
      for await (const line of masterLog(TAIL, abort.signal)) {
        if (abort.signal.aborted) return;
        if (error.value) error.value = undefined;
        if (matches(line) && (raw || !readable(line.message).isNoise)) rows.append([toEntry(line, raw)]);
        drawn ||= requestAnimationFrame(draw);
      }
    };
    drawn = requestAnimationFrame(draw);
    let over = false;
    void read()
      .catch((cause) => {
        if (abort.signal.aborted) return;
        error.value = toError(cause);
        if (error.value.status === 401) sessionEnded();
      })
      .finally(() => (over = true));
    // A restarted master has a new log, and permissions may have changed since a refusal.
    const unsubscribe = subscribe((change) => {
      if (change === 'everything' && over) again.value++;
    });
    return () => {
      unsubscribe();
      leaveEnd();
      cancelAnimationFrame(drawn);
      abort.abort();
    };
  }, [JSON.stringify(filter), chosen, raw, again.value]);
  return { host, count: count.value, error: error.value, retry: () => void again.value++ };
}

export function MasterLog() {
  const { query, setQuery } = useQuery();
  const raw = query.raw === '1';
  const follow = useSignal(true);
  const { host, count, error, retry } = useLines(readFilter(query), query.line, raw, follow);
  const refused = error?.status === 501 ? error : undefined;
  return (
    <section aria-labelledby="log-title">
      <h2 id="log-title" class="hidden">
        Log of the master
      </h2>
      {refused ? (
        <p class="quiet">The log is {refused.message}.</p>
      ) : (
        <>
          <LogFilter kinds={[]}>
            <LogTools
              count={count}
              follow={follow.value}
              setFollow={(on) => {
                follow.value = on;
                if (on && query.line) setQuery({ line: '' });
                else if (on && host.current) scrollToEnd(host.current);
              }}
              download={() => host.current && saveLines(host.current, 'master')}
            >
              <label class="check" title="With the names of fields, and with the requests for this log">
                <input type="checkbox" checked={raw} onChange={() => setQuery({ raw: raw ? '' : '1' })} /> As written
              </label>
            </LogTools>
          </LogFilter>
          <ErrorNote error={error} retry={retry} />
          {count === 0 && !error && <p class="quiet">No line matches the filter yet.</p>}
        </>
      )}
      <div
        class={query.wrap === '0' ? 'log log-long' : 'log'}
        ref={host}
        role="log"
        aria-label="Log of the master"
        aria-live="off"
        tabIndex={0}
        hidden={refused !== undefined || count === 0}
      />
    </section>
  );
}
