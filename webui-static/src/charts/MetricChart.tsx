// One metric panel drawn by uPlot: size, theme colors, live data, range selection. Does not fetch.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { duration, metric } from '../format';
import { seriesColors, themeColor, useColors } from './colors';
import { onGrid, smooth, type Axis, type Panel } from './series';

// Space above the highest line, for half of an axis label.
const kAbove = 8;
const kHeight = 240;
// With more series there is no legend; the series under the pointer is named instead.
const kLegend = 6;
// With more series the points have no dots, which would cost more to draw than the lines.
const kDots = 16;
// Cells of the x axis for many series: about one per pixel of a wide chart.
const kCells = 1200;
// How many grid positions around the pointer are searched for a value.
const kNear = 40;

export interface Look {
  axis: Axis;
  log: boolean;
  smoothing: number; // weight of the past, in [0, 1)
}

interface Props {
  panel: Panel;
  look: Look;
  zoom: (from: number, to: number) => void; // in axis units
  text?: ((name: string, value: number) => string) | undefined; // formats a value; default: digits
}

// The trial under the pointer, in any chart.
export const pointed = signal<number | undefined>(undefined);

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

function options({ panel, look, zoom, text }: Props, width: number): uPlot.Options {
  const said = (value: number | null): string => (value == null ? '' : text ? text(panel.name, value) : metric(value));
  const axis = { stroke: themeColor('--text-dim'), font: '12px system-ui, sans-serif' };
  const grid = { stroke: themeColor('--line'), width: 1 };
  const trials = [...new Set(panel.series.map((one) => one.trial))];
  const one_trial = trials.length === 1;
  const places = Math.max(...panel.series.map((one) => one.place)) + 1;
  const colors = seriesColors(one_trial ? panel.series.length : places);
  const card = themeColor('--card');
  return {
    width,
    height: kHeight,
    padding: [kAbove, null, null, null],
    // Panels of one page show the same batch under the pointer.
    cursor: {
      sync: { key: 'metrics' },
      drag: { x: true, y: false, setScale: false },
      dataIdx: nearest,
      focus: { prox: panel.series.length > 1 ? 24 : -1 },
    },
    focus: { alpha: 0.25 },
    legend: { show: panel.series.length <= kLegend },
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
        size: (_: uPlot, words: string[] | null) => Math.max(62, 20 + 7 * Math.max(0, ...(words ?? []).map((one) => one.length))),
        values: (_, ticks) => ticks.map(said),
      },
    ],
    series: [
      { label: look.axis, value: (_: uPlot, v: number | null) => (v == null ? '–' : onAxis(look.axis, v)) },
      ...panel.series.map((one, i) => ({
        label: one.label,
        stroke: colors[one_trial ? i : one.place],
        width: 1.5,
        dash: !one_trial && one.group !== 'training' ? [5, 3] : undefined,
        points: { show: one.x.length < 40 && panel.series.length <= kDots, fill: card },
        value: (_: uPlot, v: number | null) => said(v) || '–',
      })),
    ],
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
      setSeries: [
        (_: uPlot, at: number | null) => {
          pointed.value = at === null ? undefined : panel.series[at - 1]?.trial;
        },
      ],
    },
  };
}

// A position without a value is `undefined` (the line passes over it). A value that is not finite, or not
// positive on a logarithmic axis, is null (a gap).
function toData(panel: Panel, look: Look): uPlot.AlignedData {
  const tables = panel.series.map((one) => {
    const y = smooth(one.y, look.smoothing);
    return { x: one.x, y: look.log ? y.map((v) => (v !== null && v > 0 ? v : null)) : y };
  });
  const points = tables.reduce((sum, one) => sum + one.x.length, 0);
  if (tables.length > kLegend && points > kCells) return onGrid(tables, kCells) as uPlot.AlignedData;
  return uPlot.join(tables.map((one) => [one.x, one.y] as uPlot.AlignedData));
}

// The position nearest to the pointer at which the series has a value. Positions are shared by all series.
function nearest(plot: uPlot, series: number, at: number): number {
  const values = plot.data[series] as (number | null | undefined)[] | undefined;
  for (let off = 0; values && off < kNear; off++) {
    if (values[at - off] != null) return at - off;
    if (values[at + off] != null) return at + off;
  }
  return at;
}

// Text alternative of the chart for screen readers.
export function summary(panel: Panel): string {
  if (panel.series.length > kLegend) return `Chart of ${panel.name}: ${panel.series.length} series`;
  const parts = panel.series.map((one) => {
    const last = one.x.length - 1;
    return `${one.label} ${metric(one.y[last] ?? 'NaN')} at batch ${one.steps[last]}`;
  });
  return `Chart of ${panel.name}: ${parts.join('; ')}`;
}

export function MetricChart(props: Props) {
  const { panel, look } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const colors = useColors();
  const shape = [...panel.series.map((one) => one.label), colors, look.axis, look.log].join('\n');
  const latest = useRef(props);
  latest.current = props;

  // Drawn in a layout effect, so that the chart appears in the same frame as its figure.
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const width = (): number => Math.max(200, element.clientWidth);
    const { panel: now, look: how } = latest.current;
    plot.current = new uPlot(
      options({ ...latest.current, zoom: (from, to) => latest.current.zoom(from, to) }, width()),
      toData(now, how),
      element,
    );
    const resize = new ResizeObserver(() => {
      if (plot.current && plot.current.width !== width())
        plot.current.setSize({ width: width(), height: kHeight });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useLayoutEffect(() => plot.current?.setData(toData(panel, look)), [panel, look.smoothing]);

  const many = panel.series.length > kLegend;
  const range = `${panel.series[0]?.steps[0]}-${panel.series[0]?.steps.slice(-1)[0]}`;
  return (
    <figure class="chart" aria-label={summary(panel)} data-panel={panel.name} data-range={range}>
      <figcaption>
        {panel.name}
        {many && pointed.value !== undefined && <span class="quiet"> trial {pointed.value}</span>}
      </figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  );
}
