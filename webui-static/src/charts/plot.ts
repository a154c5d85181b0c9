// uPlot's options for a metric panel: ranges, styles of lines, axes, and the values at the pointer.
import uPlot from 'uplot';
import { axisNumber, axisTexts, digits } from '../format';
import { faint, seriesColors, themeColor } from '../colors';
import { hovered } from '../workbench/selection';
import { drawBehind, withPale } from './behind';
import { drawEnds, idBeside, roomFor, shortTags } from './ends';
import { isBanded, isLoud, isOfOne, judged, placeOfBest, styleOf } from './facts';
import type { Focus } from './focus';
import type { Resize } from './Grip';
import { highlight, MANY_SERIES } from './highlight';
import { hoverRows, nearest, sizeOf, type Hover } from './hover';
import { HEIGHTS, onAxis, tickTexts, TIME_STEPS, uniform, type Look, type Panel, type Series } from './series';
import { unitOf } from './spent';

// Space above the highest line, for half of an axis label.
const TOP_PADDING = 8;
// Dots mark the points of few series that are all short: they would hide the lines.
const DOTTED_SERIES = 16;
const DOTTED_POINTS = 8;
// Opacity of curves beside the one that is pointed at.
export const DIMMED = 0.4;
// Pixels of the y axis with labels of usual length: plots beside each other have one width. Pixels right of the plot.
const Y_AXIS = 56;
const RIGHT = 16;
// Least pixels between ticks of the axes. Batches are whole.
const X_SPACE = 48;
const Y_SPACE = 26;
const WHOLE_STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 2.5, 5].map((digit) => digit * 10 ** power)).flat().filter(Number.isInteger);

// Least pixels of a range that the pointer draws.
const LEAST_ZOOM = 8;

// Opacity of a band and of its edges, which tell bands that overlap apart. That of unsmoothed lines.
const BAND = 0.14;
const EDGE = 0.45;
const RAW = 0.12;
const RAW_OF_ONE = 0.4;
// Means of groups are this much wider than curves of runs, and dashed where some of these have ended.
const MEAN = 1.7;
const PARTIAL = [5, 3];

export const heightOf = ({ size = 'medium', height = HEIGHTS[size] }: Look): number => height;

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

// Ranges of the axes: of x as given, of y that of the panel, without the first values, or that of learning rates, with curves
// below it or not; and the curves behind the others.
export type Ranges = Pick<ChartProps, 'domain' | 'panel'> & { focus: Focus | undefined; rates: [number, number] | undefined; isBelow: boolean; pale: readonly Series[] };

const along = (places: ArrayLike<number> | undefined, min: number, max: number, domain: ChartProps['domain']): uPlot.Range.MinMax => {
  if (domain && domain[0] < domain[1]) return [...domain];
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

// The largest value does not lie on the edge.
const ABOVE = 1.02;

// The range of a logarithmic y axis, rounded to one digit; without values it has none.
function magnitudes([min, max]: readonly [number | null, number | null]): uPlot.Range.MinMax {
  if (min === null || max === null || min <= 0) return [null, null];
  const rounded = (value: number, to: (number: number) => number): number => {
    const power = 10 ** Math.floor(Math.log10(value));
    return to(Number((value / power).toPrecision(6))) * power;
  };
  const [low, high] = [rounded(min, Math.floor), rounded(ABOVE * max, Math.ceil)];
  return low < high ? [low, high] : [low, 2 * high];
}

// The range of the y axis for values from `min` to `max`.
export const rangeOfY = (isLog: boolean | undefined, { panel, rates, focus, pale }: Ranges, min: number, max: number): uPlot.Range.MinMax =>
  isLog ? magnitudes(rates ?? withPale([min, max], pale, 0)) : (panel.range ?? around(...(focus?.range ?? withPale([min, max], pale))));

// Ticks of a logarithmic axis with a line and a text: powers of ten, for at most this many of them also 2 and 5 times
// these, and all of a part of a power.
const FEW_POWERS = 3;
function marked(_: uPlot, ticks: readonly number[]): (number | null)[] {
  const powers = Math.log10((ticks[ticks.length - 1] ?? 1) / (ticks[0] ?? 1));
  const digits = powers <= FEW_POWERS ? [1, 2, 5] : [1];
  const found = ticks.map((tick) => (digits.includes(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9))) ? tick : null));
  return found.filter((tick) => tick !== null).length > 1 ? found : [...ticks];
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
export const isHovered = (plot: uPlot): boolean => plot.root.closest('.plot')?.matches(':hover') ?? false;

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

// Whether a color stands for one trial, so that table and charts can point at it.
export const colorsAreTrials = ({ panel, colors }: Pick<ChartProps, 'panel' | 'colors'>): boolean => colors !== undefined && !isBanded(panel);

// Whether the points of all lines have dots.
export const hasDots = ({ series }: Pick<Panel, 'series'>): boolean => series.length <= DOTTED_SERIES && series.every(({ x }) => x.length <= DOTTED_POINTS);

// Lines of a panel between pixels, at most: on whole pixels a slow decay has steps. More lines are drawn on pixels, which
// leaves out points.
const FINE_SERIES = 16;

// The lines of a panel, with smoothing also the unsmoothed ones behind them, and the bands of groups between their edges.
function linesOf({ panel, look: { smoothing = 0 } }: ChartProps, colors: readonly string[], card: string): { lines: uPlot.Series[]; bands: uPlot.Band[] } {
  const count = panel.series.length;
  const isDotted = hasDots(panel);
  const wider = isBanded(panel) ? MEAN : 1;
  const styles = new Map(panel.series.map(({ group }) => [group, styleOf(panel, group)]));
  const own = panel.series.map((series, i) => {
    const { width = 1, opacity = 1, dash } = styles.get(series.group) ?? {};
    const ink = (part: number): string => (part < 1 ? faint(colors[i] ?? '', part) : (colors[i] ?? ''));
    return {
      label: series.label,
      ink: (part: number) => ink(part * opacity),
      stroke: ink(opacity),
      width: width * wider,
      pxAlign: count <= FINE_SERIES ? 0 : 1,
      dash: series.isPartial ? PARTIAL : dash,
      // Points of validation are hollow.
      points: { show: series.x.length === 1 || isDotted, size: series.x.length === 1 ? 7 : 5, fill: series.group === 'validation' ? card : colors[i] },
    };
  });
  const raw = smoothing > 0 ? own.map((line) => ({ ...line, stroke: line.ink(isOfOne(panel) ? RAW_OF_ONE : RAW), width: 1 })) : [];
  if (!isBanded(panel)) return { lines: [...own, ...raw], bands: [] };
  const edges = [...own, ...own].map((line) => ({ ...line, stroke: line.ink(EDGE), width: 1, dash: [], points: { show: false } }));
  const low = 1 + count + raw.length;
  const bands = own.map((line, i): uPlot.Band => ({ series: [low + count + i, low + i], fill: line.ink(BAND) }));
  return { lines: [...own, ...raw, ...edges], bands };
}

function axesOf({ panel, look, text }: ChartProps): uPlot.Axis[] {
  const grid = { stroke: themeColor('--line'), width: 1 };
  const axis = { stroke: themeColor('--text-dim'), font: "12px 'Geist Variable', system-ui, sans-serif", grid, ticks: grid };
  // All ticks have the unit of the largest one.
  const texts = (ticks: readonly (number | null)[]): string[] => {
    const [size, unit] = (text && unitOf(panel.name, Math.max(...ticks.map((tick) => tick ?? 0)))) ?? [1, ''];
    const scaled = ticks.map((tick) => (tick === null ? null : tick / size));
    return (look.log ? uniform(scaled, axisNumber) : axisTexts(scaled as number[])).map((one) => (one === '' ? '' : one + unit));
  };
  return [
    {
      ...axis,
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
      ...(look.log ? { filter: marked, grid: { ...grid, filter: marked }, ticks: { ...grid, filter: marked } } : {}),
      space: Y_SPACE,
      size: (_, words: string[] | null) => Math.max(Y_AXIS, 18 + 7 * Math.max(0, ...(words ?? []).map((word) => word.length))),
      values: (_, ticks) => texts(ticks),
    },
  ];
}

// Dots of training beside validation are hollow: a line of this width.
const HOLLOW = 1.5;
function cursorOf(panel: Panel, colors: readonly string[], card: string): uPlot.Cursor {
  const count = panel.series.length;
  const isHollow = panel.series.map(({ group }) => !isLoud(styleOf(panel, group)));
  const ink = (i: number): string => colors[i - 1] ?? card;
  return {
    // Panels of one page show the same batch under the pointer. Their units differ, so y has no line.
    sync: { key: 'metrics' },
    y: false,
    move: snapped,
    drag: { x: true, y: false, setScale: false },
    points: { one: count > MANY_SERIES, size: 7, width: (_, i) => (isHollow[i - 1] ? HOLLOW : 0), stroke: (_, i) => (isHollow[i - 1] ? ink(i) : card), fill: (_, i) => (isHollow[i - 1] ? card : ink(i)) },
    dataIdx: (plot, i, at) => (i > count ? null : nearest(plot.data[0], plot.data[i] ?? [], at)) as number,
    focus: {
      prox: count > 1 ? 24 : -1,
      dist: (plot, i, _at, value, pointer) => (i <= count && isHovered(plot) ? value - pointer : Infinity),
    },
  };
}

// The tags of the curves that end before the pointer.
function endedBefore(plot: uPlot, { panel, tags = [] }: Pick<ChartProps, 'panel' | 'tags'>): string[] {
  const { idx, idxs = [] } = plot.cursor;
  const isBefore = (series: number): boolean => idxs[series] == null && Array.prototype.slice.call(plot.data[series], 0, idx ?? 0).some((value) => value != null);
  const ended = panel.series.flatMap(({ place }, at) => (isBefore(at + 1) ? (tags[place] ?? []) : []));
  return ended.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

// Columns and curves that are looked at for the room beside the pointer.
const LOOKED_AT = 40;
const MAX_LOOKED_AT = 32;

// Pixels without curves at the top and at the bottom of a plot between two places of its x axis.
function freeBetween(plot: uPlot, count: number, from: number, to: number): [number, number] {
  const { height } = plot.rect;
  const [first, last] = [plot.posToIdx(Math.max(0, from)), plot.posToIdx(Math.max(0, to))];
  const [step, every] = [Math.max(1, Math.ceil((last - first) / LOOKED_AT)), Math.max(1, Math.ceil(count / MAX_LOOKED_AT))];
  let [top, bottom] = [height, 0];
  for (let one = 1; one <= count; one += every)
    for (let at = first; at <= last; at += step) {
      const value = plot.data[one]?.[at];
      const y = value == null ? -1 : plot.valToPos(value, 'y');
      if (y >= 0 && y <= height) [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  return [top, height - bottom];
}

// The label of a curve at the pointer: in a narrow chart its tag, as at the end of the curve.
function hoverLabel({ panel, tags = [] }: Pick<ChartProps, 'panel' | 'tags'>, at: number, label: string, isNarrow: boolean): string {
  const { place = -1, isPartial = false } = panel.series[at] ?? {};
  const tag = tags[place] ?? '';
  if (isNarrow && tag !== '') return isPartial ? `${tag}, some ended` : tag;
  return isBanded(panel) ? label : `${idBeside(label, tags[place])} ${label}`.trim();
}

// Charts that are narrower have tags at the pointer in place of names, which a table or a key has.
const NARROW = 480;

// The values at the pointer, which is at this x; `focused` is the index of the curve that is pointed at.
function valuesAt(plot: uPlot, x: number, props: ChartProps, colors: readonly string[], focused: number | undefined): Hover {
  const { panel, look, text } = props;
  const { rect, root, cursor } = plot;
  const count = panel.series.length;
  const listed = (value: number | undefined): string => (value === undefined ? '' : text ? text(panel.name, value) : digits(value));
  // Without smoothing the edges of bands would follow the curves.
  const data = (look.smoothing ?? 0) > 0 ? plot.data : plot.data.slice(0, count + 1);
  const [left, right] = edgesOf(root.closest('figure'));
  const isNarrow = right - left < NARROW;
  const at = `${look.axis} ${onAxis(look.axis, x)}`;
  const pointed = cursor.left ?? 0;
  const shown = {
    title: isNarrow ? at : `${panel.title ?? panel.name} · ${at}`,
    ended: endedBefore(plot, props),
    gray: isBanded(panel) ? 0 : new Set(panel.behind?.map(({ trial }) => trial)).size,
    rows: hoverRows(data, cursor.idxs ?? [], panel, focused).map((row) => ({
      label: hoverLabel(props, row.at, row.label, isNarrow),
      color: colors[row.at] ?? '',
      isFocused: row.isFocused,
      value: listed(row.value),
      raw: listed(row.raw),
    })),
  };
  const { width } = sizeOf(shown);
  return {
    ...shown,
    left: pointed + rect.left,
    plot: { left: rect.left, right: rect.left + rect.width, top: rect.top, bottom: rect.top + rect.height },
    right,
    free: { left: freeBetween(plot, count, pointed - width, pointed), right: freeBetween(plot, count, pointed, pointed + width) },
  };
}

// A ring around the best value of a single run.
const RING = 4;
function drawBest(plot: uPlot, { panel, look, smallerIsBetter }: ChartProps, colors: readonly string[], card: string): void {
  const { ctx, bbox, data } = plot;
  const own = isOfOne(panel) && !look.smoothing ? judged(panel) : undefined;
  if (!own || smallerIsBetter === undefined) return;
  const series = panel.series.indexOf(own);
  const values = Array.from(data[series + 1] ?? [], (value) => value ?? null);
  const at = placeOfBest({ y: values }, smallerIsBetter) ?? 0;
  const [x, y] = [plot.valToPos(data[0][at] ?? 0, 'x', true), plot.valToPos(values[at] ?? NaN, 'y', true)];
  if (!(x >= bbox.left && x <= bbox.left + bbox.width && y >= bbox.top && y <= bbox.top + bbox.height)) return;
  ctx.save();
  ctx.beginPath();
  ctx.arc(x, y, RING * devicePixelRatio, 0, 2 * Math.PI);
  ctx.fillStyle = card;
  ctx.strokeStyle = colors[series] ?? '';
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

// A dotted edge of the plot, beyond which its curves go on.
const DOTS = [1, 3];
function drawCut({ ctx, bbox }: uPlot, { focus, isBelow }: Ranges, color: string): void {
  if (!focus && !isBelow) return;
  const y = bbox.top + (focus && focus.beyond > focus.range[1] ? 0 : bbox.height);
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(DOTS.map((length) => length * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

type ShowHover = (at: Hover | undefined) => void;

// The curve and the values at the pointer.
function pointerHooks(props: ChartProps, colors: readonly string[], hover: ShowHover): Pick<uPlot.Hooks.Arrays, 'setSeries' | 'setCursor'> {
  const { panel } = props;
  const isMany = panel.series.length > MANY_SERIES;
  let focused: number | undefined;
  return {
    setSeries: [
      (plot, at) => {
        focused = at === null ? undefined : at - 1;
        if (isMany && isHovered(plot)) highlight(plot, at === null ? [] : [at]);
        if (colorsAreTrials(props) && isHovered(plot)) hovered.value = focused === undefined ? undefined : panel.series[focused]?.trial;
      },
    ],
    setCursor: [
      (plot) => {
        const { left = -1, idx } = plot.cursor;
        const x = idx == null ? undefined : plot.data[0][idx];
        if (left >= 0 && x !== undefined && isHovered(plot)) return hover(valuesAt(plot, x, props, colors, focused));
        if (isMany && left < 0) highlight(plot, []);
        hover(undefined);
      },
    ],
  };
}

// The range of the x axis that the pointer has drawn, in axis units.
function zoomed(plot: uPlot, zoom: ChartProps['zoom']): void {
  if (plot.select.width < LEAST_ZOOM) return;
  zoom(plot.posToVal(plot.select.left, 'x'), plot.posToVal(plot.select.left + plot.select.width, 'x'));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

// `hover` gets the values at the pointer; `ranges` are read at each drawing.
export function options(props: ChartProps, width: number, hover: ShowHover, ranges: () => Ranges): uPlot.Options {
  const { panel, look, tags = [] } = props;
  const colors = colorsOf(props);
  const [card, plain] = [themeColor('--card'), themeColor('--text-dim')];
  const count = panel.series.length;
  // The names of groups would take a third of a narrow chart; their key is above the charts.
  const ends = isBanded(panel) && width < NARROW ? [] : shortTags(tags);
  const tagRoom = roomFor(ends);
  const { lines, bands } = linesOf(props, colors, card);
  return {
    width,
    height: heightOf(look),
    bands,
    padding: [TOP_PADDING, Math.max(RIGHT, tagRoom), null, 0],
    cursor: cursorOf(panel, colors, card),
    focus: { alpha: count > MANY_SERIES ? 1 : DIMMED },
    legend: { show: false },
    // A single point lies at the right end of the x axis and in the middle of the y axis.
    scales: {
      x: { time: false, range: (plot, min, max) => along(plot.data[0], min, max, ranges().domain) },
      y: { distr: look.log ? 3 : 1, range: (_, min, max) => rangeOfY(look.log, ranges(), min, max) },
    },
    axes: axesOf(props),
    series: [{ label: look.axis }, ...lines],
    hooks: {
      drawAxes: [
        (plot) => {
          drawCut(plot, ranges(), plain);
          drawBehind(plot, ranges().pale, props.colors ?? [], plain);
        },
      ],
      draw: [
        (plot) => {
          drawBest(plot, props, colors, card);
          if (tagRoom > 0) drawEnds(plot, panel, ends, props.colors ?? [], card);
        },
      ],
      setSelect: [(plot) => zoomed(plot, props.zoom)],
      ...pointerHooks(props, colors, hover),
    },
  };
}
