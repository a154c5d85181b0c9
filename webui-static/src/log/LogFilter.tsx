// Log filter, stored in the address: text or regular expression, level, rank, time.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useQuery } from '../address';
import type { LogQuery } from '../api';
import { dateTime } from '../format';
import { Options } from '../components/Options';
import { SearchField } from '../components/SearchField';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'];

// The filter of an address: minimum level, one rank, text or regular expression, time range.
export function readFilter(query: Record<string, string | undefined>): LogQuery {
  const out: LogQuery = {};
  const least = LEVELS.indexOf(query.level ?? '');
  if (least > 0) out.levels = LEVELS.slice(least).map((name) => `LOG_LEVEL_${name}`);
  if (/^\d+$/.test(query.rank ?? '')) out.rankIds = [Number(query.rank)];
  if (query.grep) {
    out.searchText = query.grep;
    if (query.re === '1') out.enableRegex = true;
  }
  const time = (text: string | undefined): string | undefined =>
    Number.isFinite(Date.parse(text ?? '')) ? text : undefined;
  const [after, before] = [time(query.since), time(query.until)];
  if (after) out.timestampAfter = after;
  if (before) out.timestampBefore = before;
  return out;
}

// A time in the local time zone. The address stores UTC, so that links are independent of the time zone.
function Moment({ name, label }: { name: 'since' | 'until'; label: string }) {
  const { query, setQuery } = useQuery();
  const set = (text: string): void =>
    setQuery({ [name]: text === '' ? '' : new Date(text).toISOString().replace('.000Z', 'Z'), line: '' });
  const value = Number.isFinite(Date.parse(query[name] ?? '')) ? dateTime(query[name]).replace(' ', 'T') : '';
  return (
    <label class="check">
      {label} <input type="datetime-local" step="1" value={value} onChange={(e) => set(e.currentTarget.value)} />
    </label>
  );
}

// `children` stand in the same row. On a phone a button shows what is after the search field; it starts pressed if some
// of that narrows the log.
export function LogFilter({ kinds, children }: { kinds: readonly ('rank' | 'time')[]; children?: ComponentChildren }) {
  const { query, setQuery } = useQuery();
  const open = useSignal([query.re, query.level, query.rank, query.since, query.until].some((value) => (value ?? '') !== ''));
  return (
    <div class={`tools log-tools ${open.value ? '' : 'no-tools'}`} role="group" aria-label="Filter of the log">
      <SearchField label="Search the log" value={query.grep ?? ''} say={(grep) => setQuery({ grep, line: '' })} />
      <Options open={open} />
      <label class="check">
        <input
          type="checkbox"
          checked={query.re === '1'}
          onChange={(e) => setQuery({ re: e.currentTarget.checked ? '1' : '' })}
        />
        Regex
      </label>
      <select
        aria-label="Level"
        value={query.level ?? ''}
        onChange={(e) => setQuery({ level: e.currentTarget.value, line: '' })}
      >
        <option value="">All levels</option>
        {LEVELS.slice(1).map((level) => (
          <option key={level} value={level}>
            {level.toLowerCase()} and above
          </option>
        ))}
      </select>
      {kinds.includes('rank') && (
        <input
          type="text"
          inputMode="numeric"
          class="short"
          aria-label="Rank"
          placeholder="Rank"
          defaultValue={query.rank ?? ''}
          onChange={(e) => setQuery({ rank: e.currentTarget.value.trim(), line: '' })}
        />
      )}
      {kinds.includes('time') && (
        <details class="tool">
          <summary>{query.since || query.until ? 'Time (set)' : 'Time'}</summary>
          <div class="tool-body">
            <Moment name="since" label="From" />
            <Moment name="until" label="Until" />
          </div>
        </details>
      )}
      {children}
    </div>
  );
}
