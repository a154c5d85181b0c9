// Labels at the ends of curves, so that a curve is found in the table without the pointer. The layout is pure.
import type uPlot from 'uplot';
import type { Panel, Series } from './series';

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
// Places above and below its end where a label within the plot is tried, in lines, and further to the right, in pixels.
// How far it may be from an end, and from another point of a curve: a longer line to it crosses those of others.
const TRIED = [0, -1, 1, -2, 2, -3, 3, -4, 4];
const RIGHTWARD = [0, 16];
const FARTHEST = { end: 4 * LINE, point: 2 * LINE };
// Ends within the plot that are this close to each other share a column of labels.
const NEAR = 24;
// This many curves that end at one point, in pixels, have their labels where they are apart, or none.
const COINCIDING = 4;
const COINCIDENT = 3;
// Pixels between curves from which on they are apart enough.
const APART = 3 * LINE;
// Ends that are closer to each other, in pixels, have the order that their curves had before.
const SAME = 0.05;
// An end this close to the right edge of the plot has its label beside the plot.
const EDGE = 12;

// "#13" for the row of a curve; "" if the name of the curve, "trial 13", says it.
export const idBeside = (name: string, tag: string | undefined): string => (tag === undefined || name.startsWith(`trial ${tag}`) ? '' : `#${tag}`);

export interface End {
  text: string;
  x: number; // pixels from the left edge of the plot
  y: number; // pixels from its top
  before?: number; // where the curve was earlier; orders ends at the same place
  isEnd?: boolean; // false: a point of the curve before its end
}

export interface Label extends End {
  left: number; // of the text
  middle: number;
  isJoined: boolean; // by a line to its end, because it is apart from it
}

// Whether these ends are at one point, COINCIDING or more of them.
export function areGathered(ends: readonly { y: number }[]): boolean {
  const heights = ends.map(({ y }) => y);
  return ends.length >= COINCIDING && Math.max(...heights) - Math.min(...heights) <= COINCIDENT;
}

// The column in which heights are farthest apart, the last one of equal ones: gaps beyond some lines of text are equal.
// Undefined if they are less than half of a line apart there. A column without one of the heights is passed over.
export function widestApart(columns: readonly (readonly (number | undefined)[])[]): number | undefined {
  let [best, most] = [undefined as number | undefined, 0];
  columns.forEach((heights, at) => {
    const known = heights.filter((height) => height !== undefined).sort((a, b) => a - b);
    if (known.length < heights.length) return;
    const sum = known.slice(1).reduce((total, height, place) => total + Math.min(APART, height - (known[place] ?? height)), 0);
    if (sum >= (LINE / 2) * (known.length - 1) && sum >= most) [best, most] = [at, sum];
  });
  return best;
}

// The end of each trial's curve that has the label: the curve of validation, which is compared and never pale, or else the
// longest one, the first of equal ones.
export function labeled<T extends { place: number; group: string; x: number }>(ends: readonly T[]): T[] {
  const rank = ({ group, x }: T): number => (group === 'validation' ? Infinity : x);
  const best = new Map<number, T>();
  for (const end of ends) {
    const known = best.get(end.place);
    if (!known || rank(end) > rank(known)) best.set(end.place, end);
  }
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

// The ends in columns from left to right, each from the top.
function columnsOf<T extends End>(ends: readonly T[], width: number): T[][] {
  const isAbove = (a: T, b: T): number => (Math.abs(a.y - b.y) < SAME ? (a.before ?? a.y) - (b.before ?? b.y) : a.y - b.y);
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

// Whether the label of an end would cover a curve of another trial in a box of the plot, in pixels.
type Covers<T> = (end: T, left: number, right: number, top: number, bottom: number) => boolean;

// Labels beside the plot for curves that reach its right edge, one below the other in the order of their ends; within
// the plot for shorter ones, each at the nearest place to its end where it covers neither another label nor the curve of
// another trial: it would name that one. Without such a place it is left out.
export function placedLabels<T extends End>(ends: readonly T[], width: number, height: number, covers: Covers<T> = () => false): (T & Label)[] {
  const placed: (T & Label)[] = [];
  const right = ({ left, text }: Label): number => left + CHARACTER * text.length;
  const isFree = (label: Label): boolean =>
    label.middle >= LINE / 2 &&
    label.middle <= height - LINE / 2 &&
    placed.every((other) => Math.abs(other.middle - label.middle) >= LINE || other.left > right(label) || label.left > right(other));
  const isClear = (label: T & Label): boolean => !covers(label, label.left, right(label), label.middle - LINE / 2, label.middle + LINE / 2);
  for (const column of columnsOf(ends, width).reverse()) {
    // Labels of curves that end at one point would tell nothing.
    if (areGathered(column)) continue;
    const middles = spread(column.map(({ y }) => y), height);
    const edge = Math.max(...column.map(({ x }) => x));
    const isBeside = edge >= width - EDGE;
    let above = -Infinity; // the last label of the column: the order of labels is that of the ends
    column.forEach((end, place) => {
      const label = (lines: number, rightward = 0): T & Label => {
        const middle = (middles[place] ?? end.y) + lines * LINE;
        const left = (isBeside ? width : edge) + GAP + rightward;
        return { ...end, left, middle, isJoined: Math.abs(middle - end.y) > JOINED || (!isBeside && left - end.x > 2 * GAP) };
      };
      const most = end.isEnd === false ? FARTHEST.point : FARTHEST.end;
      const tried = (isBeside ? [] : RIGHTWARD).flatMap((rightward) => TRIED.map((lines) => label(lines, rightward)));
      const best = isBeside ? label(0) : tried.find((one) => Math.abs(one.middle - end.y) <= most && isFree(one) && one.middle > above && isClear(one));
      if (!best) return;
      above = best.middle;
      placed.push(best);
    });
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

// Whether a label covers a curve of the plot, for placedLabels().
function coversCurve(plot: uPlot, series: readonly Pick<Series, 'place'>[]): Covers<{ place: number }> {
  return (end, left, right, top, bottom) => {
    const [from, to] = [Math.max(0, plot.posToIdx(left) - 1), Math.min(plot.data[0].length - 1, plot.posToIdx(right) + 1)];
    const [high, low] = [plot.posToVal(top, 'y'), plot.posToVal(bottom, 'y')];
    return series.some(({ place }, at) => place !== end.place && passes(Array.prototype.slice.call(plot.data[at + 1], from, to + 1), low, high));
  };
}

// The last value of a series within the range of the x axis, and the one at half of its points. `isOut`: it is above or
// below the plot.
function endOf(plot: uPlot, at: number): { x: number; y: number; before: number; isOut: boolean } | undefined {
  const [places, values] = [plot.data[0], plot.data[at] ?? []];
  const { min, max } = plot.scales.x ?? {};
  for (let point = values.length - 1; point >= 0; point--) {
    const [x, value] = [places[point] ?? 0, values[point]];
    if (value == null || x > (max ?? Infinity)) continue;
    if (x < (min ?? -Infinity)) return undefined;
    let half = Math.floor(point / 2);
    while (half < point && values[half] == null) half++;
    const y = plot.valToPos(value, 'y');
    return { x: plot.valToPos(x, 'x'), y, before: plot.valToPos(values[half] ?? value, 'y'), isOut: y < 0 || y > plot.bbox.height / devicePixelRatio };
  }
  return undefined;
}

// Places of the x axis that are looked at for one where curves are apart.
const LOOKED_AT = 60;

// The points of these curves, by their series, where they are farthest apart; [] if they are nowhere.
function pointsApart(plot: uPlot, series: readonly number[]): { x: number; y: number }[] {
  const [from, to] = plot.series[0]?.idxs ?? [0, 0];
  const places = Array.from({ length: LOOKED_AT }, (_, at) => from + Math.round(((to - from) * at) / LOOKED_AT));
  const heights = (at: number): (number | undefined)[] =>
    series.map((one) => plot.data[one]?.[at]).map((value) => (value == null ? undefined : plot.valToPos(value, 'y')));
  const best = places[widestApart(places.map(heights)) ?? -1];
  return best === undefined ? [] : heights(best).map((y) => ({ x: plot.valToPos(plot.data[0][best] ?? 0, 'x'), y: y ?? 0 }));
}

// Draws the labels of the panel's trials, with a rim in the color of the page, and the ends of curves within the plot.
// `tags` and `colors` are by place.
export function drawEnds(plot: uPlot, { series }: Pick<Panel, 'series'>, tags: readonly string[], colors: readonly string[], rim: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const found = series.flatMap(({ place, group }, at) => {
    const end = endOf(plot, at + 1);
    return end ? [{ ...end, at: at + 1, place, group, text: tags[place] ?? '', color: colors[place] ?? '', alpha: plot.series[at + 1]?.alpha ?? 1 }] : [];
  });
  const width = bbox.width / ratio;
  const shown = columnsOf(labeled(found), width).flatMap((column) => {
    const points = areGathered(column) || column.some(({ isOut }) => isOut) ? pointsApart(plot, column.map(({ at }) => at)) : [];
    const placed = column.map((end, place) => ({ ...end, ...points[place], isEnd: points[place] === undefined }));
    return placed.filter(({ isOut, isEnd }) => !isOut || !isEnd);
  });
  ctx.save();
  ctx.setTransform(ratio, 0, 0, ratio, bbox.left, bbox.top);
  ctx.font = FONT;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.lineJoin = 'round';
  ctx.setLineDash([]);
  for (const end of shown.filter(({ isEnd, x }) => isEnd && x < width - EDGE)) {
    ctx.globalAlpha = end.alpha;
    ctx.fillStyle = end.color;
    ctx.beginPath();
    ctx.arc(end.x, end.y, END_DOT, 0, 2 * Math.PI);
    ctx.fill();
  }
  for (const label of placedLabels(shown, width, bbox.height / ratio, coversCurve(plot, series))) {
    // Curves that are not pointed at are paler than their labels.
    ctx.globalAlpha = Math.max(LEAST_ALPHA, label.alpha);
    ctx.fillStyle = ctx.strokeStyle = label.color;
    ctx.lineWidth = 1;
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
