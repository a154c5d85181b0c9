// Log filter, stored in the address: text or regular expression, level, rank, time.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import type { LogQuery } from '../api';
import { useClosing } from '../closing';
import { save } from '../csv';
import { counted, dateTime } from '../format';
import { Icon } from '../components/Icon';
import { Options } from '../components/Options';
import { SearchField } from '../components/SearchField';
import { onPhone } from '../phone';
import { momentOf, rangeText } from './moments';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'];

const isTime = (text: string | undefined): text is string => Number.isFinite(Date.parse(text ?? ''));

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
  if (isTime(query.since)) out.timestampAfter = query.since;
  if (isTime(query.until)) out.timestampBefore = query.until;
  return out;
}

// A time in the local time zone. The address stores UTC, so that links are independent of the time zone. A text field,
// because the browser's own field may have 12 hours.
function Moment({ name, label }: { name: 'since' | 'until'; label: string }) {
  const { query, setQuery } = useQuery();
  const bad = useSignal(false);
  const other = query[name === 'since' ? 'until' : 'since'];
  const set = (text: string): void => {
    const moment = momentOf(text, isTime(other) ? other : new Date().toISOString());
    bad.value = text.trim() !== '' && !moment;
    if (!bad.value) setQuery({ [name]: moment?.toISOString().replace('.000Z', 'Z') ?? '', line: '' });
  };
  return (
    <label>
      {label}
      <input
        key={query[name] ?? ''}
        type="text"
        class="moment"
        placeholder="yyyy-mm-dd hh:mm:ss"
        title="A date and time, or a time of this day"
        autocomplete="off"
        aria-invalid={bad.value}
        aria-errormessage={bad.value ? `${name}-problem` : undefined}
        defaultValue={isTime(query[name]) ? dateTime(query[name]) : ''}
        onInput={() => (bad.value = false)}
        onChange={(e) => set(e.currentTarget.value)}
      />
      {bad.value && (
        <span class="field-error" role="alert" id={`${name}-problem`}>
          Write a time as 2026-11-27 20:04:34, or 20:04 for this day.
        </span>
      )}
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

function Moments() {
  const { query, setQuery } = useQuery();
  return (
    <div class="moments">
      <Moment name="since" label="From" />
      <Moment name="until" label="Until" />
      {(query.since || query.until) && (
        <button type="button" onClick={() => setQuery({ since: '', until: '', line: '' })}>
          Clear
        </button>
      )}
    </div>
  );
}

function TimeRange() {
  const { query } = useQuery();
  const [since, until] = [query.since, query.until].map((one) => (isTime(one) ? one : undefined));
  const text = rangeText(since, until, Date.now());
  return (
    <details class="tool">
      <summary class={text === '' ? '' : 'is-set'} title="Time range">
        {text || 'Time range'}
      </summary>
      <div class="tool-body">
        <Moments />
      </div>
    </details>
  );
}

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
  useClosing(host);
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
          (phone ? <Moments /> : <TimeRange />)}
        {children}
      </div>
    </div>
  );
}
