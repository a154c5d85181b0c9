// Metric charts of some trials: live data, selection and display options. All
// options are part of the address.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useClosing } from '../closing';
import { useFilled } from '../components/above';
import { ErrorNote } from '../components/notes';
import { later } from '../components/later';
import { SearchField } from '../components/SearchField';
import { Swatch } from '../components/Swatch';
import { paths, useQuery } from '../address';
import type { MetricSeries } from '../wire';
import { onPhone } from '../phone';
import { toBands, type GroupOf } from './bands';
import { useSeries } from './liveSeries';
import type { ChartProps } from './MetricChart';
import 'uplot/dist/uPlot.min.css';
import { metric } from '../format';
import { HEIGHTS, SYSTEM_GROUPS, ledBy, matching, panelName, stepsBetween, titleOf, toPanels, type Axis, type Look, type Panel, type Size } from './series';
import { isPercentage, systemTitle, unitText } from './spent';
import { unevenGpu, unevenText } from './uneven';

// uPlot is not part of the first load, but for its style: it takes time to start, and a page shows its tables first.
const loadChart = async () => (await import('./MetricChart')).MetricChart;
export const MetricChart = later<ChartProps>(loadChart);

// Points to request: about one per pixel of a wide chart, fewer per series when many trials share it.
const POINTS = 1200;
const MANY_POINTS = 800;
const MIN_POINTS = 120;
// Least milliseconds between requests for new points of one trial, and of several.
const ONE_GAP_MS = 400;
const MANY_GAP_MS = 5000;
// Number of charts shown without a selection in the address.
const DEFAULT_PANELS = 6;
// With more metrics a text finds them; most charts that it shows.
const MANY_PANELS = 16;
const MAX_FOUND = 24;

// Counters that libraries report along with metrics. They serve as axes and are not drawn.
const COUNTERS: readonly string[] = ['batches', 'epochs', 'epoch'];

const AXES: readonly Axis[] = ['batches', 'time', 'epochs'];
// "roomy" is not offered: few charts on a wide page have it by themselves.
const SIZES = (Object.keys(HEIGHTS) as Size[]).filter((size) => size !== 'roomy');
const ROOMY_PANELS = 4;
const WIDE = '(min-width: 60rem)';
// Pixels of the key of a chart.
const KEY = 32;

export function readRange(text: string | undefined): [number, number] | undefined {
  const found = text?.match(/^(\d+)-(\d+)$/);
  if (!found) return undefined;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return to > from ? [from, to] : undefined;
}

function readLook(query: Record<string, string | undefined>): Look {
  const smoothing = Number(query.smooth ?? 0);
  return {
    axis: query.x ?? 'batches',
    log: query.log === '1',
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    size: SIZES.find((one) => one === query.size) ?? 'medium',
  };
}

function Controls({ look, zoomed, axes }: { look: Look; zoomed: boolean; axes: readonly Axis[] }) {
  const { setQuery } = useQuery();
  return (
    <div class="controls" role="group" aria-label="How charts are drawn">
      {axes.length > 1 && (
        <label class="check">
          X axis{' '}
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
      {axes.length > 1 && (
        <label class="check">
          Size{' '}
          <select value={look.size} onChange={(e) => setQuery({ size: e.currentTarget.value === 'medium' ? '' : e.currentTarget.value })}>
            {SIZES.map((size) => (
              <option key={size}>{size}</option>
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
        Log scale
      </label>
      <label class="check">
        Smooth
        <input
          type="range"
          aria-label="Smoothing"
          min="0"
          max="0.99"
          step="0.01"
          value={look.smoothing}
          onInput={(e) => setQuery({ smooth: Number(e.currentTarget.value) === 0 ? '' : e.currentTarget.value })}
        />
        {look.smoothing > 0 && <output>{look.smoothing.toFixed(2)}</output>}
      </label>
      {zoomed && (
        <button type="button" title="Also by a double click on a chart" onClick={() => setQuery({ zoom: '' })}>
          Whole range
        </button>
      )}
    </div>
  );
}

interface ChoiceProps {
  panels: Panel[];
  shown: Panel[];
}

// Panels chosen by their names.
const useToggle = (shown: readonly Panel[]): ((name: string) => void) => {
  const { setQuery } = useQuery();
  return (name) => {
    const names = shown.map((panel) => panel.name);
    const next = names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
    setQuery({ charts: next.length === 0 ? ',' : next.join(','), find: '' });
  };
};

function Chips({ panels, shown }: ChoiceProps) {
  const toggle = useToggle(shown);
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
          {titleOf(panel)}
        </button>
      ))}
    </div>
  );
}

// Many metrics: a text finds panels, and a menu chooses them.
function Finder({ panels, shown }: ChoiceProps) {
  const { query, setQuery } = useQuery();
  const toggle = useToggle(shown);
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  return (
    <div class="finder" role="group" aria-label="Metrics shown" ref={host}>
      <SearchField label="Find metrics" value={query.find ?? ''} say={(find) => setQuery({ find })} />
      <details class="tool">
        <summary>
          {shown.length} of {panels.length} metrics
        </summary>
        <div class="tool-body">
          {panels.map((panel) => (
            <label class="check" key={panel.name}>
              <input type="checkbox" checked={shown.includes(panel)} onChange={() => toggle(panel.name)} />
              {titleOf(panel)}
            </label>
          ))}
        </div>
      </details>
    </div>
  );
}

// A panel of a system metric has a plain name, and percentages the whole axis.
const PERCENT: [number, number] = [0, 100];
const asSystem = (panel: Panel): Panel => ({ ...panel, title: systemTitle(panel.name), range: isPercentage(panel.name) ? PERCENT : undefined });

// A system metric with its unit.
const machineText = (name: string, value: number): string => unitText(name, value) ?? metric(value);

// Places of charts while the first data are loaded.
const GHOSTS = [0, 1, 2, 3];

// A longer key scrolls.
const MANY_KEYS = 24;

// A trial with drawn curves.
export interface Curve {
  id: number; // of the trial
  startTime?: string | null | undefined;
  name: string;
  color: string;
}

// The key of several trials: a color per trial.
const TrialKey = ({ curves }: Pick<Props, 'curves'>) => (
  <ul class="plain-list legend trial-key" aria-label="Trials drawn" tabIndex={curves.length > MANY_KEYS ? 0 : undefined}>
    {curves.map(({ id, name, color }) => (
      <li key={id}>
        <Swatch color={color} /> <a href={paths.trial(id)}>{name}</a>
      </li>
    ))}
  </ul>
);

// The key of groups of trials.
const GroupKey = ({ names, colors }: Groups) => (
  <ul class="plain-list legend trial-key" aria-label="Groups drawn" tabIndex={names.length > MANY_KEYS || onPhone() ? 0 : undefined}>
    {names.map((name, at) => (
      <li key={name}>
        <Swatch color={colors[at] ?? ''} /> {name}
      </li>
    ))}
  </ul>
);

interface Groups {
  of: (trial: number) => GroupOf | undefined;
  colors: readonly string[]; // by place
  names: readonly string[];
}

interface Props {
  curves: readonly Curve[]; // at most 200
  single?: boolean; // the page is about one trial: colors stand for groups of metrics
  ended: boolean;
  system?: boolean; // show system metrics instead of training metrics
  keyed?: boolean; // show the key of the trials
  groups?: Groups | undefined; // draw their means
  objective?: string | undefined; // the metric of the first panel
}

export function Metrics({ curves, single = false, ended, system = false, keyed = true, groups, objective }: Props) {
  useEffect(() => void loadChart().catch(() => undefined), []);
  const { query, setQuery } = useQuery();
  // System metrics are measured by time, not by batch.
  const look: Look = system ? { ...readLook(query), axis: 'time' } : readLook(query);
  const zoom = readRange(query.zoom);
  const ids = curves.map(({ id }) => id);
  const points = Math.max(MIN_POINTS, ids.length > 1 ? Math.floor(MANY_POINTS / Math.sqrt(ids.length)) : POINTS);
  const live = useSeries(ids, points, zoom, ids.length > 1 ? MANY_GAP_MS : ONE_GAP_MS);
  const { data } = live;
  // Panels are rebuilt only with their data, because a new panel object redraws the chart.
  const starts = curves.map(({ id, startTime, name }) => [id, startTime, name, groups?.of(id)?.label].join()).join('\n');
  const panels = useMemo(() => {
    const found = (data ?? []).filter(({ group }) => SYSTEM_GROUPS.includes(group) === system && group !== 'timing');
    const own = new Map(curves.map(({ id }) => [id, [] as MetricSeries[]]));
    for (const one of found) own.get(one.trialId)?.push(one);
    const sources = curves.map(({ id, name, startTime }) => ({
      trial: id,
      name: single ? undefined : name,
      startMs: Date.parse(startTime ?? '') || 0,
      metrics: own.get(id) ?? [],
    }));
    const all = ledBy(toPanels(sources, look.axis), objective);
    if (system) return all.map(asSystem);
    return groups ? all.map((panel) => toBands(panel, groups.of)) : all;
  }, [data, starts, look.axis, system, objective]);
  const names = useMemo(
    () => [...new Set((data ?? []).flatMap(({ group, name }) => (SYSTEM_GROUPS.includes(group) || COUNTERS.includes(name) ? [] : [panelName(group, name)])))].sort(),
    [data],
  );
  const wanted = query.charts?.split(',').filter((name) => name !== '');
  const telling = panels.filter((panel) => !COUNTERS.includes(panel.name));
  const shown = query.find
    ? matching(panels, query.find).slice(0, MAX_FOUND)
    : wanted
    ? panels.filter((panel) => wanted.includes(panel.name))
    : (telling.length > 0 ? telling : panels).slice(0, system ? panels.length : DEFAULT_PANELS);
  // Few charts fill a wide page without a table.
  const roomy = (single || keyed) && !system && !query.size && shown.length <= ROOMY_PANELS && matchMedia(WIDE).matches;
  const size: Size = roomy ? 'roomy' : (look.size ?? 'medium');
  const [grid, height] = useFilled(HEIGHTS[size], shown.length, shown.some(({ series }) => single && series.length > 1) ? KEY : 0, query.size || system);
  const drawnLook: Look = { ...look, size, height };
  const look_closer = (panel: Panel, from: number, to: number): void => {
    const steps = look.axis === 'batches' ? ([from, to] as const) : stepsBetween(panel, from, to);
    if (steps) setQuery({ zoom: `${Math.max(0, Math.floor(steps[0]))}-${Math.ceil(steps[1])}` });
  };
  const uneven = useMemo(() => (single ? unevenGpu(data ?? []) : undefined), [data, single]);
  const colors = single ? undefined : curves.map(({ color }) => color);
  const nothing = system
    ? 'No system metrics. Set profiling: {enabled: true} in the configuration.'
    : look.axis === 'batches' || look.axis === 'time'
      ? 'No metrics reported.'
      : `No metric is reported together with ${look.axis}; choose another axis.`;
  return (
    <section aria-labelledby="metrics-title">
      <div class="section-head metrics-tools">
        <h2 id="metrics-title" class={system ? '' : 'hidden'}>
          {system ? 'Machine' : 'Metrics'}
        </h2>
        {panels.length > 0 && (panels.length > MANY_PANELS ? <Finder panels={panels} shown={shown} /> : <Chips panels={panels} shown={shown} />)}
        {panels.length > 0 && <Controls look={look} zoomed={zoom !== undefined} axes={system ? ['time'] : [...AXES, ...names]} />}
      </div>
      <ErrorNote error={live.error} retry={live.reload} />
      {data && panels.length === 0 && (
        <p class="quiet">{ended ? nothing : `${nothing} New ones appear here.`}</p>
      )}
      {!data && !live.error && (
        <div class={`charts charts-${drawnLook.size} ghosts`} aria-hidden="true">
          {GHOSTS.map((at) => (
            <div key={at} class="chart" />
          ))}
        </div>
      )}
      {uneven && (
        <p class="note note-wait" role="status">
          {unevenText(uneven)}
        </p>
      )}
      {keyed && panels.length > 0 && (groups ? <GroupKey {...groups} /> : curves.length > 1 && <TrialKey curves={curves} />)}
      {query.find && panels.length > 0 && shown.length === 0 && <p class="quiet">No metric is called {query.find}.</p>}
      <div class={`charts charts-${drawnLook.size}`} ref={grid} onDblClick={() => zoom && setQuery({ zoom: '' })}>
        {shown.map((panel) => (
          <MetricChart
            key={panel.name}
            panel={panel}
            look={drawnLook}
            colors={groups?.colors ?? colors}
            text={system ? machineText : undefined}
            trials={groups || single ? undefined : curves.length}
            zoom={(from, to) => look_closer(panel, from, to)}
          />
        ))}
      </div>
    </section>
  );
}
