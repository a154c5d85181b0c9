// One metric panel drawn by uPlot: size, theme colors, live data, range selection, values at the pointer. Does not
// fetch.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { duration, metric } from '../format';
import { faint, seriesColors, themeColor, useColors } from '../colors';
import { Swatch } from '../components/Swatch';
import { HoverValues, hoverRows, nearest, type Hover } from './hover';
import { onGrid, smooth, type Axis, type Panel } from './series';

// Space above the highest line, for half of an axis label.
const TOP_PADDING = 8;
const HEIGHT = 240;
// With more series the text alternative names only their number, and long series are drawn on a grid.
const NAMED_SERIES = 6;
// Dots mark the points of few short series only: they would hide the lines.
const DOTTED_SERIES = 16;
const DOTTED_POINTS = 8;
// Cells of the x axis for many series: about one per pixel of a wide chart.
const GRID_CELLS = 1200;

export interface Look {
  axis: Axis;
  log: boolean;
  smoothing: number; // weight of the past, in [0, 1)
}

interface Props {
  panel: Panel;
  look: Look;
  trials: number; // number of trials on the page; a trial has the same color in every panel
  zoom: (from: number, to: number) => void; // in axis units
  text?: ((name: string, value: number) => string) | undefined; // formats a value; default: digits
}

const onAxis = (axis: Axis, value: number): string =>
  axis === 'time' ? duration(value) : metric(Number(value.toPrecision(8)));

const along = (places: ArrayLike<number> | undefined, min: number, max: number): uPlot.Range.MinMax => {
  const only = places?.length === 1 ? places[0] : undefined;
  return only === undefined ? [min, max] : [Math.min(0, only), Math.max(0, only) || 1];
};

// The range of the y axis, with a margin.
function around(min: number | null, max: number | null): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (min !== max) return uPlot.rangeNum(min, max, 0.1, true);
  const room = Math.abs(min) / 10 || 1;
  return [min - room, max + room];
}

// Colors of the panel's series: by trial, or by group when there is one trial.
const colorsOf = ({ panel, trials }: Pick<Props, 'panel' | 'trials'>): string[] => {
  const colors = seriesColors(trials > 1 ? trials : panel.series.length);
  return panel.series.map((series, at) => colors[trials > 1 ? series.place : at] ?? '');
};

const isDashed = ({ trials }: Pick<Props, 'trials'>, group: string): boolean => trials > 1 && group !== 'training';

const isHovered = (plot: uPlot): boolean => plot.over.matches(':hover');

function options(props: Props, width: number, hover: (at: Hover | undefined) => void): uPlot.Options {
  const { panel, look, zoom, text } = props;
  const format = (value: number | null): string => (value == null ? '' : text ? text(panel.name, value) : metric(value));
  const axis = { stroke: themeColor('--text-dim'), font: "12px 'Geist Variable', system-ui, sans-serif" };
  const grid = { stroke: themeColor('--line'), width: 1 };
  const colors = colorsOf(props);
  const card = themeColor('--card');
  const count = panel.series.length;
  const dotted = count <= DOTTED_SERIES;
  let focused: number | undefined;
  const lines = panel.series.map((series, i) => ({
    label: series.label,
    stroke: colors[i],
    width: 1.5,
    dash: isDashed(props, series.group) ? [5, 3] : undefined,
    points: { show: dotted && series.x.length <= DOTTED_POINTS, size: 5, fill: colors[i] },
  }));
  // Unsmoothed lines, behind the smoothed ones.
  const raw = look.smoothing > 0 ? lines.map((line) => ({ ...line, stroke: faint(line.stroke ?? ''), width: 1 })) : [];
  return {
    width,
    height: HEIGHT,
    padding: [TOP_PADDING, null, null, null],
    cursor: {
      // Panels of one page show the same batch under the pointer. Their units differ, so y has no line.
      sync: { key: 'metrics' },
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { size: 7, stroke: card, fill: (_: uPlot, i: number) => colors[i - 1] ?? card },
      dataIdx: (plot: uPlot, i: number, at: number) =>
        (i > count ? null : nearest(plot.data[0], plot.data[i] ?? [], at)) as number,
      focus: {
        prox: count > 1 ? 24 : -1,
        dist: (plot: uPlot, i: number, _at: number, value: number, pointer: number) =>
          i <= count && isHovered(plot) ? value - pointer : Infinity,
      },
    },
    focus: { alpha: 0.25 },
    legend: { show: false },
    // A single point lies at the right end of the x axis and in the middle of the y axis.
    scales: {
      x: { time: false, range: (plot: uPlot, min: number, max: number) => along(plot.data[0], min, max) },
      y: look.log ? { distr: 3 } : { range: (_: uPlot, min: number, max: number) => around(min, max) },
    },
    axes: [
      {
        ...axis,
        grid,
        ticks: grid,
        label: look.axis,
        labelFont: axis.font,
        labelSize: 18,
        size: 34,
        values: (_, ticks) => ticks.map((v) => onAxis(look.axis, v)),
      },
      // The axis is as wide as its longest label.
      {
        ...axis,
        grid,
        ticks: grid,
        size: (_: uPlot, words: string[] | null) => Math.max(62, 20 + 7 * Math.max(0, ...(words ?? []).map((word) => word.length))),
        values: (_, ticks) => ticks.map(format),
      },
    ],
    series: [{ label: look.axis }, ...lines, ...raw],
    hooks: {
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
      setSeries: [(_: uPlot, at: number | null) => (focused = at === null ? undefined : at - 1)],
      setCursor: [
        (plot: uPlot) => {
          const { left = -1, top = 0, idx } = plot.cursor;
          const x = idx == null ? undefined : plot.data[0][idx];
          if (left < 0 || x === undefined || !isHovered(plot)) return hover(undefined);
          hover({
            left: left + plot.over.offsetLeft,
            top: top + plot.over.offsetTop,
            width: plot.width,
            title: `${look.axis} ${onAxis(look.axis, x)}`,
            rows: hoverRows(plot.data, plot.cursor.idxs ?? [], panel, focused).map((row) => ({
              label: row.label,
              color: colors[row.at] ?? '',
              focused: row.at === focused,
              value: format(row.value),
              raw: row.raw === undefined ? '' : format(row.raw),
            })),
          });
        },
      ],
    },
  };
}

// A position without a value is `undefined` (the line passes over it). A value that is not finite, or not
// positive on a logarithmic axis, is null (a gap).
function toData(panel: Panel, look: Look): uPlot.AlignedData {
  const drawable = (y: (number | null)[]): (number | null)[] => (look.log ? y.map((v) => (v !== null && v > 0 ? v : null)) : y);
  const smoothed = panel.series.map(({ x, y }) => ({ x, y: drawable(smooth(y, look.smoothing)) }));
  const raw = look.smoothing > 0 ? panel.series.map(({ x, y }) => ({ x, y: drawable(y) })) : [];
  const tables = [...smoothed, ...raw];
  const points = tables.reduce((sum, { x }) => sum + x.length, 0);
  if (panel.series.length > NAMED_SERIES && points > GRID_CELLS) return onGrid(tables, GRID_CELLS) as uPlot.AlignedData;
  return uPlot.join(tables.map(({ x, y }) => [x, y] as uPlot.AlignedData));
}

// Text alternative of the chart for screen readers.
export function summary(panel: Panel): string {
  if (panel.series.length > NAMED_SERIES) return `Chart of ${panel.name}: ${panel.series.length} series`;
  const parts = panel.series.map(({ label, y, steps }) => {
    const last = y.length - 1;
    return `${label} ${metric(y[last] ?? 'NaN')} at batch ${steps[last]}`;
  });
  return `Chart of ${panel.name}: ${parts.join('; ')}`;
}

// The key of a panel with one trial. Panels of several trials share the key of the page.
function Key({ panel, trials }: Pick<Props, 'panel' | 'trials'>) {
  if (trials > 1 || panel.series.length < 2) return null;
  const colors = colorsOf({ panel, trials });
  return (
    <ul class="plain-list legend">
      {panel.series.map((series, at) => (
        <li key={series.label}>
          <Swatch color={colors[at] ?? ''} /> {series.label}
        </li>
      ))}
    </ul>
  );
}

export function MetricChart(props: Props) {
  const { panel, look, trials } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const hover = useSignal<Hover | undefined>(undefined);
  const colors = useColors();
  const shape = [...panel.series.map(({ label }) => label), colors, trials, look.axis, look.log, look.smoothing > 0].join('\n');
  const latest = useRef(props);
  latest.current = props;

  // Drawn in a layout effect, so that the chart appears in the same frame as its figure.
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const width = (): number => Math.max(200, element.clientWidth);
    const { panel: now, look: how } = latest.current;
    plot.current = new uPlot(
      options(
        { ...latest.current, zoom: (from, to) => latest.current.zoom(from, to) },
        width(),
        (at) => (hover.value = at),
      ),
      toData(now, how),
      element,
    );
    const resize = new ResizeObserver(() => {
      if (plot.current && plot.current.width !== width())
        plot.current.setSize({ width: width(), height: HEIGHT });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useLayoutEffect(() => plot.current?.setData(toData(panel, look)), [panel, look.smoothing]);

  const range = `${panel.series[0]?.steps[0]}-${panel.series[0]?.steps.slice(-1)[0]}`;
  return (
    <figure class="chart" aria-label={summary(panel)} data-panel={panel.name} data-range={range}>
      <figcaption>{panel.name}</figcaption>
      <div class="plot" aria-hidden="true">
        <div ref={host} />
        <HoverValues at={hover.value} />
      </div>
      <Key panel={panel} trials={trials} />
    </figure>
  );
}
