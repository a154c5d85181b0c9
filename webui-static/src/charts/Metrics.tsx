// Metric charts of some trials: live data, selection and display options. All
// options are part of the address.
import { useMemo, useRef } from 'preact/hooks';
import { seriesColors, useColors } from '../colors';
import { ErrorNote } from '../components/notes';
import { Swatch } from '../components/Swatch';
import { paths, useQuery } from '../address';
import type { MetricSeries, Trial } from '../wire';
import { useSeries } from './liveSeries';
import { MetricChart, type Look } from './MetricChart';
import { metric } from '../format';
import { SYSTEM_GROUPS, stepsBetween, toPanels, type Axis, type Panel } from './series';
import { unitText } from './spent';

// Points to request: about one per pixel of a wide chart, fewer per series when many trials share it.
const POINTS = 1200;
const MIN_POINTS = 120;
// Number of charts shown without a selection in the address.
const DEFAULT_PANELS = 6;

// Counters that libraries report along with metrics. They serve as axes and are not drawn.
const COUNTERS: readonly string[] = ['batches', 'epochs', 'epoch'];

const AXES: readonly Axis[] = ['batches', 'time', 'epochs'];

export function readRange(text: string | undefined): [number, number] | undefined {
  const found = text?.match(/^(\d+)-(\d+)$/);
  if (!found) return undefined;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return to > from ? [from, to] : undefined;
}

function readLook(query: Record<string, string | undefined>): Look {
  const smoothing = Number(query.smooth ?? 0);
  return {
    axis: AXES.find((one) => one === query.x) ?? 'batches',
    log: query.log === '1',
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
  };
}

function Controls({ look, zoomed, axes }: { look: Look; zoomed: boolean; axes: readonly Axis[] }) {
  const { setQuery } = useQuery();
  return (
    <div class="controls" role="group" aria-label="How charts are drawn">
      {axes.length > 1 && (
        <label class="check">
          Axis{' '}
          <select
            value={look.axis}
            onChange={(e) => setQuery({ x: e.currentTarget.value === 'batches' ? '' : e.currentTarget.value })}
          >
            {axes.map((axis) => (
              <option key={axis}>{axis}</option>
            ))}
          </select>
        </label>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={look.log}
          onChange={(e) => setQuery({ log: e.currentTarget.checked ? '1' : '' })}
        />
        Logarithmic
      </label>
      <label class="check">
        Smoothing
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={look.smoothing}
          onInput={(e) => setQuery({ smooth: Number(e.currentTarget.value) === 0 ? '' : e.currentTarget.value })}
        />
      </label>
      {zoomed ? (
        <button type="button" onClick={() => setQuery({ zoom: '' })}>
          Whole range
        </button>
      ) : (
        <span class="quiet">Drag over a chart to look closer.</span>
      )}
    </div>
  );
}

function Chips({ panels, shown }: { panels: Panel[]; shown: Panel[] }) {
  const { setQuery } = useQuery();
  const toggle = (name: string): void => {
    const names = shown.map((panel) => panel.name);
    const next = names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
    setQuery({ charts: next.length === 0 ? ',' : next.join(',') });
  };
  return (
    <div class="chips" role="group" aria-label="Metrics shown">
      {panels.map((panel) => (
        <button
          type="button"
          key={panel.name}
          class="chip"
          aria-pressed={shown.includes(panel)}
          onClick={() => toggle(panel.name)}
        >
          {panel.name}
        </button>
      ))}
    </div>
  );
}

// A system metric with its unit.
const machineText = (name: string, value: number): string => unitText(name, value) ?? metric(value);

// The key of several trials: a color per trial, a dash for groups other than training.
function TrialKey({ trials, names }: Pick<Props, 'trials' | 'names'>) {
  useColors();
  const colors = seriesColors(trials.length);
  return (
    <ul class="plain-list legend" aria-label="Trials drawn">
      {trials.map((trial, at) => (
        <li key={trial.id}>
          <Swatch color={colors[at] ?? ''} /> <a href={paths.trial(trial.id)}>{names?.get(trial.id) ?? `trial ${trial.id}`}</a>
        </li>
      ))}
      <li class="quiet">training solid, other groups dashed</li>
    </ul>
  );
}

interface Props {
  trials: Trial[]; // at most 100
  ended: boolean;
  names?: ReadonlyMap<number, string>; // display names of trials, by id
  system?: boolean; // show system metrics instead of training metrics
}

export function Metrics({ trials, ended, names, system = false }: Props) {
  const { query, setQuery } = useQuery();
  // System metrics are measured by time, not by batch.
  const look: Look = system ? { ...readLook(query), axis: 'time' } : readLook(query);
  const zoom = readRange(query.zoom);
  const ids = trials.map((trial) => trial.id);
  const points = Math.max(MIN_POINTS, Math.floor(POINTS / Math.max(1, Math.sqrt(ids.length))));
  const live = useSeries(ids, points, zoom, ids.length > 10 ? 2000 : 400);
  // While a zoomed range is loading, the previous data stays visible.
  const held = useRef<{ ids: string; data: MetricSeries[] }>();
  if (live.data) held.current = { ids: ids.join(), data: live.data };
  const data = live.data ?? (held.current?.ids === ids.join() ? held.current.data : undefined);
  // Panels are rebuilt only with their data, because a new panel object redraws the chart.
  const starts = trials.map((trial) => [trial.id, trial.startTime, names?.get(trial.id)].join()).join('\n');
  const panels = useMemo(() => {
    const found = (data ?? []).filter(({ group }) => SYSTEM_GROUPS.includes(group) === system && group !== 'timing');
    const sources = trials.map((trial) => ({
      trial: trial.id,
      name: names?.get(trial.id),
      startMs: Date.parse(trial.startTime ?? '') || 0,
      metrics: found.filter((one) => one.trialId === trial.id),
    }));
    return toPanels(sources, look.axis);
  }, [data, starts, look.axis, system]);
  const wanted = query.charts?.split(',').filter((name) => name !== '');
  const telling = panels.filter((panel) => !COUNTERS.includes(panel.name));
  const shown = wanted
    ? panels.filter((panel) => wanted.includes(panel.name))
    : (telling.length > 0 ? telling : panels).slice(0, system ? panels.length : DEFAULT_PANELS);
  const look_closer = (panel: Panel, from: number, to: number): void => {
    const steps = look.axis === 'batches' ? ([from, to] as const) : stepsBetween(panel, from, to);
    if (steps) setQuery({ zoom: `${Math.max(0, Math.floor(steps[0]))}-${Math.ceil(steps[1])}` });
  };
  const nothing = system
    ? 'No system metrics. Set profiling: {enabled: true} in the configuration.'
    : look.axis === 'epochs'
      ? 'These metrics carry no epochs; choose another axis.'
      : 'No metrics reported.';
  return (
    <section aria-labelledby="metrics-title">
      <div class="section-head">
        <h2 id="metrics-title">{system ? 'Machine' : 'Metrics'}</h2>
        {panels.length > 0 && <Chips panels={panels} shown={shown} />}
      </div>
      <Controls look={look} zoomed={zoom !== undefined} axes={system ? ['time'] : AXES} />
      <ErrorNote error={live.error} retry={live.reload} />
      {data && panels.length === 0 && (
        <p class="quiet">{ended ? nothing : `${nothing} New ones appear here.`}</p>
      )}
      {trials.length > 1 && panels.length > 0 && <TrialKey trials={trials} names={names} />}
      <div class="charts">
        {shown.map((panel) => (
          <MetricChart
            key={panel.name}
            panel={panel}
            look={look}
            trials={trials.length}
            text={system ? machineText : undefined}
            zoom={(from, to) => look_closer(panel, from, to)}
          />
        ))}
      </div>
    </section>
  );
}
