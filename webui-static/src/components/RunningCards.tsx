// Cards of running experiments: state, progress, time left, best metric, and the metric's course.
import * as api from '../api';
import { paths } from '../address';
import { leftByPace } from '../charts/spent';
import { lengthText, metricColumn, progressOf, roughly } from '../format';
import { useLive } from '../live';
import type { Experiment, MetricSeries } from '../wire';
import { Name } from './Name';
import { Progress, StateBadge } from './notes';
import { Time } from './Time';

// Points of a sparkline, and least milliseconds between requests for them.
const POINTS = 60;
const GAP_MS = 5000;
const MAX_CARDS = 24;
const WIDTH = 240;
const HEIGHT = 40;

export type MetricFormat = (one: Experiment) => string;

// Formats the best values of the searcher metrics of `all`: values of one metric have the same number of decimals.
export function metricFormat(all: readonly Experiment[]): MetricFormat {
  const names = [...new Set(all.map(({ searcherMetric }) => searcherMetric))];
  const values = (name: string) => all.filter(({ searcherMetric }) => searcherMetric === name).map((one) => one.bestTrialSearcherMetric ?? undefined);
  const formats = new Map(names.map((name) => [name, metricColumn(values(name))]));
  return (one) => formats.get(one.searcherMetric)?.(one.bestTrialSearcherMetric) ?? '';
}

// A curve without axes. Values that are no numbers are left out.
function Sparkline({ series, label }: { series: MetricSeries | undefined; label: string }) {
  let batch = 0;
  const points = (series?.values ?? []).flatMap((value, at) => {
    batch += series?.batches[at] ?? 0;
    return typeof value === 'number' && Number.isFinite(value) ? [[batch, value] as const] : [];
  });
  if (points.length < 2) return <div class="sparkline" />;
  const [first, last] = [points[0]?.[0] ?? 0, points[points.length - 1]?.[0] ?? 1];
  const values = points.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (at: number): number => ((at - first) / Math.max(1, last - first)) * WIDTH;
  const y = (value: number): number => HEIGHT - 2 - ((value - low) / (high - low || 1)) * (HEIGHT - 4);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')} />
    </svg>
  );
}

interface CardProps {
  one: Experiment;
  series: MetricSeries | undefined;
  format: MetricFormat;
}

function Card({ one, series, format }: CardProps) {
  // The pace of one trial says nothing about a search.
  const left = one.state === 'STATE_RUNNING' && one.numTrials === 1 && series ? leftByPace(progressOf(one), series) : undefined;
  return (
    <li class="card running">
      <div class="running-head">
        <a href={paths.experiment(one.id)} title={one.name} aria-label={`${one.id} ${one.name}`}>
          <Name text={one.name} />
        </a>
        <span class="quiet id">#{one.id}</span>
        <span class="spring" />
        <StateBadge state={one.state} />
      </div>
      <div class="running-metric">
        <strong>{format(one) || '–'}</strong>
        <span class="quiet">best {one.searcherMetric}</span>
      </div>
      <Sparkline series={series} label={`${one.searcherMetric} of experiment ${one.id}`} />
      <div class="running-foot">
        <Progress value={progressOf(one)} label={`Progress of experiment ${one.id}`} />
        <span class="quiet">{left === undefined ? <Time verb="submitted" at={one.startTime} /> : `about ${roughly(left)} left`}</span>
      </div>
    </li>
  );
}

// `format`: of the best value of a searcher metric, with as many digits as elsewhere on the page. `isCut`: more may run.
export function RunningCards({ all, isCut, format }: { all: readonly Experiment[]; isCut: boolean; format: MetricFormat }) {
  const shown = all.slice(0, MAX_CARDS);
  const ids = shown.flatMap((one) => (one.bestTrialId ? [one.bestTrialId] : []));
  const live = useLive(
    `sparklines ${ids.join()}`,
    (signal) => (ids.length === 0 ? Promise.resolve([]) : api.columns(ids, { points: POINTS, group: 'validation' }, signal)),
    (change) => change === 'everything' || (change.kind === 'metrics' && ids.includes(change.trialId ?? 0)),
    GAP_MS,
  );
  const of = (one: Experiment): MetricSeries | undefined =>
    live.data?.find(({ trialId, name }) => trialId === one.bestTrialId && name === one.searcherMetric);
  return (
    <section aria-labelledby="running-title">
      <div class="section-head">
        <h2 id="running-title">Running now</h2>
        <span class="quiet">{all.length > 0 && lengthText(all.length, isCut)}</span>
      </div>
      {all.length === 0 && <p class="quiet">Nothing runs.</p>}
      <ul class="plain-list running-cards">
        {shown.map((one) => (
          <Card key={one.id} one={one} series={of(one)} format={format} />
        ))}
      </ul>
      {all.length > MAX_CARDS && (
        <a href={`${paths.experiments}?q=state+%3D+active`}>All {lengthText(all.length, isCut)}</a>
      )}
    </section>
  );
}
