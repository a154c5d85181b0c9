// Owns the view of what a trial's time and its machine were used for.
import * as api from '../api';
import { useQuery } from '../address';
import { useNow } from '../components/clock';
import { useWidth } from '../components/width';
import { duration, isEnded, metric, percent } from '../format';
import { useLive } from '../live';
import type { Allocation, Trial } from '../wire';
import { MetricChart } from './MetricChart';
import { Metrics, readLook } from './Metrics';
import { reportsOf, speeds, spentOf, type Report, type Spent } from './spent';
import { stepsBetween, type Panel } from './series';

const kPoints = 1200;
const kStretches = 200;
const kHeight = 28;

const kParts: [keyof Spent, string][] = [
  ['waiting', 'waiting for slots'],
  ['starting', 'from a slot to the first report'],
  ['training', 'training, validating, saving'],
];
// Of the series' colors: waiting is nobody's.
const kColors: Record<keyof Spent, string> = { waiting: 'others', starting: '2', training: '1' };

function SpentBar({ spent }: { spent: Spent }) {
  const [host, width] = useWidth<HTMLDivElement>();
  const all = spent.waiting + spent.starting + spent.training;
  let left = 0;
  return (
    <figure class="chart wide" aria-label={kParts.map(([key, name]) => `${name}: ${duration(spent[key])}`).join('; ')} data-panel="spent">
      <figcaption>
        Where its time went <span class="quiet">{duration(all)} in all</span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${kHeight}`} role="presentation">
          {kParts.map(([key]) => {
            const own = all > 0 ? (spent[key] / all) * width : 0;
            left += own;
            return own > 0 && <rect key={key} class={`stack-${kColors[key]}`} x={left - own} y={4} width={own} height={kHeight - 8} />;
          })}
        </svg>
      </div>
      <ul class="plain-list legend">
        {kParts.map(([key, name]) => (
          <li key={key}>
            <span class={`swatch swatch-${kColors[key]}`} aria-hidden="true" />
            {name} <span class="quiet">{all > 0 ? `${duration(spent[key])}, ${percent(spent[key] / all)}` : ''}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function toPanel(trial: Trial, reports: readonly Report[], axis: 'batches' | 'time'): Panel {
  const all = speeds(reports, kStretches);
  const start = Date.parse(trial.startTime ?? '') || 0;
  const places = all.map((one) => (axis === 'time' ? (one.ms - start) / 1000 : one.batches));
  // A trial that ran again went back in batches: in their order then.
  const order = all.map((_, at) => at).sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0));
  return {
    name: 'batches per second',
    series: [
      {
        label: 'training',
        group: 'training',
        trial: trial.id,
        place: 0,
        x: order.map((at) => places[at] ?? 0),
        y: order.map((at) => all[at]?.perSecond ?? null),
        steps: order.map((at) => all[at]?.batches ?? 0),
      },
    ],
  };
}

function Speed({ trial, reports }: { trial: Trial; reports: readonly Report[] }) {
  const { query, setQuery } = useQuery();
  const look = readLook(query);
  const axis = look.axis === 'time' ? 'time' : 'batches';
  const panel = toPanel(trial, reports, axis);
  if (panel.series[0]?.x.length === 0) return null;
  const closer = (from: number, to: number): void => {
    const steps = axis === 'time' ? stepsBetween(panel, from, to) : ([from, to] as const);
    if (steps) setQuery({ zoom: `${Math.max(0, Math.floor(steps[0]))}-${Math.ceil(steps[1])}` });
  };
  return (
    <div class="charts">
      <MetricChart panel={panel} look={{ ...look, axis }} zoom={closer} />
    </div>
  );
}

const useAttempts = (id: number) =>
  useLive(
    `attempts ${id}`,
    (signal): Promise<Allocation[]> => api.allocations(id, signal),
    (change) => change === 'everything' || (change.kind === 'trial' && change.trialId === id),
  );

// The longest series that tells when batches were reported.
const useReports = (id: number) =>
  useLive(
    `reports ${id}`,
    async (signal): Promise<Report[]> => {
      const all = await api.columns([id], { points: kPoints, group: 'training' }, signal);
      const [longest] = all.sort((a, b) => b.batches.length - a.batches.length);
      return longest ? reportsOf(longest) : [];
    },
    (change) => change === 'everything' || (change.kind === 'metrics' && change.trialId === id),
    1000,
  );

export function Profiler({ trial }: { trial: Trial }) {
  const ended = isEnded(trial.state);
  const attempts = useAttempts(trial.id);
  const reports = useReports(trial.id);
  const now = useNow(!ended);
  const begin = Date.parse(trial.startTime ?? '');
  const spent = attempts.data && reports.data && spentOf(begin, attempts.data, reports.data, now);
  const last = reports.data && speeds(reports.data, kStretches).pop();
  return (
    <>
      <section aria-labelledby="time-title">
        <div class="section-head">
          <h2 id="time-title">Time</h2>
          {last && <span class="quiet">{metric(last.perSecond)} batches per second lately</span>}
        </div>
        {spent && <SpentBar spent={spent} />}
        {reports.data && <Speed trial={trial} reports={reports.data} />}
        <p class="quiet">
          With <code>profiling: {'{enabled: true}'}</code> in its configuration a trial reports what a batch spends on data, forward,
          backward and optimizer, below under timing. One that calls <code>context.set_profiler</code> writes a trace of every
          operator beside its TensorBoard files.
        </p>
      </section>
      <Metrics trials={[trial]} ended={ended} system />
    </>
  );
}
