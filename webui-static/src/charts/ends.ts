// Labels at the ends of curves, so that a curve is found in the table without the pointer. The layout is pure.
import type uPlot from 'uplot';
import type { Panel } from './series';

// With more trials the labels would be a second chart.
const MAX_LABELED = 12;
const MAX_CHARACTERS = 8;
const LEAST_ALPHA = 0.5;
const END_DOT = 2.5;
const FONT = "600 11px 'Geist Variable', system-ui, sans-serif";
// Pixels of a line, of a character, and between an end and its label, where a line joins those that are apart.
const LINE = 12;
const CHARACTER = 7;
const GAP = 10;
const JOINED = 4;
// Places above and below its end where a label within the plot is tried, in lines. One line further away is as bad as
// this part of a curve behind the label.
const TRIED = [0, -1, 1, -2, 2, -3, 3, -4, 4];
const FAR = 0.25;
// This many curves that end at one point, in pixels, have no labels.
const COINCIDING = 4;
const COINCIDENT = 3;
// An end this close to the right edge of the plot has its label beside the plot.
const EDGE = 12;

// "#13" for the row of a curve; "" if the name of the curve, "trial 13", says it.
export const idBeside = (name: string, tag: string | undefined): string => (tag === undefined || name.startsWith(`trial ${tag}`) ? '' : `#${tag}`);

export interface End {
  text: string;
  x: number; // pixels from the left edge of the plot
  y: number; // pixels from its top
  before?: number; // where the curve was earlier; orders ends at the same place
}

export interface Label extends End {
  left: number; // of the text
  middle: number;
  isJoined: boolean; // by a line to its end, because it is apart from it
}

// The end of each trial's longest curve, the first of equal ones.
export function longest<T extends { place: number; x: number }>(ends: readonly T[]): T[] {
  const best = new Map<number, T>();
  for (const end of ends) if (end.x > (best.get(end.place)?.x ?? -Infinity)) best.set(end.place, end);
  return [...best.values()];
}

// The room beside the plot that these labels need, or 0 without labels: for fewer than `least`, for many, for long ones.
export const roomFor = (tags: readonly string[], least = 2): number => {
  const characters = Math.max(0, ...tags.map(({ length }) => length));
  return tags.length < least || tags.length > MAX_LABELED || characters > MAX_CHARACTERS ? 0 : GAP + CHARACTER * characters;
};

// Middles of lines of text near these heights, which ascend, without overlap and within 0..height.
export function spread(heights: readonly number[], height: number): number[] {
  const blocks: { sum: number; count: number }[] = [];
  const top = ({ sum, count }: { sum: number; count: number }): number =>
    Math.max(0, Math.min(height - count * LINE, sum / count - (count * LINE) / 2));
  for (const one of heights) {
    let last = { sum: one, count: 1 };
    for (let before = blocks[blocks.length - 1]; before && top(before) + before.count * LINE > top(last); before = blocks[blocks.length - 1]) {
      blocks.pop();
      last = { sum: before.sum + last.sum, count: before.count + last.count };
    }
    blocks.push(last);
  }
  return blocks.flatMap((block) => Array.from({ length: block.count }, (_, at) => top(block) + (at + 0.5) * LINE));
}

// Ends within the plot that are this close to each other share a column of labels.
const NEAR = 24;

// The ends in columns from left to right, each from the top.
function columnsOf<T extends End>(ends: readonly T[], width: number): T[][] {
  const isAbove = (a: T, b: T): number => (Math.abs(a.y - b.y) < 1 ? (a.before ?? a.y) - (b.before ?? b.y) : a.y - b.y);
  const columns: T[][] = [];
  for (const end of [...ends].sort((a, b) => a.x - b.x)) {
    const own = columns[columns.length - 1];
    const first = own?.[0];
    const isAtEdge = end.x >= width - EDGE;
    if (own && first && (isAtEdge ? first.x >= width - EDGE : end.x - first.x <= NEAR)) own.push(end);
    else columns.push([end]);
  }
  return columns.map((own) => own.sort(isAbove));
}

// The number of curves in a box of the plot, in pixels.
type Behind = (left: number, right: number, top: number, bottom: number) => number;

// Labels right of ends within the plot: those of ends that are close to each other are on one line.
function inLines<T extends End>(own: readonly T[], edge: number): (T & Label)[] {
  const lines: T[][] = [];
  for (const end of own) {
    const line = lines[lines.length - 1];
    if (line && end.y - (line[line.length - 1]?.y ?? 0) < LINE) line.push(end);
    else lines.push([end]);
  }
  return lines.flatMap((line) => {
    const middle = line.reduce((sum, { y }) => sum + y, 0) / line.length;
    let left = edge + GAP;
    // In the order of the ends from left to right; the first one has the line to its end for all.
    return [...line].sort((a, b) => a.x - b.x).map((end, at) => {
      const label = { ...end, left, middle, isJoined: at === 0 };
      left += CHARACTER * (end.text.length + 1);
      return label;
    });
  });
}

// Labels beside the plot for curves that reach its right edge, one below the other in the order of their ends; within
// the plot for shorter ones, with few curves behind them. A label within the plot that would cover another one at all
// places near its end is left out.
export function placedLabels<T extends End>(ends: readonly T[], width: number, height: number, behind: Behind = () => 0): (T & Label)[] {
  const placed: (T & Label)[] = [];
  const right = ({ left, text }: { left: number; text: string }): number => left + CHARACTER * text.length;
  const isFree = (label: T & Label): boolean =>
    label.middle >= LINE / 2 &&
    label.middle <= height - LINE / 2 &&
    placed.every((other) => Math.abs(other.middle - label.middle) >= LINE || other.left > right(label) || label.left > right(other));
  const cost = (labels: readonly (T & Label)[], lines: number): number =>
    labels.reduce((sum, label) => sum + behind(label.left, right(label), label.middle - LINE / 2, label.middle + LINE / 2), FAR * Math.abs(lines));
  for (const column of columnsOf(ends, width).reverse()) {
    // Labels of curves that end at one point would tell nothing.
    const own = column.filter(({ y }) => column.filter((other) => Math.abs(other.y - y) <= COINCIDENT).length < COINCIDING);
    if (own.length === 0) continue;
    const edge = Math.max(...own.map(({ x }) => x));
    const isBeside = edge >= width - EDGE;
    const middles = spread(own.map(({ y }) => y), height);
    const usual: (T & Label)[] = isBeside
      ? own.map((end, place) => ({ ...end, left: width + GAP, middle: middles[place] ?? end.y, isJoined: Math.abs((middles[place] ?? end.y) - end.y) > JOINED }))
      : inLines(own, edge);
    const at = (lines: number): (T & Label)[] =>
      usual.map((label) => ({ ...label, middle: label.middle + lines * LINE, isJoined: label.isJoined && (isBeside || lines !== 0 || label.left - label.x > 2 * GAP) }));
    const tried = (isBeside ? [0] : TRIED).map((lines) => ({ labels: at(lines), lines })).filter(({ labels }) => labels.every(isFree));
    const costs = tried.map(({ labels, lines }) => (tried.length === 1 ? 0 : cost(labels, lines)));
    placed.push(...(tried[costs.indexOf(Math.min(...costs))]?.labels ?? at(0).filter(isFree)));
  }
  return placed;
}

// Whether a curve with these heights, in the order of x, has a part within low..high. Undefined ones are passed over.
export function passes(heights: readonly (number | null | undefined)[], low: number, high: number): boolean {
  let last: number | undefined;
  for (const now of heights) {
    if (now == null) continue;
    if (Math.min(now, last ?? now) <= high && Math.max(now, last ?? now) >= low) return true;
    last = now;
  }
  return false;
}

// The curves of the plot for placedLabels().
function curvesBehind(plot: uPlot, count: number): Behind {
  return (left, right, top, bottom) => {
    const [from, to] = [Math.max(0, plot.posToIdx(left) - 1), Math.min(plot.data[0].length - 1, plot.posToIdx(right) + 1)];
    const [high, low] = [plot.posToVal(top, 'y'), plot.posToVal(bottom, 'y')];
    return plot.data.slice(1, count + 1).filter((values) => passes(Array.prototype.slice.call(values, from, to + 1), low, high)).length;
  };
}

// The last value of a series within the range of the x axis, and the one at half of its points.
function endOf(plot: uPlot, at: number): { x: number; y: number; before: number } | undefined {
  const [places, values] = [plot.data[0], plot.data[at] ?? []];
  const { min, max } = plot.scales.x ?? {};
  for (let point = values.length - 1; point >= 0; point--) {
    const [x, value] = [places[point] ?? 0, values[point]];
    if (value == null || x > (max ?? Infinity)) continue;
    if (x < (min ?? -Infinity)) return undefined;
    let half = Math.floor(point / 2);
    while (half < point && values[half] == null) half++;
    return { x: plot.valToPos(x, 'x'), y: plot.valToPos(value, 'y'), before: plot.valToPos(values[half] ?? value, 'y') };
  }
  return undefined;
}

// Draws the labels of the panel's trials, with a rim in the color of the page, and the ends of curves within the plot.
// While one is pointed at, the others have no labels there. `tags` and `colors` are by place.
export function drawEnds(plot: uPlot, { series }: Pick<Panel, 'series'>, tags: readonly string[], colors: readonly string[], rim: string): void {
  const found = series.flatMap(({ place }, at) => {
    const end = endOf(plot, at + 1);
    return end ? [{ ...end, place, text: tags[place] ?? '', color: colors[place] ?? '', alpha: plot.series[at + 1]?.alpha ?? 1 }] : [];
  });
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.setTransform(ratio, 0, 0, ratio, bbox.left, bbox.top);
  ctx.font = FONT;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.lineJoin = 'round';
  ctx.setLineDash([]);
  for (const label of placedLabels(longest(found), bbox.width / ratio, bbox.height / ratio, curvesBehind(plot, series.length))) {
    // Curves that are not pointed at are paler than their labels.
    ctx.globalAlpha = Math.max(LEAST_ALPHA, label.alpha);
    ctx.fillStyle = ctx.strokeStyle = label.color;
    ctx.lineWidth = 1;
    const isBeside = label.left > bbox.width / ratio;
    if (!isBeside && label.alpha < 1) continue;
    if (!isBeside) {
      ctx.beginPath();
      ctx.arc(label.x, label.y, END_DOT, 0, 2 * Math.PI);
      ctx.fill();
    }
    if (label.isJoined) {
      ctx.beginPath();
      ctx.moveTo(label.x + 1, label.y);
      ctx.lineTo(label.left - 1, label.middle);
      ctx.stroke();
    }
    ctx.strokeStyle = rim;
    ctx.lineWidth = 3;
    ctx.strokeText(label.text, label.left, label.middle);
    ctx.fillText(label.text, label.left, label.middle);
  }
  ctx.restore();
}
