// One metric panel drawn by uPlot: size, theme colors, live data, range selection, values at the pointer. Does not
// fetch.
import { effect, useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { axisNumber, axisTexts, digits } from '../format';
import { faint, seriesColors, themeColor, useColors } from '../colors';
import { hovered } from '../workbench/selection';
import { ChartTitle, summary } from './ChartTitle';
import { drawBehind, paleOf, withPale } from './behind';
import { drawEnds, idBeside, roomFor } from './ends';
import { dashOf, isBanded } from './facts';
import { focusOf, steadiness, type Focus } from './focus';
import { Grip, type Resize } from './Grip';
import { highlight, MANY_SERIES } from './highlight';
import { HoverValues, hoverRows, nearest, type Hover } from './hover';
import { HEIGHTS, NO_PLACE, onAxis, onGrid, smooth, smoothCentered, tickTexts, TIME_STEPS, type Look, type Panel, type Series } from './series';

// Space above the highest line, for half of an axis label.
const TOP_PADDING = 8;
// Pixels that a full screen keeps for the caption.
const FULL_MARGIN = 72;
// More long series are drawn on a grid.
const GRID_SERIES = 6;
// Dots mark the points of few short series only: they would hide the lines.
const DOTTED_SERIES = 16;
const DOTTED_POINTS = 8;
// Opacity of curves beside the one that is pointed at.
const DIMMED = 0.4;
// Pixels of the y axis with labels of usual length: plots beside each other have one width. Pixels right of the plot.
const Y_AXIS = 56;
const RIGHT = 16;
// Least pixels between ticks of the x axis. Batches are whole.
const X_SPACE = 48;
const WHOLE_STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 2.5, 5].map((digit) => digit * 10 ** power)).flat().filter(Number.isInteger);
// Cells of the x axis for many series: about one per pixel of a wide chart.
const GRID_CELLS = 1200;

// Opacity of a band and of its edges, which tell bands that overlap apart. That of unsmoothed lines.
const BAND = 0.1;
const EDGE = 0.45;
const RAW = 0.16;
const QUIET = 0.5;

const heightOf = ({ size = 'medium', height = HEIGHTS[size] }: Look): number => height;

export interface ChartProps {
  panel: Panel;
  look: Look;
  colors: readonly string[] | undefined; // by place: a trial has the same color in every panel; undefined: the first one
  tags?: readonly string[] | undefined; // by place: short names at the ends of the curves
  zoom: (from: number, to: number) => void; // in axis units
  domain?: readonly [number, number] | undefined; // of the x axis; default: that of the panel
  trials?: number | undefined; // that are drawn; some may not have the metric
  smallerIsBetter?: boolean | undefined; // the title of the objective's chart has its best value
  text?: ((name: string, value: number) => string) | undefined; // formats a value; default: digits
  resize?: Resize | undefined; // by its lower edge
}

// Ranges of the axes: of x as given, of y without the first values; and the curves behind the others.
type Ranges = Pick<ChartProps, 'domain'> & { focus: Focus | undefined; pale: readonly Series[] };

const along = (places: ArrayLike<number> | undefined, min: number, max: number, domain: ChartProps['domain']): uPlot.Range.MinMax => {
  if (domain && domain[0] < domain[1]) return [...domain];
  const only = places?.length === 1 ? places[0] : undefined;
  return only === undefined ? [min, max] : [Math.min(0, only), Math.max(0, only) || 1];
};

// The part of the x axis from which on curves are in sight.
const inSight = ({ domain, focus }: Pick<Ranges, 'domain' | 'focus'>): ChartProps['domain'] => (domain && focus ? [Math.max(domain[0], focus.from), domain[1]] : domain);

// The runs of groups are in sight in a cropped chart; trials that are not shown leave it to those that are.
const isOfGroup = ({ place }: Series): boolean => place !== NO_PLACE;

// The range of the y axis, with a margin.
function around(min: number | null, max: number | null): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (min !== max) return uPlot.rangeNum(min, max, 0.1, true);
  const room = Math.abs(min) / 10 || 1;
  return [min - room, max + room];
}

// With more trials, training beside validation is paler: two sets of lines would hide each other.
const LOUD_TRIALS = 4;
function quietOf({ series }: Panel): (one: Series) => boolean {
  const isMany = series.some(({ group }) => group === 'validation') && new Set(series.map(({ trial }) => trial)).size > LOUD_TRIALS;
  return ({ group }) => isMany && group !== 'validation';
}

const colorsOf = ({ panel, colors }: Pick<ChartProps, 'panel' | 'colors'>): string[] => {
  const own = colors ?? seriesColors(1);
  return panel.series.map((series) => own[series.place] ?? '');
};

const edgesOf = (element: Element | null): [number, number] => {
  const { left = 0, right = 0 } = element?.getBoundingClientRect() ?? {};
  return [left, right];
};

// By the element around the plot, which stays when the plot is made again.
const isHovered = (plot: uPlot): boolean => plot.root.closest('.plot')?.matches(':hover') ?? false;

// The x of the pointer's line in all charts.
let pointedX: number | undefined;

// The pointer's line is at the nearest point of the chart below the pointer, where the values are those of the box, and at
// the same x in the other charts; not while a range is drawn.
const snapped = (plot: uPlot, left: number, top: number): [number, number] => {
  if (left < 0 || plot.cursor.event?.buttons) return [left, top];
  const isOwn = isHovered(plot);
  if (isOwn) pointedX = plot.data[0][plot.posToIdx(left)];
  const at = pointedX === undefined ? left : plot.valToPos(pointedX, 'x');
  return [isOwn || at <= plot.bbox.width / devicePixelRatio ? at : -1, top];
};

function options(props: ChartProps, width: number, hover: (at: Hover | undefined) => void, ranges: () => Ranges): uPlot.Options {
  const { panel, look, zoom, text } = props;
  const format = (value: number | null): string => (value == null ? '' : text ? text(panel.name, value) : axisNumber(value));
  const listed = (value: number): string => (text ? text(panel.name, value) : digits(value));
  const axis = { stroke: themeColor('--text-dim'), font: "12px 'Geist Variable', system-ui, sans-serif" };
  const grid = { stroke: themeColor('--line'), width: 1 };
  const colors = colorsOf(props);
  const isQuiet = quietOf(panel);
  const [card, plain] = [themeColor('--card'), themeColor('--text-dim')];
  const count = panel.series.length;
  const dotted = count <= DOTTED_SERIES;
  const many = count > MANY_SERIES;
  const tags = props.tags ?? [];
  const tagRoom = roomFor(tags);
  let focused: number | undefined;
  const lines = panel.series.map((series, i) => ({
    label: series.label,
    stroke: isQuiet(series) ? faint(colors[i] ?? '', QUIET) : colors[i],
    width: isBanded(panel) ? 2.5 : 1.5,
    dash: dashOf(panel, series.group),
    // Points of validation are hollow.
    points: { show: series.x.length === 1 || (dotted && series.x.length <= DOTTED_POINTS), size: series.x.length === 1 ? 7 : 5, fill: series.group === 'validation' ? card : colors[i] },
  }));
  // Unsmoothed lines, behind the smoothed ones.
  const { smoothing = 0 } = look;
  const raw = smoothing > 0 ? lines.map((line) => ({ ...line, stroke: faint(line.stroke ?? '', RAW), width: 1 })) : [];
  const edges = isBanded(panel) ? [...lines, ...lines].map((line) => ({ ...line, stroke: faint(line.stroke ?? '', EDGE), width: 1, points: { show: false } })) : [];
  const low = 1 + lines.length + raw.length;
  return {
    width,
    height: heightOf(look),
    bands: edges.length === 0 ? [] : lines.map((line, i) => ({ series: [low + count + i, low + i] as [number, number], fill: faint(line.stroke ?? '', BAND) })),
    padding: [TOP_PADDING, Math.max(RIGHT, tagRoom), null, 0],
    cursor: {
      // Panels of one page show the same batch under the pointer. Their units differ, so y has no line.
      sync: { key: 'metrics' },
      y: false,
      move: snapped,
      drag: { x: true, y: false, setScale: false },
      points: { one: many, size: 7, stroke: card, fill: (_: uPlot, i: number) => colors[i - 1] ?? card },
      dataIdx: (plot: uPlot, i: number, at: number) =>
        (i > count ? null : nearest(plot.data[0], plot.data[i] ?? [], at)) as number,
      focus: {
        prox: count > 1 ? 24 : -1,
        dist: (plot: uPlot, i: number, _at: number, value: number, pointer: number) =>
          i <= count && isHovered(plot) ? value - pointer : Infinity,
      },
    },
    focus: { alpha: many ? 1 : DIMMED },
    legend: { show: false },
    // A single point lies at the right end of the x axis and in the middle of the y axis.
    scales: {
      x: { time: false, range: (plot: uPlot, min: number, max: number) => along(plot.data[0], min, max, inSight(ranges())) },
      y: look.log ? { distr: 3 } : { range: (_: uPlot, min: number, max: number) => panel.range ?? around(...(ranges().focus?.range ?? withPale([min, max], ranges().pale))) },
    },
    axes: [
      {
        ...axis,
        grid,
        ticks: grid,
        ...(look.axis === 'time' ? { incrs: TIME_STEPS } : look.axis === 'batches' ? { incrs: WHOLE_STEPS } : {}),
        space: X_SPACE,
        label: look.axis,
        labelFont: axis.font,
        labelSize: 16,
        size: 30,
        values: (_, ticks) => tickTexts(look.axis, ticks),
      },
      // Labels that are longer than usual make the axis wider.
      {
        ...axis,
        grid,
        ticks: grid,
        size: (_: uPlot, words: string[] | null) => Math.max(Y_AXIS, 18 + 7 * Math.max(0, ...(words ?? []).map((word) => word.length))),
        values: (_, ticks) => (text || look.log ? ticks.map(format) : axisTexts(ticks)),
      },
    ],
    series: [{ label: look.axis }, ...lines, ...raw, ...edges],
    hooks: {
      drawAxes: [(plot: uPlot) => drawBehind(plot, panel, ranges().pale, props.colors ?? [], plain)],
      draw: tagRoom > 0 ? [(plot: uPlot) => drawEnds(plot, panel, tags, props.colors ?? [], card)] : [],
      setSelect: [
        (plot: uPlot) => {
          if (plot.select.width < 8) return;
          zoom(
            plot.posToVal(plot.select.left, 'x'),
            plot.posToVal(plot.select.left + plot.select.width, 'x'),
          );
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      setSeries: [
        (plot: uPlot, at: number | null) => {
          focused = at === null ? undefined : at - 1;
          if (many && isHovered(plot)) highlight(plot, at === null ? [] : [at]);
          if (colorsAreTrials(props) && isHovered(plot)) hovered.value = focused === undefined ? undefined : panel.series[focused]?.trial;
        },
      ],
      setCursor: [
        (plot: uPlot) => {
          const { left = -1, idx } = plot.cursor;
          const x = idx == null ? undefined : plot.data[0][idx];
          if (left < 0 || x === undefined || !isHovered(plot)) {
            if (many && left < 0) highlight(plot, []);
            return hover(undefined);
          }
          // Without smoothing the edges of bands would follow the curves.
          const rows = hoverRows(smoothing > 0 ? plot.data : plot.data.slice(0, count + 1), plot.cursor.idxs ?? [], panel, focused);
          const heights = rows.map(({ value }) => plot.valToPos(value, 'y'));
          hover({
            left: left + plot.rect.left,
            middle: plot.rect.left + plot.rect.width / 2,
            top: plot.rect.top,
            bottom: plot.rect.bottom,
            chart: edgesOf(plot.root.closest('figure')),
            charts: edgesOf(plot.root.closest('.charts')),
            isHigh: heights.reduce((sum, one) => sum + one, 0) < (heights.length * plot.rect.height) / 2,
            title: `${look.axis} ${onAxis(look.axis, x)}`,
            rows: rows.map((row) => ({
              label: isBanded(panel) ? row.label : `${idBeside(row.label, tags[panel.series[row.at]?.place ?? -1])} ${row.label}`.trim(),
              color: colors[row.at] ?? '',
              focused: row.at === focused,
              value: listed(row.value),
              raw: row.raw === undefined ? '' : listed(row.raw),
            })),
          });
        },
      ],
    },
  };
}

// Whether a color stands for one trial, so that table and charts can point at it.
const colorsAreTrials = ({ panel, colors }: Pick<ChartProps, 'panel' | 'colors'>): boolean => colors !== undefined && !isBanded(panel);

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
function toData(panel: Panel, look: Look, focus: Focus | undefined): uPlot.AlignedData {
  const drawable = (y: (number | null)[]): (number | null)[] => (look.log ? y.map((v) => (v !== null && v > 0 ? v : null)) : y);
  const { smoothing = 0 } = look;
  const smoother = look.isCentered ? smoothCentered : smooth;
  const smoothed = panel.series.map(({ x, y }) => ({ x, y: drawable(smoother(y, smoothing)) }));
  const raw = smoothing > 0 ? panel.series.map(({ x, y }) => ({ x, y: drawable(y) })) : [];
  // uPlot draws a band that is out of sight along the edge of the plot.
  const [least, most] = focus?.range ?? [-Infinity, Infinity];
  const isInSight = ({ low, high }: Series, at: number): boolean => (high?.[at] ?? most) >= least && (low?.[at] ?? least) <= most;
  const edge = (of: 'low' | 'high') => panel.series.map((one) => ({ x: one.x, y: drawable(smoother(one[of] ?? [], smoothing)).map((value, at) => (isInSight(one, at) ? value : null)) }));
  const tables = [...smoothed, ...raw, ...(isBanded(panel) ? [...edge('low'), ...edge('high')] : [])];
  const points = tables.reduce((sum, { x }) => sum + x.length, 0);
  if (panel.series.length > GRID_SERIES && points > GRID_CELLS) return onGrid(tables, GRID_CELLS) as uPlot.AlignedData;
  return uPlot.join(tables.map(({ x, y }) => [x, y] as uPlot.AlignedData));
}

export function MetricChart(props: ChartProps) {
  const { panel } = props;
  const wasNoisy = useRef(false);
  const steady = useMemo(() => (props.look.smoothing === undefined ? steadiness(panel, wasNoisy.current) : 0), [panel, props.look.smoothing]);
  wasNoisy.current = steady > 0;
  const look: Look = steady > 0 ? { ...props.look, smoothing: steady, isCentered: true } : props.look;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const pointer = useRef<{ left: number; top: number }>(); // in a plot that is made again
  const hover = useSignal<Hover | undefined>(undefined);
  const theme = useColors();
  const shape = [
    ...panel.series.map(({ label, place, trial }) => `${label} ${trial} ${props.colors?.[place]}`),
    props.tags?.join(),
    theme,
    isBanded(panel),
    isPoint(panel),
    look.axis,
    look.log,
    look.size,
    (look.smoothing ?? 0) > 0,
  ].join('\n');
  const pale = useMemo(() => paleOf(panel, look), [panel, look.smoothing, look.isCentered]);
  const focus = useMemo(
    () => (look.log || look.whole || panel.range ? undefined : focusOf({ series: [...panel.series, ...pale.filter(isOfGroup)] }, props.smallerIsBetter, look.smoothing)),
    [panel, look.log, look.whole, look.smoothing],
  );
  const latest = useRef({ ...props, look, focus, pale });
  latest.current = { ...props, look, focus, pale };

  // Drawn in a layout effect, so that the chart appears in the same frame as its figure.
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const width = (): number => Math.max(200, element.clientWidth);
    const { panel: now, look: how, focus: near } = latest.current;
    plot.current = new uPlot(
      options(
        { ...latest.current, zoom: (from, to) => latest.current.zoom(from, to) },
        width(),
        (at) => (hover.value = at),
        () => latest.current,
      ),
      toData(now, how, near),
      element,
    );
    // The new plot knows its axes after its first drawing, which is a microtask that it has queued.
    const [made, at] = [plot.current, pointer.current];
    if (at) queueMicrotask(() => plot.current === made && made.setCursor(at));
    const resize = new ResizeObserver(() => {
      const full = document.fullscreenElement?.contains(element) ?? false;
      const height = full ? innerHeight - FULL_MARGIN : heightOf(latest.current.look);
      if (plot.current && (plot.current.width !== width() || plot.current.height !== height)) plot.current.setSize({ width: width(), height });
    });
    resize.observe(element);
    const stop = effect(() => {
      const trial = hovered.value;
      if (plot.current && colorsAreTrials(latest.current) && !isHovered(plot.current)) point(plot.current, latest.current.panel, trial);
    });
    return () => {
      stop();
      resize.disconnect();
      const { left = -1, top = -1 } = plot.current?.cursor ?? {};
      pointer.current = left >= 0 ? { left, top } : undefined;
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useLayoutEffect(() => plot.current?.setData(toData(panel, look, focus)), [panel, look.smoothing, props.domain?.join(), focus?.range.join()]);
  useLayoutEffect(() => {
    const { current } = plot;
    if (current && current.height !== heightOf(look)) current.setSize({ width: current.width, height: heightOf(look) });
  }, [look.height]);

  const range = `${panel.series[0]?.steps[0]}-${panel.series[0]?.steps.slice(-1)[0]}`;
  return (
    <figure class="chart" aria-label={summary(panel)} data-panel={panel.name} data-range={range}>
      <ChartTitle {...props} focus={focus} steady={steady} canvas={() => plot.current?.ctx.canvas} />
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
