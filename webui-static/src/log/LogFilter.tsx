// Log filter, stored in the address: text or regular expression, level, rank, time.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import type { LogQuery } from '../api';
import { save } from '../csv';
import { counted, dateTime } from '../format';
import { Icon } from '../components/Icon';
import { Options } from '../components/Options';
import { SearchField } from '../components/SearchField';
import { onPhone } from '../phone';

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

// Saves the loaded lines of a log as text, each after its time.
export function saveLines(log: HTMLElement, name: string): void {
  const lines = [...log.querySelectorAll<HTMLElement>('.log-line')];
  const text = lines.map((one) => `${one.dataset.time} ${one.querySelector('.log-text')?.textContent ?? ''}\n`).join('');
  save(`${name}.log`, new Blob([text], { type: 'text/plain' }));
}

interface ToolProps {
  count: number | undefined; // of loaded lines
  follow: boolean;
  setFollow?: ((on: boolean) => void) | undefined; // absent: there is nothing to follow
  download: () => void;
  children?: ComponentChildren; // before the others
}

// The tools of a log that do not filter it.
export function LogTools({ count, follow, setFollow, download, children }: ToolProps) {
  const { query, setQuery } = useQuery();
  const wrapped = query.wrap !== '0';
  return (
    <>
      <span class="spring" />
      <span class="quiet">{count !== undefined && counted(count, 'line')}</span>
      {children}
      {setFollow && (
        <label class="check">
          <input type="checkbox" checked={follow} onChange={(e) => setFollow(e.currentTarget.checked)} /> Follow
        </label>
      )}
      <label class="check">
        <input type="checkbox" checked={wrapped} onChange={() => setQuery({ wrap: wrapped ? '0' : '' })} /> Wrap
      </label>
      <button type="button" class="plain" title="Download the lines shown" aria-label="Download the lines shown" onClick={download}>
        <Icon name="download" /> {onPhone() && 'Download'}
      </button>
    </>
  );
}

const Moments = () => (
  <>
    <Moment name="since" label="From" />
    <Moment name="until" label="Until" />
  </>
);

interface FilterProps {
  kinds: readonly ('rank' | 'time')[];
  beside?: ComponentChildren; // beside the search field
  children?: ComponentChildren; // further tools
}

// The search field, and the other tools beside it. On a phone they are in a sheet that a button opens.
export function LogFilter({ kinds, beside, children }: FilterProps) {
  const { query, setQuery } = useQuery();
  const open = useSignal(false);
  const host = useRef<HTMLDivElement>(null);
  const phone = onPhone();
  // A press elsewhere closes the sheet.
  useEffect(() => {
    if (!phone || !open.value) return undefined;
    const close = (event: Event): void => {
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : !host.current?.contains(event.target as Node)) open.value = false;
    };
    for (const kind of ['pointerdown', 'keydown']) document.addEventListener(kind, close);
    return () => ['pointerdown', 'keydown'].forEach((kind) => document.removeEventListener(kind, close));
  }, [phone, open.value]);
  return (
    <div ref={host} class="tools log-tools" role="group" aria-label="Filter of the log">
      <SearchField label="Search the log" value={query.grep ?? ''} say={(grep) => setQuery({ grep, line: '' })} />
      {beside}
      <Options open={open} />
      <div class="log-options" hidden={phone && !open.value}>
        <label class="check">
          <input type="checkbox" checked={query.re === '1'} onChange={(e) => setQuery({ re: e.currentTarget.checked ? '1' : '' })} />
          {phone ? 'Search for a regular expression' : 'Regex'}
        </label>
        <select aria-label="Level" value={query.level ?? ''} onChange={(e) => setQuery({ level: e.currentTarget.value, line: '' })}>
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
            placeholder="All ranks"
            title="Lines of one process of a distributed trial, by its rank"
            defaultValue={query.rank ?? ''}
            onChange={(e) => setQuery({ rank: e.currentTarget.value.trim(), line: '' })}
          />
        )}
        {kinds.includes('time') &&
          (phone ? (
            <Moments />
          ) : (
            <details class="tool">
              <summary>{query.since || query.until ? 'Time range (set)' : 'Time range'}</summary>
              <div class="tool-body">
                <Moments />
              </div>
            </details>
          ))}
        {children}
      </div>
    </div>
  );
}
