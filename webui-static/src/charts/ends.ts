// Labels at the ends of curves, so that a curve is found in the table without the pointer. The layout is pure.
import type uPlot from 'uplot';
import type { Panel } from './series';

// With more trials the labels would be a second chart.
const MAX_LABELED = 12;
const MAX_CHARACTERS = 12;
const LEAST_ALPHA = 0.8;
const END_DOT = 2.5;
const FONT = "600 11px 'Geist Variable', system-ui, sans-serif";
// Pixels of a line, of its digits above and below their middle, of a character, that a comma and a space have less, and between an
// end and a label beside the plot, where a line joins those that are apart.
const LINE = 12;
export const HALF = 4.5;
const CHARACTER = 7;
const NARROW = 8;
const GAP = 10;
const JOINED = 4;
// Pixels between an end within the plot and its label, at its height and above or below it.
const CLOSE = 7;
const CLOSER = 3;
const DIAGONAL = 12;
// Pixels between labels in a row, at least.
const BETWEEN = 4;
// Pixels, right and down, between a point of a curve and a label that a line joins with it; the farther ones for ends alone.
const ASIDE = 14;
const FARTHER = [ASIDE, 28, 42];
// Pixels between curves from which on they are apart enough.
const APART = 3 * LINE;
// Labels beside the plot this far from their ends, in pixels, say little about them: the first curves keep theirs, these at least.
const FAR = 2 * LINE;
const LEAST_BESIDE = 3;
// Curves that are this close to each other, in pixels, lie on each other.
const LYING = 1;
// Curves that end this close to each other, in pixels, meet.
const MEETING = 2;
// Curves that change by this much, in pixels, from the column before to that after are flat.
const FLAT = 2;
// Ends that are closer to each other, in pixels, have the order that their curves had before.
const SAME = 0.05;
// An end this close to the right edge of the plot has its label beside the plot.
const EDGE = 12;

// "#13" for the row of a curve; "" if the name of the curve, "trial 13", says it.
export const idBeside = (name: string, tag: string | undefined): string => (tag === undefined || name.startsWith(`trial ${tag}`) ? '' : `#${tag}`);

export interface Point {
  x: number; // pixels from the left edge of the plot
  y: number; // pixels from its top
}

export interface End extends Point {
  text: string;
  names?: readonly { text: string; color: string }[]; // of the curves that end here: the parts of `text`
  before?: number; // where the curve was earlier; orders ends at the same place
  isOut?: boolean; // above or below the plot, at whose edge `y` is then
  curves?: readonly number[]; // in columns: that of the end, and those that end with it
}

// The heights of the curves with labels at a place of the x axis, undefined where a curve has none.
export interface Column {
  x: number;
  heights: readonly (number | undefined)[];
}

export interface Label extends End {
  left: number; // of the text
  middle: number;
  isJoined: boolean; // by a line to `x` and `y`, from which it is apart
}

// The columns in which a curve is farthest from the other ones first, the later one of equal ones: gaps beyond some lines of
// text are equal. `heights` are those of all curves by column; columns without the curve are left out, and with `isAlone` also
// those with a curve that lies on it, where a label would be on both.
export function clearest(heights: readonly (readonly (number | undefined)[])[], own: number, isAlone = false): number[] {
  const found = heights.flatMap((column, at) => {
    const height = column[own];
    if (height === undefined) return [];
    const room = column.reduce((least: number, other, one) => (other === undefined || one === own ? least : Math.min(least, Math.abs(other - height))), APART);
    return isAlone && room <= LYING ? [] : [{ at, room }];
  });
  return found.sort((a, b) => b.room - a.room || b.at - a.at).map(({ at }) => at);
}

// The end of each trial's curve that has the label: the longest one, the first of equal ones.
export function labeled<T extends { place: number; x: number }>(ends: readonly T[]): T[] {
  const best = new Map<number, T>();
  for (const end of ends) {
    const known = best.get(end.place);
    if (!known || end.x > known.x) best.set(end.place, end);
  }
  return [...best.values()];
}

// Tags that fit beside the plot. Long ones keep their end, which tells series apart: "sweep, paper" becomes "…paper". All as they are
// if two would be equal.
export function shortTags(tags: readonly string[]): readonly string[] {
  const short = tags.map((tag) => (tag.length <= MAX_CHARACTERS ? tag : `…${tag.slice(1 - MAX_CHARACTERS).replace(/^.*[\s,_/.:-]+(?=\w{3})/, '')}`));
  return new Set(short).size < tags.length ? tags : short;
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

// One end for several, "3, 4", at the place of the first, each id in its color.
function joined<T extends End>(first: T, ...others: readonly T[]): T {
  const all = [first, ...others];
  return {
    ...first,
    text: all.map(({ text }) => text).join(', '),
    names: all.flatMap(({ names = [] }) => names),
    curves: all.flatMap(({ curves = [] }) => curves),
  };
}

// Ends at one point of curves that lie on each other have one label. `fits`: whether there is room for its text.
export function merged<T extends End>(ends: readonly T[], fits: (end: T) => boolean): T[] {
  const isSame = (a: T, b: T): boolean => [a.x - b.x, a.y - b.y, (a.before ?? a.y) - (b.before ?? b.y)].every((apart) => Math.abs(apart) <= LYING);
  return ends.reduce<T[]>((found, end) => {
    const same = found.find((one) => isSame(one, end));
    const joint = same && joined(same, end);
    return joint && fits(joint) ? found.map((one) => (one === same ? joint : one)) : [...found, end];
  }, []);
}

// Whether the label of an end would cover a curve of another trial in a box of the plot, in pixels.
type Covers<T> = (end: T, left: number, right: number, top: number, bottom: number) => boolean;

// The labels that are placed already, the ends with dots, and the plot.
interface Layout<T> {
  placed: (T & Label)[];
  dots: readonly T[];
  width: number;
  height: number;
  covers: Covers<T>;
}

// The width of a label in pixels.
export const lengthOf = ({ text }: Pick<End, 'text'>): number => CHARACTER * text.length - NARROW * (text.split(', ').length - 1);

// Pixels between a label's text and a point.
const distance = (label: Label, { x, y }: Point): number =>
  Math.hypot(Math.max(label.left - x, x - label.left - lengthOf(label), 0), Math.max(Math.abs(y - label.middle) - HALF, 0));

// Whether a label is within the plot, as close to its own end as to any other one, and covers neither another label nor the
// curve of another trial. `half` of its height counts for curves.
function isFree<T extends End>({ placed, dots, width, height, covers }: Layout<T>, label: T & Label, half: number): boolean {
  const right = label.left + lengthOf(label);
  const isWithin = label.left >= 0 && right <= width && label.middle >= LINE / 2 && label.middle <= height - LINE / 2;
  const isOver = (other: T & Label): boolean => Math.abs(other.middle - label.middle) < LINE && other.left <= right + BETWEEN && label.left <= other.left + lengthOf(other) + BETWEEN;
  // A label on a curve has no distance to it, and stays away from the ends of others.
  const own = distance(label, label);
  const isOwn = dots.every((dot) => dot.text === label.text || distance(label, dot) >= Math.max(END_DOT, own === 0 ? LINE : own));
  return isWithin && isOwn && !placed.some(isOver) && !covers(label, label.left, right, label.middle - half, label.middle + half);
}

// Labels of curves that reach the right edge of the plot, beside it in the order of their ends. The last ones are left out as
// long as one is far from its end.
function besidePlot<T extends End>(ends: readonly T[], width: number, height: number): (T & Label)[] {
  const isAbove = (a: T, b: T): number => (Math.abs(a.y - b.y) < SAME ? (a.before ?? a.y) - (b.before ?? b.y) : a.y - b.y);
  const column = [...ends].sort(isAbove);
  const middles = spread(column.map(({ y }) => y), height);
  const isFar = column.some(({ y }, place) => Math.abs((middles[place] ?? y) - y) > FAR);
  if (isFar && ends.length > LEAST_BESIDE) return besidePlot(ends.slice(0, -1), width, height);
  return column.map((end, place) => {
    const middle = middles[place] ?? end.y;
    return { ...end, left: width + GAP, middle, isJoined: Math.abs(middle - end.y) > JOINED };
  });
}

// Places close to an end within the plot: right of it, above and below that, the same left of it, and above and below it.
function closePlaces<T extends End>(end: T): (T & Label)[] {
  const at = (left: number, down: number): T & Label => ({ ...end, left, middle: end.y + down, isJoined: false });
  const [right, left] = [end.x, end.x - lengthOf(end)];
  const middle = (right + left) / 2;
  return [
    ...[[right, 1] as const, [left, -1] as const].flatMap(([side, sign]) => [at(side + sign * CLOSE, 0), at(side + sign * CLOSER, -DIAGONAL), at(side + sign * CLOSER, DIAGONAL)]),
    at(middle, -DIAGONAL),
    at(middle, DIAGONAL),
  ];
}

// Places aside from points of a curve, above them before below them.
const placesAside = <T extends End>(end: T, points: readonly Point[], by = ASIDE): (T & Label)[] =>
  points.flatMap(({ x, y }) =>
    [-by, by].flatMap((down) => [x + by, x - by - lengthOf(end)].map((left) => ({ ...end, x, y, left, middle: y + down, isJoined: true }))),
  );

// The label of an end on its curves at a column.
const onCurves = <T extends End>(end: T, x: number, y: number): T & Label => ({ ...end, x, y, left: x - lengthOf(end) / 2, middle: y, isJoined: false });

// The label of a curve that ends within the plot or has left it.
function placeOf<T extends End>(end: T, columns: readonly Column[], layout: Layout<T>): (T & Label) | undefined {
  const heights = columns.map((column) => column.heights);
  const own = end.curves?.[0] ?? -1;
  const points = clearest(heights, own, !end.isOut)
    .map((at) => ({ x: columns[at]?.x ?? 0, y: heights[at]?.[own] ?? 0 }))
    .filter(({ x, y }) => x >= 0 && x <= layout.width && y >= 0 && y <= layout.height);
  const onCurve = points.map(({ x, y }) => onCurves(end, x, y));
  const close = end.isOut ? [] : closePlaces(end);
  const aside = end.isOut ? placesAside(end, points) : FARTHER.flatMap((by) => placesAside(end, [end], by));
  const overCurves = { ...layout, covers: () => false };
  return (
    close.find((one) => isFree(layout, one, LINE / 2)) ??
    [...onCurve, ...aside].find((one) => isFree(layout, one, HALF)) ??
    [...close, ...aside].find((one) => isFree(overCurves, one, HALF))
  );
}

// More ids than these in one label do not tell whose the curves are.
const MOST_JOINED = 3;

// Ends of curves as they are at a column, from top to bottom; those within the height of digits of the next one are together.
function bundles<T extends End>(ends: readonly T[]): [T, ...T[]][] {
  const runs: [T, ...T[]][] = [];
  let last = -Infinity;
  for (const end of [...ends].sort((a, b) => a.y - b.y)) {
    const run = runs[runs.length - 1];
    if (run && end.y - last < 2 * HALF) run.push(end);
    else runs.push([end]);
    last = end.y;
  }
  return runs;
}

const ofBundle = <T extends End>(run: readonly [T, ...T[]], x: number): T & Label => onCurves(joined(...run), x, run.reduce((sum, { y }) => sum + y, 0) / run.length);

// The labels of a bundle side by side from a column on, each on its own curve; undefined without room for one. They may cover
// curves of the column, whose labels have their colors.
function sideBySide<T extends End>(run: readonly T[], from: number, columns: readonly Column[], layout: Layout<T>, own: readonly number[]): (T & Label)[] | undefined {
  let left = -Infinity;
  const labels: (T & Label)[] = [];
  for (const end of run) {
    const column = columns.find(({ x }, at) => at >= from && x - lengthOf(end) / 2 >= left);
    const y = column?.heights[end.curves?.[0] ?? -1];
    if (!column || y === undefined) return undefined;
    const label = onCurves(end, column.x, y);
    if (!isFree({ ...layout, placed: [...layout.placed, ...labels] }, { ...label, curves: [...own] }, HALF)) return undefined;
    labels.push(label);
    left = label.left + lengthOf(end) + 2 * BETWEEN;
  }
  return labels;
}

// Labels on these curves at one place of the x axis: at the last with most labels, room between them and the flattest curves.
// Empty if other curves lie on one of these everywhere, or there is no place for a label.
function inColumn<T extends End>(ends: readonly T[], columns: readonly Column[], layout: Layout<T>): (T & Label)[] {
  const own = ends.flatMap(({ curves = [] }) => curves);
  const heightAt = (at: number, curve: number): number | undefined => columns[at]?.heights[curve];
  const steepnessAt = (at: number, curves: readonly number[]): number =>
    Math.max(FLAT, ...curves.map((curve) => Math.abs((heightAt(at + 1, curve) ?? Infinity) - (heightAt(at - 1, curve) ?? -Infinity))));
  const isAlone = (heights: Column['heights'], height: number): boolean => heights.every((other, curve) => other === undefined || own.includes(curve) || Math.abs(other - height) > LYING);
  const tried = columns.flatMap(({ x, heights }, at) => {
    const here = ends.flatMap((end) => {
      const y = heightAt(at, end.curves?.[0] ?? -1);
      return y === undefined || !isAlone(heights, y) ? [] : [{ ...end, y }];
    });
    if (here.length < ends.length) return [];
    const runs = bundles(here);
    const labels = runs.map((run) => ofBundle(run, x));
    if (!labels.every((label) => isFree(layout, { ...label, curves: own }, HALF))) return [];
    const room = Math.min(2 * LINE, ...labels.map(({ y }, place) => y - (labels[place - 1]?.y ?? -Infinity)));
    return [{ runs, labels, room, steepness: steepnessAt(at, own), x }];
  });
  const column = tried.sort((a, b) => b.labels.length - a.labels.length || b.room - a.room || a.steepness - b.steepness || b.x - a.x)[0];
  const best = (column?.labels ?? []).flatMap((label, place) => {
    const run = column?.runs[place] ?? [];
    const others = { ...layout, placed: [...layout.placed, ...(column?.labels ?? []).filter((one) => one !== label)] };
    if (run.length <= MOST_JOINED) return [label];
    // Around the place of the bundle, or as close to it as there is room.
    const middle = label.x - run.reduce((sum, end) => sum + lengthOf(end) + 2 * BETWEEN, 0) / 2;
    const off = (at: number): number => Math.abs((columns[at]?.x ?? 0) - middle);
    const froms = [...columns.keys()].sort((a, b) => off(a) - off(b));
    return froms.reduce<(T & Label)[] | undefined>((found, from) => found ?? sideBySide(run, from, columns, others, own), undefined) ?? [label];
  });
  // A label that covers the next curve moves along its own ones, to where they are flattest.
  const flattest = (curves: readonly number[]): number[] => [...columns.keys()].sort((a, b) => steepnessAt(a, curves) - steepnessAt(b, curves) || b - a);
  return best.reduce<(T & Label)[]>((labels, label) => {
    const { curves = [] } = label;
    const others = { ...layout, placed: [...layout.placed, ...labels.filter((one) => one !== label)] };
    if (isFree(others, label, HALF)) return labels;
    const places = flattest(curves).flatMap((at) => {
      const all = curves.map((curve) => heightAt(at, curve)).filter((height) => height !== undefined);
      const isBundle = all.length === curves.length && Math.max(...all) - Math.min(...all) < 2 * HALF * curves.length;
      return isBundle ? [onCurves(label, columns[at]?.x ?? 0, all.reduce((sum, one) => sum + one, 0) / all.length)] : [];
    });
    const moved = places.find((one) => isFree(others, one, HALF));
    return moved ? labels.map((one) => (one === label ? moved : one)) : labels;
  }, best);
}

// Labels beside the plot for curves that reach its right edge in sight; or in a column, if one has left the plot, or if all meet
// at the edge and there are more labels than half of them in the column. The others have theirs close to their ends, or on their
// curves at one of the columns, where they cover neither another label nor the curve of another trial: it would name that one.
// Without such a place, curves that end within the plot have it over other curves, because the dot at the end tells whose it is;
// those that have left the plot have it aside, with a line to such a point. The ends farthest to the right come first, so that
// labels of ends in a row are in their order.
export function placedLabels<T extends End>(
  ends: readonly T[],
  width: number,
  height: number,
  covers: Covers<T> = () => false,
  columns: readonly Column[] = [],
): (T & Label)[] {
  const isAtEdge = ({ x }: T): boolean => x >= width - EDGE;
  const [last, within] = [ends.filter(isAtEdge), ends.filter((end) => !isAtEdge(end))];
  const layout: Layout<T> = { placed: [], dots: within.filter(({ isOut }) => !isOut), width, height, covers };
  const place = (some: readonly T[]): void => {
    for (const end of [...some].sort((a, b) => b.x - a.x)) {
      const label = placeOf(end, columns, layout);
      if (label) layout.placed.push(label);
    }
  };
  place(within);
  const hasLeft = last.some(({ isOut }) => isOut);
  const meet = last.length > 1 && Math.max(...last.map(({ y }) => y)) - Math.min(...last.map(({ y }) => y)) <= MEETING;
  const column = hasLeft || meet ? inColumn(last, columns, layout) : [];
  if (column.length > (hasLeft ? 0 : last.length / 2)) return [...column, ...layout.placed];
  place(last.filter(({ isOut }) => isOut));
  return [...besidePlot(last.filter(({ isOut }) => !isOut), width, height), ...layout.placed];
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

// Whether a label covers a curve of the plot, for placedLabels(). Those that lie on its own may be below it.
// `series` are the indices of the curves in columns.
function coversCurve(plot: uPlot, panel: Pick<Panel, 'series'>, series: readonly number[]): Covers<{ at: number; curves?: readonly number[] }> {
  const curves = panel.series.map(({ place }, at) => ({ place, values: plot.data[at + 1] }));
  return (end, left, right, top, bottom) => {
    const places = (end.curves ?? []).map((curve) => panel.series[(series[curve] ?? 0) - 1]?.place);
    const [from, to] = [Math.max(0, plot.posToIdx(left) - 1), Math.min(plot.data[0].length - 1, plot.posToIdx(right) + 1)];
    const [high, low] = [plot.posToVal(top, 'y'), plot.posToVal(bottom, 'y')];
    const inBox = (values: uPlot.AlignedData[number] | undefined): (number | null | undefined)[] => Array.prototype.slice.call(values, from, to + 1);
    const own = inBox(plot.data[end.at]);
    const liesOn = (values: readonly (number | null | undefined)[]): boolean =>
      values.every((value, at) => (value == null) === (own[at] == null) && Math.abs(plot.valToPos(value ?? 1, 'y') - plot.valToPos(own[at] ?? 1, 'y')) <= LYING);
    return curves.some(({ place, values }) => !places.includes(place) && passes(inBox(values), low, high) && !liesOn(inBox(values)));
  };
}

// The last value of a series within the range of the x axis, and the one at half of its points. A value that a logarithmic
// axis has no place for, as the end of a learning rate, is below the plot.
function endOf(plot: uPlot, at: number): { x: number; y: number; before: number; isOut: boolean } | undefined {
  const [places, values] = [plot.data[0], plot.data[at] ?? []];
  const { min, max } = plot.scales.x ?? {};
  for (let point = values.length - 1; point >= 0; point--) {
    const [x, value] = [places[point] ?? 0, values[point]];
    const isBelow = value === null && plot.scales.y?.distr === 3;
    if ((value == null && !isBelow) || x > (max ?? Infinity)) continue;
    if (x < (min ?? -Infinity)) return undefined;
    let half = Math.floor(point / 2);
    while (half < point && values[half] == null) half++;
    const height = plot.bbox.height / devicePixelRatio;
    const [y, before] = [value, values[half] ?? value].map((one) => (one == null ? Infinity : plot.valToPos(one, 'y'))) as [number, number];
    return { x: plot.valToPos(x, 'x'), y: Math.min(height, Math.max(0, y)), before: Math.min(height, before), isOut: y < 0 || y > height };
  }
  return undefined;
}

// Places of the x axis where a label on a curve is tried.
const LOOKED_AT = 60;

// The heights of the series with these indices at places over the width of the plot.
function columnsOf(plot: uPlot, series: readonly number[]): Column[] {
  const [from, to] = plot.series[0]?.idxs ?? [0, 0];
  const places = [...new Set(Array.from({ length: LOOKED_AT }, (_, at) => from + Math.round(((to - from) * at) / LOOKED_AT)))];
  const heightOf = (value: number | null | undefined): number | undefined => (value == null ? undefined : plot.valToPos(value, 'y'));
  return places.map((place) => ({ x: plot.valToPos(plot.data[0][place] ?? 0, 'x'), heights: series.map((one) => heightOf(plot.data[one]?.[place])) }));
}

// Draws the text of a label: with a rim, and on its curve over a gap of that.
function drawText(ctx: CanvasRenderingContext2D, label: Label, rim: string): void {
  const width = ctx.measureText(label.text).width;
  ctx.fillStyle = rim;
  if (!label.isJoined && label.middle === label.y && label.x > label.left && label.x < label.left + width) ctx.fillRect(label.left - 1, label.middle - LINE / 2, width + 2, LINE);
  ctx.strokeStyle = rim;
  ctx.lineWidth = 3;
  ctx.strokeText(label.text, label.left, label.middle);
  let left = label.left;
  for (const [at, { text, color }] of (label.names ?? []).entries()) {
    const part = at + 1 < (label.names?.length ?? 0) ? `${text}, ` : text;
    ctx.fillStyle = color;
    ctx.fillText(part, left, label.middle);
    left += ctx.measureText(part).width;
  }
}

// Draws the labels of the panel's trials, with a rim in the color of the page, and the ends of curves within the plot.
// `tags` and `colors` are by place.
export function drawEnds(plot: uPlot, panel: Pick<Panel, 'series'>, tags: readonly string[], colors: readonly string[], rim: string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const found = panel.series.flatMap(({ place }, at) => {
    const end = endOf(plot, at + 1);
    const name = { text: tags[place] ?? '', color: colors[place] ?? '' };
    return end ? [{ ...end, ...name, names: [name], at: at + 1, place, alpha: plot.series[at + 1]?.alpha ?? 1 }] : [];
  });
  const width = bbox.width / ratio;
  const ends = labeled(found).map((end, curve) => ({ ...end, curves: [curve] }));
  const series = ends.map(({ at }) => at);
  ctx.save();
  ctx.setTransform(ratio, 0, 0, ratio, bbox.left, bbox.top);
  ctx.font = FONT;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.lineJoin = 'round';
  ctx.setLineDash([]);
  for (const end of ends.filter(({ isOut, x }) => !isOut && x < width - EDGE)) {
    ctx.globalAlpha = end.alpha;
    ctx.fillStyle = end.color;
    ctx.beginPath();
    ctx.arc(end.x, end.y, END_DOT, 0, 2 * Math.PI);
    ctx.fill();
  }
  // Beside the plot is the room of single ids; curves that have left the plot have no label there.
  const besideRoom = width - EDGE;
  const longest = Math.max(...tags.map(({ length }) => length));
  const named = merged(ends, ({ text, x, isOut }) => isOut || x < besideRoom || text.length <= longest);
  const labels = placedLabels(named, width, bbox.height / ratio, coversCurve(plot, panel, series), columnsOf(plot, series));
  for (const label of labels) {
    // Curves that are not pointed at are paler than their labels.
    ctx.globalAlpha = Math.max(LEAST_ALPHA, label.alpha);
    ctx.strokeStyle = label.color;
    ctx.lineWidth = 1;
    if (label.isJoined) {
      ctx.beginPath();
      ctx.moveTo(label.x + Math.sign(label.left - label.x), label.y);
      ctx.lineTo(label.left > label.x ? label.left - 1 : label.left + ctx.measureText(label.text).width + 1, label.middle);
      ctx.stroke();
    }
    drawText(ctx, label, rim);
  }
  ctx.restore();
}
