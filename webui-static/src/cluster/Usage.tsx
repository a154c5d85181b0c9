// Slot usage over time and by user, as a chart, a table and CSV files.
import { paths, useQuery } from '../address';
import { held, used } from '../calls/usage';
import { Empty } from '../components/Empty';
import { Icon } from '../components/Icon';
import { Loaded } from '../components/Loaded';
import { ErrorNote } from '../components/notes';
import { Table } from '../components/Table';
import { csv, save } from '../csv';
import { dateTime, grouped, percent } from '../format';
import { useLive } from '../live';
import { useWork } from '../work';
import {
  average,
  firstDay,
  fromHeld,
  fromPeriods,
  heldRows,
  BYS,
  rangeOf,
  rangeText,
  totalRows,
  totals,
  usedSeconds,
  utilization,
  day,
  DAY,
  type By,
  type Cell,
  type Range,
  type Span,
} from './held';
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
    if (query.over || query.from || query.to) return { range, cells };
    const recent = await held(nowMs - DAY, nowMs, signal);
    const fromMs = firstDay(cells, recent);
    if (fromMs === undefined) return { range, cells };
    const own: Range = { kind: 'raw', fromMs: Math.min(fromMs, nowMs - SHORTEST_MS), toMs: nowMs };
    return { range: own, cells: fromHeld(recent.resourceEntries, recent.capacity, own.fromMs, nowMs, CELLS) };
  }
  const { resourceEntries, capacity } = await held(range.fromMs, range.toMs, signal);
  return { range, cells: fromHeld(resourceEntries, capacity, range.fromMs, range.toMs, CELLS) };
}

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
          onChange={(e) => setQuery({ over: e.currentTarget.value, from: '', to: '' })}
        >
          {Object.entries(NAMES).map(([key, name]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
          {own && <option value="own">Chosen days</option>}
          {!own && !query.over && range.kind === 'raw' && <option value="start">Since the first agent</option>}
        </select>
      </label>
      <label class="check">
        By{' '}
        <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value === 'pool' ? '' : e.currentTarget.value })}>
          {BYS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {date('from', 'From', range.fromMs)}
      {date('to', 'To', range.toMs - 1)}
    </div>
  );
}

function Files({ account }: { account: Account }) {
  const { busy, error, run } = useWork();
  const { range, cells } = account;
  const name = (what: string): string => `${what}-${day(range.fromMs)}-${day(range.toMs - 1)}.csv`;
  return (
    <>
      <div class="actions">
        <button
          type="button"
          aria-label="Download totals as CSV"
          title="Download totals as CSV"
          onClick={() => save(name('slot-seconds'), csv(totalRows(cells)))}
        >
          <Icon name="download" /> Totals
        </button>
        <button
          type="button"
          disabled={busy}
          aria-label="Download allocations as CSV"
          title="Download allocations as CSV"
          onClick={() =>
            void run(async () => save(name('allocations'), csv(heldRows((await held(range.fromMs, range.toMs)).resourceEntries))))
          }
        >
          <Icon name="download" /> Allocations
        </button>
      </div>
      <ErrorNote error={error} />
    </>
  );
}

// Two decimals; smaller positive values are shown as "<0.01".
const amount = (value: number): string =>
  value > 0 && value < 0.01 ? '<0.01' : grouped(Number(value.toFixed(value < 100 ? 2 : 0)));

function Summary({ account }: { account: Account }) {
  const { range, cells } = account;
  const seconds = usedSeconds(cells);
  const mean = average(seconds, range.fromMs, range.toMs);
  const known = utilization(cells);
  const since = known?.since && (known.since.label || dateTime(new Date(known.since.fromMs).toISOString()));
  return (
    <>
      <p class="figure">
        <strong>{amount(seconds / 3600)} slot-hours</strong>
        <span class="quiet">{range.kind === 'raw' ? 'in use' : 'in use, by days of UTC'}</span>
      </p>
      <p class="figure">
        <strong>{amount(mean)}</strong>
        <span class="quiet">slots in use on average</span>
      </p>
      {known && (
        <p class="figure">
          <strong>{percent(known.share)}</strong>
          <span class="quiet">
            of the {amount(known.available / 3600)} slot-hours available{since && ` since ${since}, without earlier usage`}
          </span>
        </p>
      )}
    </>
  );
}

function Holders({ account, by }: { account: Account; by: By }) {
  const all = totals(account.cells, by);
  const seconds = usedSeconds(account.cells);
  return (
    <>
      <Table label="Slot usage" heads={[by.charAt(0).toUpperCase() + by.slice(1), '#Slot-hours', '#Slots on average', '#Share', '']}>
        {all.slice(0, MAX_ROWS).map(([key, own], at) => (
          <tr key={key}>
            <th scope="row">
              <span class={`swatch ${at < COLORS ? `swatch-${at + 1}` : 'swatch-others'}`} aria-hidden="true" />
              {by === 'experiment' && /^\d+$/.test(key) ? <a href={paths.experiment(Number(key))}>{key}</a> : key}
            </th>
            <td class="number">{amount(own / 3600)}</td>
            <td class="number">{amount(average(own, account.range.fromMs, account.range.toMs))}</td>
            <td class="number">{seconds > 0 ? percent(own / seconds) : ''}</td>
            <td class="share">
              <progress max={Math.max(1, seconds)} value={own} aria-label={`Share of ${key}`} />
            </td>
          </tr>
        ))}
      </Table>
      {all.length > MAX_ROWS && <p class="quiet">{all.length - MAX_ROWS} more are in the file.</p>}
      {by === 'label' && <p class="quiet">An experiment with two labels counts under both, one without under none.</p>}
    </>
  );
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
              <div class="section-head figures">
                <Summary account={account} />
                <span class="spring" />
                <Files account={account} />
              </div>
              <figure class="chart wide" aria-label={`Slots in use over time, by ${by}`} data-panel="usage">
                <figcaption>
                  Slots in use, by {by} {account.cells.some((cell) => cell.capacity > 0) && <span class="quiet">dashed line: available slots</span>}
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
            </>
          )
        }
      </Loaded>
    </>
  );
}
