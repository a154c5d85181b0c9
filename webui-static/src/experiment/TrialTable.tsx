// Table of an experiment's trials: order, number of rows drawn, and links to each.
import { paths, useQuery } from '../address';
import { flatten, metricOf } from '../charts/search';
import { Swatch } from '../components/Swatch';
import { errorLine } from '../failure';
import { isEnded, metric, sorted, span } from '../format';
import type { JsonObject, JsonValue, Trial } from '../wire';
import { useNow } from '../components/clock';
import { StateBadge } from '../components/notes';
import { Time } from '../components/Time';

// Maximum number of rows drawn initially; a button shows the rest.
const FIRST_ROWS = 200;

const valueText = (value: JsonValue): string =>
  typeof value === 'number' ? metric(value) : typeof value === 'string' ? value : JSON.stringify(value);

const hparamText = (hparams: JsonObject | null | undefined): string =>
  [...flatten(sorted(hparams ?? {}))].map(([name, value]) => `${name}=${valueText(value)}`).join('  ');

type Key = 'id' | 'metric' | 'batches';

function inOrder(trials: Trial[], key: Key, descending: boolean): Trial[] {
  const value = (trial: Trial): number | undefined =>
    key === 'id' ? trial.id : key === 'batches' ? trial.totalBatchesProcessed : metricOf(trial);
  return [...trials].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === undefined || right === undefined) return left === right ? 0 : left === undefined ? 1 : -1;
    return descending ? right - left : left - right;
  });
}

interface Props {
  trials: Trial[];
  drawn: ReadonlyMap<number, string>; // colors of the trials drawn
  metricName: string;
  smallerIsBetter: boolean; // the first click on the metric's head sorts best first
  toggle: (trialId: number) => void;
}

function Row({ trial, now, drawn, toggle }: { trial: Trial; now: number } & Pick<Props, 'drawn' | 'toggle'>) {
  const color = drawn.get(trial.id);
  return (
    <tr class={drawn.has(trial.id) ? 'chosen' : ''}>
      <td>
        <input
          type="checkbox"
          aria-label={`Draw trial ${trial.id}`}
          checked={drawn.has(trial.id)}
          onChange={() => toggle(trial.id)}
        />
        {color && <Swatch color={color} />}
      </td>
      <th scope="row" class="number narrow-head">
        <a href={paths.trial(trial.id)}>{trial.id}</a>
      </th>
      <td>
        <StateBadge state={trial.state} />
        {trial.exitReason !== '' && (
          <div class="quiet one-line" title={trial.exitReason}>
            {errorLine(trial.exitReason)}
          </div>
        )}
      </td>
      <td class="number">{trial.totalBatchesProcessed.toLocaleString()}</td>
      <td class="number">{metric(trial.searcherMetricValue)}</td>
      <td class="number">{trial.restarts}</td>
      <td class="number">{trial.checkpointCount}</td>
      <td>
        <Time at={trial.startTime} />
      </td>
      <td class="number">{span(trial.startTime, trial.endTime, now)}</td>
      <td class="hparams">{hparamText(trial.hparams)}</td>
    </tr>
  );
}

// The order after a click on a head: the column's first direction, the opposite one, then by id.
export function nextOrder(order: string, name: Key, first: string): string {
  const other = first.startsWith('-') ? name : `-${name}`;
  if (order === first || (order === '' && name === 'id')) return other;
  return order === other || name === 'id' ? '' : first;
}

export function TrialTable({ trials, drawn, metricName, smallerIsBetter, toggle }: Props) {
  const now = useNow(trials.some((trial) => !isEnded(trial.state)));
  const { query, setQuery } = useQuery();
  const text = query.order ?? '';
  const key = (['metric', 'batches'] as const).find((name) => name === text.replace(/^-/, '')) ?? 'id';
  const descending = text.startsWith('-');
  const all = query.all === '1';
  const rows = inOrder(trials, key, descending).slice(0, all ? undefined : FIRST_ROWS);
  const head = (name: Key, title: string) => (
    <th
      scope="col"
      class="number"
      aria-sort={name === key ? (descending ? 'descending' : 'ascending') : undefined}
    >
      <button
        type="button"
        class="sort"
        onClick={() =>
          setQuery({ order: nextOrder(text, name, name === 'metric' && !smallerIsBetter ? '-metric' : name) })
        }
      >
        {title}
        {name === key && <span aria-hidden="true">{descending ? ' ↓' : ' ↑'}</span>}
      </button>
    </th>
  );
  return (
    <>
      <div class="table-frame table-short" tabIndex={0} role="region" aria-labelledby="trials-title">
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Drawn</span>
              </th>
              {head('id', 'ID')}
              <th scope="col">State</th>
              {head('batches', 'Batches')}
              {head('metric', `Best ${metricName || 'validation'}`)}
              <th scope="col" class="number">
                Restarts
              </th>
              <th scope="col" class="number">
                Checkpoints
              </th>
              <th scope="col">Started</th>
              <th scope="col" class="number">
                Duration
              </th>
              <th scope="col">Hyperparameters</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((trial) => (
              <Row key={trial.id} trial={trial} now={now} drawn={drawn} toggle={toggle} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length < trials.length && (
        <button type="button" onClick={() => setQuery({ all: '1' })}>
          Show all {trials.length} trials
        </button>
      )}
    </>
  );
}
