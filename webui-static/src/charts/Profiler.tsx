// Time and machine utilization of a trial.
import * as api from '../api';
import { useQuery } from '../address';
import { useNow } from '../components/clock';
import { useWidth } from '../components/width';
import { duration, isEnded, metric } from '../format';
import { useLive } from '../live';
import type { Allocation, Experiment, Trial } from '../wire';
import { useColorOf } from '../workbench/runColors';
import { at, ofTrial } from '../workbench/runs';
import { MetricChart, Metrics, readLook, readRange } from './Metrics';
import { PhaseChart } from './PhaseChart';
import { phasesOf } from './phases';
import { partsOf, reportsOf, speeds, spentOf, type Report, type Spent } from './spent';
import type { Panel } from './series';
import { unevenGpu } from './uneven';
import { UnevenNote } from './UnevenNote';

const POINTS = 1200;
const GAP_MS = 5000;
const STRETCHES = 200;
// Up to this many timing reports are merged exactly; beyond it the API returns minima and maxima only.
const TIMINGS = 4000;
const BARS = 100;
const HEIGHT = 28;

const NAMES: Record<keyof Spent, string> = {
  waiting: 'waiting for slots',
  starting: 'starting up',
  training: 'training, validating, saving',
  repeated: 'repeated after a restart',
};
// Indices of the series colors; waiting uses a neutral one.
const COLORS: Record<keyof Spent, string> = { waiting: 'others', starting: '2', training: '1', repeated: '4' };

function SpentBar({ spent }: { spent: Spent }) {
  const [host, width] = useWidth<HTMLDivElement>();
  const all = spent.waiting + spent.starting + spent.training + spent.repeated;
  const parts = partsOf(spent);
  let left = 0;
  return (
    <figure class="chart wide" aria-label={parts.map(({ key, time }) => `${NAMES[key]}: ${time}`).join('; ')} data-panel="spent">
      <figcaption>
        <span class="panel-name">Time spent</span>
        <span class="panel-facts">
          <span>{duration(all)} in total</span>
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {parts.map(({ key, share }) => {
            const own = share * width;
            left += own;
            return <rect key={key} class={`stack-${COLORS[key]}`} x={left - own} y={4} width={own} height={HEIGHT - 8} />;
          })}
        </svg>
      </div>
      <ul class="plain-list legend">
        {parts.map(({ key, time, percent }) => (
          <li key={key}>
            <span class={`swatch swatch-${COLORS[key]}`} aria-hidden="true" />
            {NAMES[key]} <span class="quiet">{`${time}, ${percent}`}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

const threeDigits = (value: number): string => metric(Number(value.toPrecision(3)));

function toPanel(trial: Trial, reports: readonly Report[]): Panel {
  const all = speeds(reports, STRETCHES);
  const places = all.map((one) => one.batches);
  // A trial that was restarted may have gone back in batches, so points are sorted.
  const order = all.map((_, at) => at).sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0));
  return {
    name: 'batches per second',
    title: 'Batches per second',
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

function Speed({ trial, reports, color, smoothing, zoom }: { trial: Trial; reports: readonly Report[]; color: string; smoothing: number | undefined; zoom: (from: number, to: number) => void }) {
  const panel = toPanel(trial, reports);
  if (panel.series[0]?.x.length === 0) return null;
  return <MetricChart panel={panel} look={{ axis: 'batches', log: false, smoothing }} colors={[color]} text={(_, value) => threeDigits(value)} zoom={zoom} />;
}

const useAttempts = (id: number) =>
  useLive(
    `attempts ${id}`,
    (signal): Promise<Allocation[]> => api.allocations(id, signal),
    (change) => change === 'everything' || (change.kind === 'trial' && !change.sameState && change.trialId === id),
  );

type Range = readonly [number, number] | undefined;

// The longest series of the group "training", which gives the times of its reports.
const useReports = (id: number, range: Range, isWanted = true) =>
  useLive(
    `reports ${id} ${range?.join() ?? ''}`,
    async (signal): Promise<Report[]> => {
      if (!isWanted) return [];
      const all = await api.columns([id], { points: POINTS, group: 'training', from: range?.[0], to: range?.[1] }, signal);
      const [longest] = all.sort((a, b) => b.batches.length - a.batches.length);
      return longest ? reportsOf(longest) : [];
    },
    (change) => isWanted && (change === 'everything' || (change.kind === 'metrics' && change.trialId === id)),
    GAP_MS,
  );

const useTimings = (id: number, range: Range) =>
  useLive(
    `timings ${id} ${range?.join() ?? ''}`,
    (signal) => api.columns([id], { points: TIMINGS, group: 'timing', from: range?.[0], to: range?.[1] }, signal),
    (change) => change === 'everything' || (change.kind === 'metrics' && change.trialId === id),
    GAP_MS,
  );

// A GPU that is used unlike the others, by the newest reports.
function useUneven(id: number) {
  const live = useLive(
    `gpus ${id}`,
    async (signal) => unevenGpu(await api.columns([id], { points: POINTS, group: 'gpu' }, signal)),
    (change) => change === 'everything' || (change.kind === 'metrics' && change.trialId === id),
    GAP_MS,
  );
  return live.data;
}

export interface ProfilerProps {
  trial: Trial;
  experiment: Experiment | undefined;
}

const NO_GROUPS: [] = [];

export function Profiler({ trial, experiment }: ProfilerProps) {
  const ended = isEnded(trial.state);
  const attempts = useAttempts(trial.id);
  const uneven = useUneven(trial.id);
  const { query, setQuery } = useQuery();
  const color = useColorOf('trial', NO_GROUPS, experiment ? [ofTrial(experiment, trial)] : [])(trial.id);
  const range = readRange(query.batches);
  const everything = useReports(trial.id, undefined);
  const ranged = useReports(trial.id, range, range !== undefined);
  const reports = range ? ranged : everything;
  const timings = useTimings(trial.id, range);
  const phases = timings.data && phasesOf(timings.data, BARS, reports.data ? speeds(reports.data, STRETCHES) : []);
  const closer = (from: number, to: number): void =>
    setQuery({ batches: `${Math.max(0, Math.floor(from))}-${Math.ceil(to)}` });
  const now = useNow(!ended);
  const begin = Date.parse(trial.startTime ?? '');
  const spent = attempts.data && everything.data && spentOf(begin, attempts.data, everything.data, now);
  const isProfiled = at(experiment?.config, ['profiling', 'enabled']) === true;
  return (
    <>
      <UnevenNote found={uneven} />
      <section aria-labelledby="time-title">
        <div class="section-head">
          <h2 id="time-title">Time</h2>
          {range && (
            <button type="button" onClick={() => setQuery({ batches: '' })}>
              Whole range
            </button>
          )}
        </div>
        {spent && <SpentBar spent={spent} />}
        <div class="charts">
          {phases && phases.bars.length > 0 && <PhaseChart phases={phases} />}
          {reports.data && <Speed trial={trial} reports={reports.data} color={color} smoothing={readLook(query).smoothing} zoom={closer} />}
        </div>
        {phases?.bars.length === 0 && (
          <p class="quiet">
            {!isProfiled && (
              <>
                <code>profiling: {'{enabled: true}'}</code> in the configuration measures the phases of a batch.{' '}
              </>
            )}
            <code>det trial profile {trial.id}</code> records a trace of every operator of the next batches.
          </p>
        )}
      </section>
      <Metrics curves={[{ ...trial, name: '', color }]} single ended={ended} system lead={<h2>Machine</h2>} />
    </>
  );
}
