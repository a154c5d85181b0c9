// Labels at the ends of curves, so that a curve is found in the table without the pointer. The layout is pure.
import type uPlot from 'uplot';
import type { Panel } from './series';

// With more trials the labels would be a second chart.
const MAX_LABELED = 12;
const MAX_CHARACTERS = 8;
const FONT = "600 11px 'Geist Variable', system-ui, sans-serif";
// Pixels of a line, of a character, and between an end and its label.
const LINE = 12;
const CHARACTER = 7;
const GAP = 6;
// An end this close to the right edge of the plot has its label beside the plot.
const EDGE = 12;

export interface End {
  text: string;
  x: number; // pixels from the left edge of the plot
  y: number; // pixels from its top
}

export interface Label extends End {
  left: number; // of the text
  middle: number;
}

// The end of each trial's longest curve, the first of equal ones.
export function longest<T extends { place: number; x: number }>(ends: readonly T[]): T[] {
  const best = new Map<number, T>();
  for (const end of ends) if (end.x > (best.get(end.place)?.x ?? -Infinity)) best.set(end.place, end);
  return [...best.values()];
}

// The room beside the plot that these labels need, or 0 without labels.
export const roomFor = (tags: readonly string[]): number => {
  const characters = Math.max(0, ...tags.map(({ length }) => length));
  return tags.length < 2 || tags.length > MAX_LABELED || characters > MAX_CHARACTERS ? 0 : GAP + CHARACTER * characters;
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

// Labels beside the plot for curves that reach its right edge, within the plot for shorter ones. A label within it that
// would cover another one is left out.
export function placedLabels<T extends End>(ends: readonly T[], width: number, height: number): (T & Label)[] {
  const atEdge = ends.filter(({ x }) => x >= width - EDGE).sort((a, b) => a.y - b.y);
  const middles = spread(atEdge.map(({ y }) => y), height);
  const placed = atEdge.map((end, at) => ({ ...end, left: width + GAP, middle: middles[at] ?? end.y }));
  for (const end of ends) {
    if (atEdge.includes(end)) continue;
    const label = { ...end, left: end.x + GAP, middle: end.y };
    const right = label.left + CHARACTER * label.text.length;
    const covers = (other: Label): boolean =>
      Math.abs(other.middle - label.middle) < LINE && other.left < right && label.left < other.left + CHARACTER * other.text.length;
    if (!placed.some(covers)) placed.push(label);
  }
  return placed;
}

// The last value of a series within the range of the x axis.
function endOf(plot: uPlot, at: number): { x: number; y: number } | undefined {
  const [places, values] = [plot.data[0], plot.data[at] ?? []];
  const { min, max } = plot.scales.x ?? {};
  for (let point = values.length - 1; point >= 0; point--) {
    const [x, value] = [places[point] ?? 0, values[point]];
    if (value == null || x > (max ?? Infinity)) continue;
    return x < (min ?? -Infinity) ? undefined : { x: plot.valToPos(x, 'x'), y: plot.valToPos(value, 'y') };
  }
  return undefined;
}

// Draws the labels of the panel's trials, with a rim in the color of the page. `tags` and `colors` are by place.
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
  ctx.lineWidth = 3;
  ctx.strokeStyle = rim;
  for (const label of placedLabels(longest(found), bbox.width / ratio, bbox.height / ratio)) {
    ctx.globalAlpha = label.alpha;
    ctx.fillStyle = label.color;
    ctx.strokeText(label.text, label.left, label.middle);
    ctx.fillText(label.text, label.left, label.middle);
  }
  ctx.restore();
}
