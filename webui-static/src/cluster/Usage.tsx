// Slot usage over time and by user, as a chart, a table and CSV files.
import type { ComponentChildren } from 'preact';
import * as api from '../api';
import { paths, useQuery } from '../address';
import { held, used } from '../calls/usage';
import { Empty } from '../components/Empty';
import { Icon } from '../components/Icon';
import { Loaded } from '../components/Loaded';
import { ErrorNote } from '../components/notes';
import { Table } from '../components/Table';
import { csv, save } from '../csv';
import { dayTime, grouped, metric } from '../format';
import { useLive } from '../live';
import { useWork } from '../work';
import {
  available,
  averageStart,
  day,
  DAY,
  firstDay,
  fromPeriods,
  heldRows,
  type Range,
  rangeOf,
  rangeText,
  shares,
  slotTime,
  type Span,
  totalRows,
  totals,
  utilization,
  withKnown,
} from './account';
import { average, fromHeld, BYS, usedSeconds, type By, type Cell } from './held';
import { UsageChart } from './UsageChart';

// Number of intervals for a short range.
const CELLS = 60;
// The first COLORS keys have their own color. Rows beyond MAX_ROWS are only in the CSV file.
const COLORS = 8;
// Least range of a cluster that has just started.
const SHORTEST_MS = 120_000;
const MAX_ROWS = 200;

const NAMES: Record<Span, string> = {
  hour: 'Last hour',
  day: 'Last 24 hours',
  week: 'Last 7 days',
  month: 'Last 30 days',
  quarter: 'Last 90 days',
  year: 'Last 365 days',
};

interface Account {
  range: Range;
  cells: Cell[];
}

async function load(query: Record<string, string | undefined>, signal: AbortSignal): Promise<Account> {
  const nowMs = Date.now();
  const range = rangeOf(query, nowMs);
  if (range.kind !== 'raw') {
    const periods = await used(range.first, range.last, range.kind === 'days' ? 'DAILY' : 'MONTHLY', signal);
    const cells = fromPeriods(periods, range);
    // The minute at which the record of slots begins is known for the last day only.
    const startsNow = cells.slice(0, -2).every((cell) => cell.capacity === 0);
    const asked = query.over || query.from || query.to;
    if (asked && !startsNow) return { range, cells };
    const recent = await held(nowMs - DAY, nowMs, signal);
    const fromMs = asked ? undefined : firstDay(cells, recent);
    if (fromMs === undefined) return { range, cells: withKnown(cells, startsNow ? recent.capacity : []) };
    const own: Range = { kind: 'raw', fromMs: Math.min(fromMs, nowMs - SHORTEST_MS), toMs: nowMs };
    return { range: own, cells: withKnown(fromHeld(recent.resourceEntries, recent.capacity, own.fromMs, nowMs, CELLS), recent.capacity) };
  }
  const { resourceEntries, capacity } = await held(range.fromMs, range.toMs, signal);
  return { range, cells: withKnown(fromHeld(resourceEntries, capacity, range.fromMs, range.toMs, CELLS), capacity) };
}

// Names of experiments by id.
async function experimentNames(ids: readonly number[], signal: AbortSignal): Promise<ReadonlyMap<number, string>> {
  const any: api.Condition = { kind: 'group', conjunction: 'or', children: ids.map((id) => api.where('id', '=', id)) };
  const found = ids.length > 0 ? (await api.experimentsBy([any], '', ids.length, signal)).all : [];
  return new Map(found.map(({ id, name }) => [id, name]));
}

const named = (by: By): string => by.charAt(0).toUpperCase() + by.slice(1);

function Choices({ range, by }: { range: Range; by: By }) {
  const { query, setQuery } = useQuery();
  const date = (name: 'from' | 'to', label: string, ms: number) => (
    <label class="check">
      {label}{' '}
      <input
        type="date"
        value={query[name] ?? day(ms)}
        onChange={(e) => setQuery({ [name]: e.currentTarget.value, over: '' })}
      />
    </label>
  );
  const own = query.from || query.to;
  return (
    <div class="controls" role="group" aria-label="Accounted time">
      <label class="check">
        Over{' '}
        <select
          value={own ? 'own' : (query.over ?? (range.kind === 'raw' ? 'start' : 'week'))}
          onChange={(e) =>
            e.currentTarget.value === 'own'
              ? setQuery({ over: '', from: day(range.fromMs), to: day(range.toMs - 1) })
              : setQuery({ over: e.currentTarget.value, from: '', to: '' })
          }
        >
          {Object.entries(NAMES).map(([key, name]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
          <option value="own">Chosen days</option>
          {!own && !query.over && range.kind === 'raw' && <option value="start">Since the first agent</option>}
        </select>
      </label>
      <label class="check">
        By{' '}
        <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value === 'pool' ? '' : e.currentTarget.value })}>
          {BYS.map((one) => (
            <option key={one} value={one}>
              {named(one)}
            </option>
          ))}
        </select>
      </label>
      {own && date('from', 'From', range.fromMs)}
      {own && date('to', 'To', range.toMs - 1)}
    </div>
  );
}

function Files({ account }: { account: Account }) {
  const { busy, error, run } = useWork();
  const { range, cells } = account;
  const name = (what: string): string => `${what}-${day(range.fromMs)}-${day(range.toMs - 1)}.csv`;
  return (
    <>
      <div class="actions below">
        <button
          type="button"
          aria-label="Download totals as CSV"
          onClick={() => save(name('slot-seconds'), csv(totalRows(cells)))}
        >
          <Icon name="download" /> Totals as CSV
        </button>
        <button
          type="button"
          disabled={busy}
          aria-label="Download allocations as CSV"
          onClick={() =>
            void run(async () => save(name('allocations'), csv(heldRows((await held(range.fromMs, range.toMs)).resourceEntries))))
          }
        >
          <Icon name="download" /> Allocations as CSV
        </button>
      </div>
      <ErrorNote error={error} />
    </>
  );
}

// Two decimals, or three of a small value.
const amount = (value: number): string =>
  value > 0 && value < 0.001 ? '<0.001' : grouped(Number(value.toFixed(value < 0.1 ? 3 : 2)));
const shareText = (percents: number, seconds: number): string => (percents === 0 && seconds > 0 ? '<1%' : `${percents}%`);

function Figure({ value, children }: { value: string; children: ComponentChildren }) {
  return (
    <p class="figure">
      <strong>{value}</strong>
      <span class="quiet">{children}</span>
    </p>
  );
}

function Summary({ account }: { account: Account }) {
  const { range, cells } = account;
  const seconds = usedSeconds(cells);
  const known = utilization(cells);
  const sinceMs = averageStart(cells, range.fromMs);
  return (
    <div class="section-head figures">
      <Figure value={slotTime(seconds)}>slot time used{range.kind === 'raw' ? '' : ' (days in UTC)'}</Figure>
      <Figure value={amount(average(seconds, sinceMs, range.toMs))}>slots in use on average{sinceMs > range.fromMs && ` since ${dayTime(sinceMs)}`}</Figure>
      {known &&
        (known.share === undefined ? (
          <p class="quiet">
            Capacity recorded only since {dayTime(known.since?.knownMs ?? known.since?.fromMs ?? 0)}; no utilization for this range
          </p>
        ) : (
          <Figure value={`${Math.round(100 * known.share)}%`}>of the {slotTime(known.available)} available</Figure>
        ))}
    </div>
  );
}

const isExperiment = (by: By, key: string): boolean => by === 'experiment' && /^\d+$/.test(key);

function Holders({ account, by }: { account: Account; by: By }) {
  const all = totals(account.cells, by);
  const shown = all.slice(0, MAX_ROWS);
  const seconds = usedSeconds(account.cells);
  const sinceMs = averageStart(account.cells, account.range.fromMs);
  const averages = shown.map(([, own]) => average(own, sinceMs, account.range.toMs));
  const places = averages.some((one) => one < 0.1) ? 3 : 2;
  const percents = shares(all.map(([, own]) => own), seconds);
  const ids = shown.filter(([key]) => isExperiment(by, key)).map(([key]) => Number(key));
  const names = useLive(`names ${ids.join()}`, (signal) => experimentNames(ids, signal), () => false);
  return (
    <>
      <Table label="Slot usage" heads={[named(by), '#Slot time', '#Slots on average', '#Share', '']}>
        {shown.map(([key, own], at) => (
          <tr key={key}>
            <th scope="row">
              <span class={`swatch ${at < COLORS ? `swatch-${at + 1}` : 'swatch-others'}`} aria-hidden="true" />
              {isExperiment(by, key) ? (
                <>
                  <a href={paths.experiment(Number(key))}>{names.data?.get(Number(key)) || `Experiment ${key}`}</a> <span class="quiet">#{key}</span>
                </>
              ) : (
                key
              )}
            </th>
            <td class="number">{slotTime(own)}</td>
            <td class="number">{averages[at]?.toFixed(places)}</td>
            <td class="number">{shareText(percents[at] ?? 0, own)}</td>
            <td class="share">
              <progress class={`fill-${at < COLORS ? at + 1 : 'others'}`} max={Math.max(1, seconds)} value={own} aria-label={`Share of ${key}`} />
            </td>
          </tr>
        ))}
      </Table>
      {all.length > MAX_ROWS && <p class="quiet">{all.length - MAX_ROWS} more are in the file.</p>}
      {by === 'label' && <p class="quiet">An experiment with two labels counts under both, one without under none.</p>}
    </>
  );
}

// ", recorded since 27 Nov 20:04" if that is within the range.
function recordedSince({ cells }: Account): string {
  const knownMs = cells.find((cell) => cell.knownMs !== undefined)?.knownMs;
  return knownMs === undefined ? '' : `, recorded since ${dayTime(knownMs)}`;
}

// Offers the next longer span.
function NoUse({ range }: { range: Range }) {
  const { query, setQuery } = useQuery();
  const spans = Object.keys(NAMES) as Span[];
  const over = spans.find((one) => one === query.over);
  const next = query.from || query.to ? 'week' : spans[spans.indexOf(over ?? 'week') + 1];
  const when = range.kind !== 'raw' ? rangeText(range) : over ? `in the ${NAMES[over].toLowerCase()}` : 'since the first agent started';
  return (
    <Empty icon="cluster" title={`No slot was in use ${when}.`}>
      {next && (
        <button type="button" onClick={() => setQuery({ over: next, from: '', to: '' })}>
          {NAMES[next]}
        </button>
      )}
    </Empty>
  );
}

// "8 " where the number of available slots is the same at all times.
function availableText(cells: readonly Cell[]): string {
  const [first, ...others] = new Set(cells.filter((cell) => cell.capacity > 0).map((cell) => Math.round(available(cell) * 100) / 100));
  return first === undefined || others.length > 0 ? '' : `${metric(first)} `;
}

export function Usage() {
  const { query } = useQuery();
  const by = BYS.find((one) => one === query.by) ?? 'pool';
  const live = useLive(
    `usage ${query.over ?? ''} ${query.from ?? ''} ${query.to ?? ''}`,
    (signal) => load(query, signal),
    (change) => change === 'everything' || (change.kind === 'trial' && !change.sameState) || change.kind === 'command' || change.kind === 'agent',
    5000,
  );
  return (
    <>
      <Choices range={live.data?.range ?? rangeOf(query, Date.now())} by={by} />
      <Loaded live={live}>
        {(account) =>
          account.cells.every((cell) => cell.total === 0) ? (
            <NoUse range={account.range} />
          ) : (
            <>
              <Summary account={account} />
              <figure class="chart wide" aria-label={`Slots in use over time, by ${by}`} data-panel="usage">
                <figcaption>
                  <span class="panel-name">Slots in use, by {by}</span>
                  <span class="panel-facts">
                    {account.cells.some((cell) => cell.capacity > 0) && <span>dashed line: {availableText(account.cells)}available slots{recordedSince(account)}</span>}
                  </span>
                </figcaption>
                <UsageChart
                  cells={account.cells}
                  by={by}
                  keys={totals(account.cells, by)
                    .slice(0, COLORS)
                    .map(([key]) => key)}
                />
              </figure>
              <Holders account={account} by={by} />
              <Files account={account} />
            </>
          )
        }
      </Loaded>
    </>
  );
}
