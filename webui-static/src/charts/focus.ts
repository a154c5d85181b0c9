// The y range in which the last values of curves can be told from each other: first values are often so far from them
// that these would be one line. And how much noisy curves are smoothed. Pure.
import { whole } from './bands';
import { bestOf, lastOf } from './facts';
import { LEAST_GAIN, smooth, SYSTEM_GROUPS, type Panel } from './series';

export interface Focus {
  range: [number, number]; // of the values in sight
  beyond: number; // the farthest value out of sight
  hidden?: number[]; // places of groups that are out of sight as a whole
}

// Parts of the x axis whose values may be out of sight: up to the last one, so that the last values of the longest
// curves fill a third of the plot. One run, which has nothing to be told from, is shown as a whole.
const STEPS_OF_AXIS = 20;
const STEPS = 4;
const FILLED = 1 / 3;
// Curves that reach this part of the x axis end at its end.
const LONG = 0.8;
// The mean of a group that ends before this part of the x axis may be out of sight.
const EARLY = 0.2;
// A first value may be this much nearer than the farthest one, as a part of the distance to the edge.
const NEAR_FIRST = 0.25;
// Curves with fewer points are all in sight.
const LEAST_POINTS = 10;

type Range = [number, number];

const NONE: Range = [Infinity, -Infinity];
const joined = ([low, high]: Range, value: number | null | undefined): Range => (value == null ? [low, high] : [Math.min(low, value), Math.max(high, value)]);
const size = ([low, high]: Range): number => high - low;

type Curves = Panel['series'];

const endOf = ({ x }: Curves[number]): number => x[x.length - 1] ?? -Infinity;
const axisOf = (series: Curves): Range => series.reduce<Range>((all, { x }) => joined(joined(all, x[0]), x[x.length - 1]), NONE);

// The curves that reach this part of the x axis.
const reaching = (series: Curves, ends: Range, part: number): Curves => series.filter((one) => endOf(one) >= ends[0] + part * size(ends));

// The ranges of the values from each step of the x axis on.
function rangesFrom(series: Curves, ends: Range, always: readonly (number | null | undefined)[]): Range[] {
  const within = Array.from({ length: STEPS + 1 }, (): Range => NONE);
  for (const { x, y, low, high } of series)
    x.forEach((place, at) => {
      const step = Math.min(STEPS, Math.floor((STEPS_OF_AXIS * (place - ends[0])) / size(ends)) || 0);
      for (const value of [y[at], low?.[at], high?.[at]]) within[step] = joined(within[step] ?? NONE, value);
    });
  within[STEPS] = always.reduce(joined, within[STEPS] ?? NONE);
  for (let step = STEPS - 1; step >= 0; step--) within[step] = (within[step + 1] ?? NONE).reduce<Range>(joined, within[step] ?? NONE);
  return within;
}

// Whether what is out of sight of each curve is the way from its first value: the peak of a learning rate is not.
const comesFromFirst = ([low, high]: Range) => ({ y }: Curves[number]): boolean => {
  const first = y.find((value) => value !== null) ?? low;
  const [least, most] = y.reduce<Range>(joined, NONE);
  const isNear = (value: number, edge: number): boolean => Math.abs(value - first) <= NEAR_FIRST * Math.abs(value - edge);
  return (most <= high || isNear(most, high)) && (least >= low || isNear(least, low));
};

// The range of the values of the later half of curves.
function noiseBand(series: Curves): number {
  let range = NONE;
  for (const { y } of series) for (let at = y.length >> 1; at < y.length; at++) range = joined(range, y[at]);
  return size(range);
}

// The value of a curve at half of its points.
const halfOf = ({ y }: Curves[number]): number | null | undefined => y[y.length >> 1];

// The range in which noise fills a third of the plot at most and these values are in sight; undefined if it gains little. `calm` has
// the last values as they are smoothed.
function focusWith(series: Curves, calm: ReadonlyMap<Curves[number], number | null | undefined>, smoothing: number, always: readonly (number | null | undefined)[]): Focus | undefined {
  const ends = axisOf(series);
  const ranges = rangesFrom(series, ends, always);
  const long = reaching(series, ends, LONG);
  const spread = size(long.map((one) => calm.get(one)).reduce(joined, NONE));
  const noise = smoothing > 0 ? noiseBand(long) : 0;
  const wide = ranges.filter((range) => noise <= FILLED * size(range));
  const found = wide.find((range) => spread >= FILLED * size(range)) ?? wide[wide.length - 1] ?? ranges[0] ?? NONE;
  const [[least, most], [low, high]] = [ranges[0] ?? NONE, found];
  if (high - low > LEAST_GAIN * (most - least) || high === low || !series.every(comesFromFirst(found))) return undefined;
  const isHidden = ({ y }: Curves[number]): boolean => y.every((value) => value === null || value < low || value > high);
  const hidden = [...new Set(series.filter(isHidden).map(({ place }) => place))].filter((place) => series.every((one) => one.place !== place || isHidden(one)));
  return { range: found, beyond: most - high >= low - least ? most : least, ...(hidden.length > 0 ? { hidden } : {}) };
}

// Undefined if all values are in sight. The last value of each lasting curve, also as it is smoothed, and the best value of all, if
// the better direction is known, are never out of it; nor is the end of a curve behind the others: a trial that a search stopped
// early does not vanish. So is the later half of each lasting curve, where that leaves others to be cropped: a run that began late
// has the values there that others have first. Depends on the curves alone, so that each load of a page shows them alike.
export function focusOf({ series: parts, behind = [] }: Pick<Panel, 'series' | 'behind'>, smallerIsBetter?: boolean, smoothing = 0): Focus | undefined {
  const series = whole(parts);
  const isOne = series.every(({ trial }) => trial === series[0]?.trial);
  if (isOne || !series.some(({ x }) => x.length >= LEAST_POINTS)) return undefined;
  const ends = axisOf(series);
  // A group that ends early, such as that of a failed run, would keep the others from being told apart.
  const lasting = series.filter((one) => one.low === undefined || endOf(one) >= ends[0] + EARLY * size(ends));
  const calm = new Map(series.map((one) => [one, smooth(one.y, smoothing)[one.y.length - 1]]));
  const last = [...lasting, ...behind].map(lastOf);
  const best = smallerIsBetter === undefined ? [] : lasting.map((one) => bestOf(one, smallerIsBetter));
  const always = [...last, ...best, ...lasting.map((one) => calm.get(one))];
  return focusWith(series, calm, smoothing, [...always, ...lasting.map(halfOf)]) ?? focusWith(series, calm, smoothing, always);
}

// Points of a curve that are looked at, at least. Changes are noise from this part of the differences on, or, of one run, from
// this part of its course on; less than the last part of the values in sight cannot be seen.
const LEAST_CHANGES = 16;
const NOISE = 0.5;
const NOISE_OF_ONE = 0.2;
const VISIBLE = 0.009;
// Curves that reach this part of the x axis are compared, if fewer than two are longer.
const SHARED = 0.4;
// Curves with this many points have half of the weight in the past.
const HALF = 20;

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);

// How far the values are from the line between those before and after them: the slope of a curve is not noise.
const noiseOf = (y: readonly number[]): number =>
  mean(y.slice(1, -1).map((value, at) => Math.abs(value - ((y[at] ?? value) + (y[at + 2] ?? value)) / 2)));

// How far a curve comes from the first half of these values to the second one.
const courseOf = (y: readonly number[]): number => Math.abs(mean(y.slice(0, y.length / 2)) - mean(y.slice(y.length / 2)));

// The weight of the past for curves that visibly change from point to point, compared with the differences of their runs; 0
// for others. The later half of the part that long ones share is looked at. One run is shown as a whole and has no other to
// differ from, so its course counts. Measurements of the machine change by themselves.
export function steadiness({ series: parts }: Pick<Panel, 'series'>): number {
  const series = whole(parts);
  if (series.length === 0 || series.some(({ group }) => SYSTEM_GROUPS.includes(group))) return 0;
  const isOne = series.every(({ trial }) => trial === series[0]?.trial);
  const ends = axisOf(series);
  const longest = reaching(series, ends, LONG);
  const long = longest.length > 1 ? longest : reaching(series, ends, SHARED);
  const shared = Math.min(...long.map(endOf));
  const halves = long
    .map(({ x, y }) => y.filter((value, at): value is number => value !== null && (x[at] ?? 0) <= shared && (x[at] ?? 0) >= (ends[0] + shared) / 2))
    .filter(({ length }) => length >= LEAST_CHANGES);
  if (halves.length < (isOne ? 1 : 2)) return 0;
  const noise = mean(halves.map(noiseOf));
  const values = (isOne ? series.flatMap(({ y }) => y) : halves.flat()).reduce(joined, NONE);
  const points = mean(long.map(({ y }) => y.length));
  const least = isOne ? NOISE_OF_ONE * mean(halves.map(courseOf)) : NOISE * size(halves.map(mean).reduce(joined, NONE));
  const isNoisy = noise > VISIBLE * size(values) && noise >= least;
  return isNoisy ? points / (points + HALF) : 0;
}
