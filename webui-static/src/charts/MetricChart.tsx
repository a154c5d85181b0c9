// One metric panel drawn by uPlot: size, theme colors, live data, and what the table points at. Does not fetch.
import { effect, useSignal, type Signal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { digits } from '../format';
import { useColors } from '../colors';
import { hovered } from '../workbench/selection';
import { ChartTitle, summary } from './ChartTitle';
import { paleOf } from './behind';
import { isBanded, isBelow, rateRange } from './facts';
import { focusOf, steadiness, type Focus } from './focus';
import { Grip } from './Grip';
import { highlight, MANY_SERIES } from './highlight';
import { HoverValues, type Hover } from './hover';
import { colorsAreTrials, DIMMED, hasDots, heightOf, isHovered, options, type ChartProps, type Ranges } from './plot';
import { NO_PLACE, onAxis, onGrid, smooth, smoothCentered, type Look, type Panel, type Series } from './series';

// Pixels that a full screen keeps for the caption.
const FULL_MARGIN = 72;
// More long series are drawn on a grid.
const GRID_SERIES = 6;
// Cells of the x axis for many series: about one per pixel of a wide chart.
const GRID_CELLS = 1200;

// The runs of groups count like other curves where a chart is cropped; of trials that are not shown only the ends do.
const withRuns = ({ series }: Panel, pale: readonly Series[]): Pick<Panel, 'series' | 'behind'> => ({
  series: [...series, ...pale.filter(({ place }) => place !== NO_PLACE)],
  behind: pale.filter(({ place }) => place === NO_PLACE),
});

// Charts with a dark curve behind the others.
const pointed = new WeakSet<uPlot>();

// Dims all series but those of one trial.
function point(plot: uPlot, panel: Panel, trial: number | undefined): void {
  const known = panel.series.some((series) => series.trial === trial);
  if (panel.series.length > MANY_SERIES) return highlight(plot, known ? panel.series.flatMap((series, at) => (series.trial === trial ? [at + 1] : [])) : []);
  // The curve of a trial behind the others is drawn dark.
  const isBehind = panel.behind?.some((one) => one.trial === trial) ?? false;
  let changed = isBehind || pointed.has(plot);
  if (isBehind) pointed.add(plot);
  else pointed.delete(plot);
  plot.series.forEach((series, at) => {
    const own = panel.series[(at - 1) % panel.series.length];
    const alpha = at === 0 || !known || own?.trial === trial ? 1 : DIMMED;
    changed ||= series.alpha !== alpha;
    series.alpha = alpha;
  });
  if (!changed) return;
  plot.over.querySelectorAll<HTMLElement>('.u-cursor-pt').forEach((dot, at) => (dot.style.opacity = String(plot.series[at + 1]?.alpha ?? 1)));
  plot.redraw(false, false);
}

// One trial with one point of each curve: a plot would say less than the values.
const isPoint = ({ series }: Panel): boolean => series.every(({ x, trial }) => x.length === 1 && trial === series[0]?.trial);

function PointValues({ panel, look, text }: Pick<ChartProps, 'panel' | 'look' | 'text'>) {
  return (
    <dl class="point-values">
      {panel.series.map((one) => (
        <div key={one.label}>
          <dd>{text ? text(panel.name, one.y[0] ?? NaN) : digits(one.y[0] ?? undefined)}</dd>
          <dt class="quiet">
            {one.group}, {look.axis} {onAxis(look.axis, one.x[0] ?? 0)}
          </dt>
        </div>
      ))}
    </dl>
  );
}

// A position without a value is `undefined` (the line passes over it). A value that is not finite, or not
// positive on a logarithmic axis, is null (a gap).
function toData({ panel, look, focus }: Pick<Drawn, 'panel' | 'look' | 'focus'>): uPlot.AlignedData {
  const drawable = (y: (number | null)[]): (number | null)[] => (look.log ? y.map((v) => (v !== null && v > 0 ? v : null)) : y);
  const { smoothing = 0 } = look;
  const smoother = look.isCentered ? smoothCentered : smooth;
  const smoothed = panel.series.map(({ x, y }) => ({ x, y: drawable(smoother(y, smoothing)) }));
  const raw = smoothing > 0 ? panel.series.map(({ x, y }) => ({ x, y: drawable(y) })) : [];
  // uPlot draws a band that is out of sight along the edge of the plot. The nearest points that are continue it to that edge.
  const [least, most] = focus?.range ?? [-Infinity, Infinity];
  const isInSight = ({ low, high }: Series, at: number): boolean => (high?.[at] ?? most) >= least && (low?.[at] ?? least) <= most;
  const isDrawn = (one: Series, at: number): boolean => [at - 1, at, at + 1].some((near) => near >= 0 && near < one.x.length && isInSight(one, near));
  const edge = (of: 'low' | 'high') => panel.series.map((one) => ({ x: one.x, y: drawable(smoother(one[of] ?? [], smoothing)).map((value, at) => (isDrawn(one, at) ? value : null)) }));
  const tables = [...smoothed, ...raw, ...(isBanded(panel) ? [...edge('low'), ...edge('high')] : [])];
  const points = tables.reduce((sum, { x }) => sum + x.length, 0);
  if (panel.series.length > GRID_SERIES && points > GRID_CELLS) return onGrid(tables, GRID_CELLS) as uPlot.AlignedData;
  return uPlot.join(tables.map(({ x, y }) => [x, y] as uPlot.AlignedData));
}

// All that a plot shows.
type Drawn = ChartProps & Ranges;

// A change of it makes the plot again; other changes are new data or another size.
export const shapeOf = ({ panel, look, colors, tags }: Drawn, theme: string): string =>
  [
    ...panel.series.map(({ label, place, trial, x }) => `${label} ${trial} ${colors?.[place]} ${x.length === 1}`),
    tags?.join(),
    theme,
    isBanded(panel),
    hasDots(panel),
    look.axis,
    look.log,
    look.size,
    (look.smoothing ?? 0) > 0,
  ].join('\n');

// A plot that follows the width of its element and the full screen. Returns the end of it.
function followSize(element: HTMLElement, plot: uPlot, width: () => number, look: () => Look): () => void {
  const resize = new ResizeObserver(() => {
    const isFull = document.fullscreenElement?.contains(element) ?? false;
    const height = isFull ? innerHeight - FULL_MARGIN : heightOf(look());
    if (plot.width !== width() || plot.height !== height) plot.setSize({ width: width(), height });
  });
  resize.observe(element);
  return () => resize.disconnect();
}

// The plot in an element. It is made again with a new shape, and keeps the place of the pointer then.
function usePlot(drawn: Drawn, hover: Signal<Hover | undefined>): { host: { current: HTMLDivElement | null }; plot: { current: uPlot | undefined } } {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const pointer = useRef<{ left: number; top: number }>(); // in a plot that is made again
  const latest = useRef(drawn);
  latest.current = drawn;
  const theme = useColors();
  // Drawn in a layout effect, so that the chart appears in the same frame as its figure.
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const width = (): number => Math.max(200, element.clientWidth);
    const made = new uPlot(
      options(
        { ...latest.current, zoom: (from, to) => latest.current.zoom(from, to) },
        width(),
        (at) => (hover.value = at),
        () => latest.current,
      ),
      toData(latest.current),
      element,
    );
    plot.current = made;
    // The new plot knows its axes after its first drawing, which is a microtask that it has queued.
    const at = pointer.current;
    if (at) queueMicrotask(() => plot.current === made && made.setCursor(at));
    const leaveSize = followSize(element, made, width, () => latest.current.look);
    const leaveTable = effect(() => {
      const trial = hovered.value;
      // The chart below the pointer dims by itself. A pointer that jumps into it from a row of the table leaves it dim.
      if (colorsAreTrials(latest.current) && (trial === undefined || !isHovered(made))) point(made, latest.current.panel, trial);
    });
    return () => {
      leaveTable();
      leaveSize();
      const { left = -1, top = -1 } = made.cursor;
      pointer.current = left >= 0 ? { left, top } : undefined;
      made.destroy();
      plot.current = undefined;
    };
  }, [shapeOf(drawn, theme)]);
  const { panel, look, domain, focus } = drawn;
  useLayoutEffect(() => plot.current?.setData(toData(drawn)), [panel, look.smoothing, domain?.join(), focus?.range.join()]);
  useLayoutEffect(() => {
    const { current } = plot;
    if (current && current.height !== heightOf(look)) current.setSize({ width: current.width, height: heightOf(look) });
  }, [look.height]);
  return { host, plot };
}

// The part of the values that is in sight; undefined for all of them.
function useFocus({ panel, look, smallerIsBetter }: ChartProps, pale: readonly Series[]): Focus | undefined {
  const isWhole = look.log || look.whole || panel.range !== undefined;
  return useMemo(() => (isWhole ? undefined : focusOf(withRuns(panel, pale), smallerIsBetter, look.smoothing)), [panel, isWhole, smallerIsBetter, look.smoothing]);
}

export function MetricChart(props: ChartProps) {
  const { panel } = props;
  // The smoothing of noisy curves without a choice; 0 for others.
  const steady = useMemo(() => (props.look.smoothing === undefined ? steadiness(panel) : 0), [panel, props.look.smoothing]);
  const rates = useMemo(() => (props.look.log === undefined ? rateRange(panel) : undefined), [panel, props.look.log]);
  const look: Look = { ...props.look, log: props.look.log ?? rates !== undefined, ...(steady > 0 ? { smoothing: steady, isCentered: true } : {}) };
  const pale = useMemo(() => paleOf(panel, look), [panel, look.smoothing, look.isCentered]);
  const focus = useFocus({ ...props, look }, pale);
  const hover = useSignal<Hover | undefined>(undefined);
  const { host, plot } = usePlot({ ...props, look, focus, rates, isBelow: rates !== undefined && isBelow(panel, rates), pale }, hover);
  const range = `${panel.series[0]?.steps[0]}-${panel.series[0]?.steps.slice(-1)[0]}`;
  return (
    <figure class="chart" aria-label={summary(panel)} data-panel={panel.name} data-range={range}>
      <ChartTitle {...props} focus={focus} rates={rates} steady={steady} canvas={() => plot.current?.ctx.canvas} />
      {isPoint(panel) ? (
        <PointValues {...props} />
      ) : (
        <div class="plot" aria-hidden="true" onPointerLeave={() => (hovered.value = undefined)}>
          <div ref={host} />
          <HoverValues at={hover.value} />
        </div>
      )}
      {props.resize && <Grip {...props.resize} />}
    </figure>
  );
}
