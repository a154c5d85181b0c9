// Metric charts of some trials: live data, selection and display options. All
// options are part of the address.
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { RUNS_BEAT_MS } from '../beat';
import { colorOfSeed, useColors } from '../colors';
import { useFilled } from '../components/above';
import { Empty } from '../components/Empty';
import { Icon } from '../components/Icon';
import { ErrorNote } from '../components/notes';
import { later } from '../components/later';
import { useQuery } from '../address';
import type { MetricSeries } from '../wire';
import { onPhone } from '../phone';
import { Axes, Smoothing } from './Axes';
import { toBands, type GroupOf } from './bands';
import { sectionsOf, type Section } from './facts';
import { Finder } from './Finder';
import { readHeight, type Resize } from './Grip';
import { GroupKey, TrialKey, type GroupKeyProps } from './Legend';
import { useSeries } from './liveSeries';
import type { ChartProps } from './plot';
import 'uplot/dist/uPlot.min.css';
import { counted, metric } from '../format';
import { COUNTERS, HEIGHTS, NO_PLACE, SIZES, SYSTEM_GROUPS, leadsOf, ledBy, matching, panelName, stepsBetween, toPanels, type Axis, type Look, type Panel, type Size, type Source } from './series';
import { isAmount, isPercentage, paceText, systemRank, systemTitle, unitText } from './spent';
import { unevenGpu } from './uneven';
import { UnevenNote } from './UnevenNote';

// uPlot is not part of the first load, but for its style: it takes time to start, and a page shows its tables first.
const loadChart = async () => (await import('./MetricChart')).MetricChart;
export const MetricChart = later<ChartProps>(loadChart, <div class="chart" aria-hidden="true" />);

// Points to request: about one per pixel of a wide chart, fewer per series when many trials share it.
const POINTS = 1200;
const MANY_POINTS = 800;
const MIN_POINTS = 120;
// Least milliseconds between requests for new points of one trial and of more than SOME.
const SOME = 24;
const ONE_GAP_MS = 500;
const MANY_GAP_MS = 6000;
// Charts of a section without a selection in the address, and most charts that a text finds.
const DEFAULT_PANELS = 12;
const MAX_FOUND = 24;

const AXES: readonly Axis[] = ['batches', 'time', 'epochs'];
const ROOMY_PANELS = 4;
const WIDE = '(min-width: 60rem)';

// Pixels of the head of a section.
const SECTION_HEIGHT = 36;

export function readRange(text: string | undefined): [number, number] | undefined {
  const found = text?.match(/^(\d+)-(\d+)$/);
  if (!found) return undefined;
  const [from, to] = [Number(found[1]), Number(found[2])];
  return to > from ? [from, to] : undefined;
}

export function readLook(query: Record<string, string | undefined>): Look {
  const smoothing = Number(query.smooth);
  return {
    axis: query.x ?? 'batches',
    log: query.log === undefined ? undefined : query.log === '1',
    whole: query.y === 'all',
    smoothing: query.smooth === undefined || !(smoothing >= 0 && smoothing < 1) ? undefined : smoothing,
    size: SIZES.find((one) => one === query.size) ?? 'medium',
  };
}

// A panel of a system metric has a plain name, and percentages the whole axis.
const PERCENT: [number, number] = [0, 100];
const HEADROOM = 1.1;
function asSystem(panel: Panel): Panel {
  const largest = (): number => panel.series.reduce((most, { y }) => y.reduce((own: number, value) => Math.max(own, value ?? 0), most), 0);
  const range: [number, number] | undefined = isPercentage(panel.name) ? PERCENT : isAmount(panel.name) ? [0, HEADROOM * largest() || 1] : undefined;
  return { ...panel, title: systemTitle(panel.name), range };
}

// A system metric with its unit.
const machineText = (name: string, value: number): string => unitText(name, value) ?? metric(value);

// "5 running", or "5 of 12 running" where the others are not drawn.
const pacedText = (drawn: number, all: number): string => `${drawn < all ? `${drawn} of ${all}` : drawn} running`;

// Places of charts while the first data are loaded.
const GHOSTS = [0, 1, 2, 3];

// A trial with drawn curves.
export interface Curve {
  id: number; // of the trial
  startTime?: string | null | undefined;
  name: string;
  tag?: string; // at the end of its curves: the id of its row
  color: string; // '': that of the trial's id
  isPaced?: boolean; // the page has the speed of these running trials
}

// "gray: 16 others", and the speed of those that run.
const keyNotes = (gray: number, pace: string): string => [gray > 0 ? `gray: ${counted(gray, 'other')}` : '', pace].filter((one) => one !== '').join(' · ');

// A trial with pale curves behind the others.
export type Other = Pick<Curve, 'id' | 'startTime'>;
const NO_OTHERS: readonly Other[] = [];
const PACE = 'Medians of the newest reports. The profiler has all of them.';
const NO_SERIES: MetricSeries[] = [];

interface Groups extends GroupKeyProps {
  tags: readonly string[]; // at the ends of their curves, by place
  of: (trial: number) => GroupOf | undefined;
}

interface Props {
  curves: readonly Curve[]; // at most 200
  others?: readonly Other[];
  single?: boolean; // the page is about one trial
  ended: boolean;
  system?: boolean; // show system metrics instead of training metrics
  keyed?: boolean; // the key has the names of the trials, which no table beside has
  groups?: Groups | undefined; // draw their means
  objective?: { metric: string; smallerIsBetter: boolean } | undefined; // its metric has the first panel
  running?: number; // trials of the search that run, drawn or not
  lead?: ComponentChildren; // at the left of the row above the charts
  tools?: ComponentChildren; // at its right
}

// The row above panels: their choice on the left, tools on the right.
export const PanelBar = ({ lead, children }: { lead: ComponentChildren; children?: ComponentChildren }) => (
  <div class="panel-bar">
    {lead}
    <span class="spring" />
    {children}
  </div>
);

// Trials with those of the series that are drawn.
function sourcesOf(trials: readonly (Other & { name?: string })[], data: readonly MetricSeries[], system: boolean): Source[] {
  const own = new Map(trials.map(({ id }) => [id, [] as MetricSeries[]]));
  for (const one of data) if (SYSTEM_GROUPS.includes(one.group) === system && one.group !== 'timing') own.get(one.trialId)?.push(one);
  return trials.map(({ id, name, startTime }) => ({ trial: id, name, startMs: Date.parse(startTime ?? '') || 0, metrics: own.get(id) ?? [] }));
}

// The panels of curves. Those of a page about one trial have all groups of a metric, others have one: two sets of lines would hide
// each other. A new panel object redraws its chart, so panels are made again only with their data.
function usePanels(props: Props, data: MetricSeries[] | undefined, ofOthers: MetricSeries[], axis: Axis): Panel[] {
  const { curves, others = NO_OTHERS, single, system = false, groups, objective } = props;
  const sources = JSON.stringify([groups?.few, curves.map(({ id, startTime, name }) => [id, startTime, name, groups?.of(id)])]);
  const leads = useMemo(() => (single || system ? undefined : leadsOf(data ?? [])), [data, single, system]);
  const behind = useMemo(() => {
    const panels = toPanels(sourcesOf(others, ofOthers, system), axis, leads);
    return new Map(panels.map(({ name, series }) => [name, series.map((one) => ({ ...one, place: NO_PLACE }))]));
  }, [ofOthers, axis, system, JSON.stringify([...(leads ?? [])])]);
  return useMemo(() => {
    const named = curves.map((one) => (single ? { id: one.id, startTime: one.startTime } : one));
    const all = ledBy(toPanels(sourcesOf(named, data ?? [], system), axis, leads), objective?.metric);
    if (system) return all.map(asSystem).sort((a, b) => systemRank(a.name) - systemRank(b.name));
    return all.map((panel) => (groups ? toBands(panel, groups.of, groups.few) : { ...panel, behind: behind.get(panel.name) ?? [] }));
  }, [data, leads, behind, sources, axis, system, objective?.metric]);
}

interface Shown {
  first: Panel[]; // above the sections
  sections: Section[]; // closed or open, by prefix
  opened: (section: Section) => boolean;
}

// The panels to show: those that a text finds, those chosen in the address, or those without a prefix and the open sections.
function shownOf(panels: readonly Panel[], query: Record<string, string | undefined>, system: boolean): Shown {
  const none = { sections: [], opened: () => false };
  if (query.find) return { ...none, first: matching(panels, query.find).slice(0, MAX_FOUND) };
  const wanted = query.charts?.split(',').filter((name) => name !== '');
  if (wanted) return { ...none, first: panels.filter((panel) => wanted.includes(panel.name)) };
  if (system) return { ...none, first: [...panels] };
  const telling = panels.filter((panel) => !COUNTERS.includes(panel.name));
  const all = sectionsOf(telling.length > 0 ? telling : panels);
  const sections = all.filter(({ key }) => key !== '');
  const plain = all.find(({ key }) => key === '')?.panels ?? [];
  const open = query.open?.split(',') ?? (plain.length === 0 ? sections.slice(0, 1).map(({ key }) => key) : []);
  return { first: plain.slice(0, DEFAULT_PANELS), sections, opened: ({ key }) => open.includes(key) };
}

// A section of charts, which a click on its head opens.
function ChartSection({ section, open, toggle, draw }: { section: Section; open: boolean; toggle: () => void; draw: (panels: readonly Panel[]) => ComponentChildren }) {
  return (
    <div class="chart-section">
      <button type="button" class="plain" aria-expanded={open} onClick={toggle}>
        <Icon name={open ? 'down' : 'right'} /> {section.title} <span class="quiet">{counted(section.panels.length, 'metric')}</span>
      </button>
      {open && draw(section.panels.slice(0, MAX_FOUND))}
      {open && section.panels.length > MAX_FOUND && <p class="quiet">The first {MAX_FOUND} are drawn. The search field finds the others.</p>}
    </div>
  );
}

// The empty state instead of charts.
function Nothing({ axis, system, ended }: { axis: Axis; system: boolean; ended: boolean }) {
  const isOther = !system && axis !== 'batches' && axis !== 'time';
  const title = system ? 'No system metrics' : isOther ? 'No metrics on this axis' : 'No metrics';
  const text = system
    ? 'Use of GPUs, CPU, memory, disk and network appears here 10 s after the start of a training with det’s library.'
    : isOther
      ? `No metric is reported together with ${axis}; choose another axis.`
      : ended
        ? 'The training ended before its first report.'
        : 'Charts appear here with the first report.';
  return (
    <Empty icon="dashboard" title={ended || isOther ? title : `${title} yet`}>
      {text}
    </Empty>
  );
}

const Ghosts = ({ size }: { size: Size }) => (
  <div class={`charts charts-${size} ghosts`} aria-hidden="true">
    {GHOSTS.map((at) => (
      <div key={at} class="chart" />
    ))}
  </div>
);

// Axes whose first value is within this part of the last one begin at zero.
const NEAR_ZERO = 0.1;

// The range of the x axis that shows all points of these panels.
function rangeOf(isChosen: boolean, panels: readonly Panel[]): readonly [number, number] {
  const all = panels.flatMap(({ series, behind = [] }) => [...series, ...behind].filter(({ x }) => x.length > 0));
  const [first, last] = [Math.min(...all.map(({ x }) => x[0] ?? 0)), Math.max(...all.map(({ x }) => x[x.length - 1] ?? 0))];
  return [!isChosen && first > 0 && first <= NEAR_ZERO * last ? 0 : first, last];
}

// Names of metrics for the x axis.
const axisNames = (data: readonly MetricSeries[]): string[] =>
  [...new Set(data.flatMap(({ group, name }) => (SYSTEM_GROUPS.includes(group) || COUNTERS.includes(name) ? [] : [panelName(group, name)])))].sort();

// The series of the drawn trials: the more trials, the fewer points of each, and the less often.
const useDrawnSeries = (ids: readonly number[], zoom: readonly [number, number] | undefined): ReturnType<typeof useSeries> => {
  const points = Math.max(MIN_POINTS, ids.length > 1 ? Math.floor(MANY_POINTS / Math.sqrt(ids.length)) : POINTS);
  return useSeries(ids, points, zoom, ids.length > SOME ? MANY_GAP_MS : ids.length > 1 ? RUNS_BEAT_MS : ONE_GAP_MS);
};

// The height of all charts, which the lower edge of one sets; on a phone it does not.
function useHeight(filled: number): { height: number; resize: Resize | undefined } {
  const { query, setQuery } = useQuery();
  const dragged = useSignal<number | undefined>(undefined);
  const height = dragged.value ?? readHeight(query.height) ?? filled;
  const drop = (to: number | undefined): void => {
    dragged.value = undefined;
    setQuery({ height: to === undefined ? '' : String(to) });
  };
  return { height, resize: onPhone() ? undefined : { height, drag: (to) => void (dragged.value = to), drop } };
}

interface ChartsProps extends Pick<Props, 'objective'> {
  panels: readonly Panel[];
  shared: Omit<ChartProps, 'panel' | 'zoom' | 'smallerIsBetter'>;
  size: Size;
  host: { current: HTMLDivElement | null } | undefined; // gets their element
  zoomed: boolean;
}

// Charts beside and below each other. A range that is drawn in one of them becomes that of all; a double click undoes it.
function Charts({ panels, shared, size, objective, host, zoomed }: ChartsProps) {
  const { setQuery } = useQuery();
  const isObjective = ({ name }: Panel): boolean => objective !== undefined && [objective.metric, panelName('validation', objective.metric)].includes(name);
  const lookCloser = (panel: Panel, from: number, to: number): void => {
    const steps = shared.look.axis === 'batches' ? ([from, to] as const) : stepsBetween(panel, from, to);
    if (steps) setQuery({ zoom: `${Math.max(0, Math.floor(steps[0]))}-${Math.ceil(steps[1])}` });
  };
  return (
    <div class={`charts charts-${size}`} ref={host ?? null} onDblClick={() => zoomed && setQuery({ zoom: '' })}>
      {panels.map((panel) => (
        <MetricChart
          key={panel.name}
          {...shared}
          panel={panel}
          smallerIsBetter={isObjective(panel) ? objective?.smallerIsBetter : undefined}
          zoom={(from, to) => lookCloser(panel, from, to)}
        />
      ))}
    </div>
  );
}

interface ToolsProps extends Pick<Props, 'lead' | 'tools' | 'system'> {
  panels: readonly Panel[];
  shown: readonly Panel[];
  look: Look;
  names: readonly Axis[]; // metrics for the x axis
  zoomed: boolean;
  children: ComponentChildren;
}

// The row above the charts.
function Tools({ lead, tools, system = false, panels, shown, look, names, zoomed, children }: ToolsProps) {
  const { setQuery } = useQuery();
  const hasCharts = panels.length > 0;
  return (
    <PanelBar lead={lead}>
      {children}
      {hasCharts && <Finder panels={panels} shown={shown} />}
      {tools}
      {hasCharts && !onPhone() && <Smoothing value={look.smoothing} />}
      {hasCharts && <Axes look={look} axes={[...AXES, ...names]} isTime={system} />}
      {zoomed && (
        <button type="button" title="Also by a double click on a chart" onClick={() => setQuery({ zoom: '' })}>
          Whole range
        </button>
      )}
    </PanelBar>
  );
}

export function Metrics(props: Props) {
  const { curves, others = NO_OTHERS, single = false, ended, system = false, keyed = true, groups, objective, running = 0 } = props;
  useEffect(() => void loadChart().catch(() => undefined), []);
  const { query, setQuery } = useQuery();
  const theme = useColors();
  // System metrics are measured by time, not by batch.
  const look: Look = system ? { ...readLook(query), axis: 'time' } : readLook(query);
  const zoom = readRange(query.zoom);
  const ids = curves.map(({ id }) => id);
  const live = useDrawnSeries(ids, zoom);
  const { data } = live;
  const ofOthers = useSeries(others.map(({ id }) => id), MIN_POINTS, zoom, MANY_GAP_MS).data ?? NO_SERIES;
  const panels = usePanels(props, data, ofOthers, look.axis);
  const names = useMemo(() => axisNames(data ?? []), [data]);
  const { first, sections, opened } = shownOf(panels, query, system);
  const open = sections.filter(opened);
  // Few charts fill a wide page without a table.
  const roomy = (single || keyed) && !system && !query.size && first.length <= ROOMY_PANELS && matchMedia(WIDE).matches;
  const size: Size = roomy ? 'roomy' : (look.size ?? 'medium');
  const [grid, filled] = useFilled(HEIGHTS[size], first.length, SECTION_HEIGHT * sections.length, query.size || system || open.length > 0);
  const { height, resize } = useHeight(filled);
  // A range that was chosen is shown with all its values.
  const drawnLook: Look = { ...look, size, height, whole: look.whole || system || zoom !== undefined };
  const pace = useMemo(() => (single && !system && !ended ? paceText(data ?? []) : ''), [data, single, ended]);
  const paced = curves.filter(({ isPaced }) => isPaced).map(({ id }) => id);
  const paces = useMemo(() => paceText((data ?? []).filter(({ trialId }) => paced.includes(trialId))), [data, paced.join()]);
  const uneven = useMemo(() => (single && !system ? unevenGpu(data ?? []) : undefined), [data, single]);
  const plain = useMemo(() => colorOfSeed(ids[0] ?? 0), [theme, ids[0]]);
  const colors = curves.map(({ color }) => color || plain);
  // Charts beside and below each other have one x axis.
  const domain = rangeOf(zoom !== undefined, [...first, ...open.flatMap((section) => section.panels)]);
  const tags = curves.map(({ tag = '' }) => tag);
  const shared = {
    look: drawnLook,
    domain,
    colors: groups?.colors ?? colors,
    tags: groups ? groups.tags : single || system ? undefined : tags,
    text: system ? machineText : undefined,
    trials: groups || single ? undefined : curves.length,
    resize,
  };
  const draw = (own: readonly Panel[], host?: { current: HTMLDivElement | null }) => <Charts panels={own} shared={shared} size={size} objective={objective} host={host} zoomed={zoom !== undefined} />;
  return (
    <section aria-label={system ? 'Machine' : 'Metrics'}>
      <Tools {...props} panels={panels} shown={[...first, ...open.flatMap((one) => one.panels)]} look={look} names={names} zoomed={zoom !== undefined}>
        {!onPhone() && <UnevenNote found={uneven} />}
        {pace !== '' && (
          <span class="quiet pace" title={PACE}>
            {pace}
          </span>
        )}
      </Tools>
      {onPhone() && <UnevenNote found={uneven} />}
      <ErrorNote error={live.error} retry={live.reload} />
      {data && panels.length === 0 && <Nothing axis={look.axis} system={system} ended={ended} />}
      {!data && !live.error && <Ghosts size={size} />}
      {panels.length > 0 && groups && <GroupKey {...groups} panels={panels} beside={!keyed} />}
      {panels.length > 0 && !groups && curves.length > 1 && <TrialKey curves={curves} panels={panels} beside={!keyed} narrow={onPhone()} notes={keyNotes(others.length, paces && `${pacedText(paced.length, running)}: ${paces}`)} />}
      {query.find && panels.length > 0 && first.length === 0 && <p class="quiet">No metric is called {query.find}.</p>}
      {draw(first, grid)}
      {sections.map((section) => (
        <ChartSection
          key={section.key}
          section={section}
          open={opened(section)}
          toggle={() => setQuery({ open: [...open.filter((one) => one !== section), ...(opened(section) ? [] : [section])].map(({ key }) => key).join() || ',' })}
          draw={draw}
        />
      ))}
    </section>
  );
}
