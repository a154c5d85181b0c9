// Facts about a chart's curves for its title: line styles, last and best values, curves that coincide. Pure.
import { isWide } from './dimensions';
import type { Panel, Series } from './series';

export interface Style {
  width: number; // pixels
  opacity: number;
  dash?: number[]; // dashes and gaps, pixels; missing for a solid line
}

const ALONE: Style = { width: 1.5, opacity: 1 };
const VALIDATION: Style = { width: 1.75, opacity: 1 };
const OTHER: Style = { width: 1.5, opacity: 1, dash: [2, 2] };
// Training beside validation.
const TRAINING: Style = { width: 1.25, opacity: 0.75 };

// The line style of a group of metrics. Validation, which is compared, is stronger than training beside it.
export function styleOf({ series }: Pick<Panel, 'series'>, group: string): Style {
  if (series.every((one) => one.group === group)) return ALONE;
  if (group === 'validation') return VALIDATION;
  if (group !== 'training') return OTHER;
  return series.every((one) => one.group !== 'validation') ? ALONE : TRAINING;
}

// Whether a curve is as strong as others of its panel.
export const isLoud = (style: Style | undefined): boolean => style?.opacity === 1;

// The groups with a key in the title: all, unless each curve is solid.
export function keyedGroups(panel: Pick<Panel, 'series'>): string[] {
  const groups = [...new Set(panel.series.map(({ group }) => group))];
  return groups.length > 1 || groups.includes('validation') ? groups : [];
}

// Whether the curves are means of groups with bands around them.
export const isBanded = (panel: Pick<Panel, 'series'>): boolean => panel.series.some(({ low }) => low !== undefined);

// The last finite value of a curve.
export function lastOf({ y }: Pick<Series, 'y'>): number | undefined {
  for (let at = y.length - 1; at >= 0; at--) {
    const value = y[at];
    if (value != null) return value;
  }
  return undefined;
}

// The index of the best finite value of a curve, the first of equal ones.
export function placeOfBest({ y }: Pick<Series, 'y'>, smallerIsBetter: boolean): number | undefined {
  let best: number | undefined;
  y.forEach((value, at) => {
    const known = best === undefined ? null : (y[best] ?? null);
    if (value != null && (known === null || (smallerIsBetter ? value < known : value > known))) best = at;
  });
  return best;
}

export function bestOf(series: Pick<Series, 'y'>, smallerIsBetter: boolean): number | undefined {
  const at = placeOfBest(series, smallerIsBetter);
  return at === undefined ? undefined : (series.y[at] ?? undefined);
}

// Whether the curves are of one trial.
export const isOfOne = ({ series }: Pick<Panel, 'series'>): boolean => series.every(({ trial, low }) => trial === series[0]?.trial && low === undefined);

// The curve with the best value of a trial: validation, or else the only one.
export const judged = ({ series }: Pick<Panel, 'series'>): Series | undefined =>
  series.find(({ group }) => group === 'validation') ?? (series.length === 1 ? series[0] : undefined);

// Without the later parts of means, which are of fewer runs: a rate is near zero there.
const wholly = (series: readonly Series[]): Series[] => series.filter(({ isPartial }) => !isPartial);

// Names of learning rates, which are compared by orders of magnitude. Their axis begins at the lowest peak divided by BELOW,
// because a logarithmic axis has no place for a rate that decays to zero.
export const RATE = /(^|[/_. ])(lr|learning_rate)([/_.\d]|$)/;
const BELOW = 4;

// The range of a logarithmic axis for the learning rates of several runs, or for the means of groups, whose peaks are wide
// apart; undefined for others. The lower edge of a band, a mean without its deviation, may be at any small value.
export function rateRange({ name, series: parts, behind = [] }: Panel): [number, number] | undefined {
  if (!RATE.test(name)) return undefined;
  const series = wholly(parts);
  const peakOf = (y: readonly (number | null)[]): number => y.reduce((most: number, value) => Math.max(most, value ?? 0), 0);
  const peaks = [...series, ...behind].flatMap(({ y, high = y }) => [peakOf(y), peakOf(high)]).filter((peak) => peak > 0);
  const [low, high] = [Math.min(...peaks), Math.max(...peaks)];
  return isWide(low, high) ? [low / BELOW, high] : undefined;
}

// Whether a learning rate decays to below the range.
export const isBelow = ({ series }: Pick<Panel, 'series'>, [low]: readonly [number, number]): boolean => series.some((one) => (lastOf(one) ?? Infinity) < low);

// The value of a curve at a position, interpolated; undefined outside its range and in gaps.
export function valueAt({ x, y }: Pick<Series, 'x' | 'y'>, at: number): number | undefined {
  let [low, high] = [0, x.length - 1];
  if (high < 0 || at < (x[0] ?? 0) || at > (x[high] ?? 0)) return undefined;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((x[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const [right, after] = [x[low] ?? 0, y[low]];
  if (after == null) return undefined;
  if (right === at || low === 0) return after;
  const [left, before] = [x[low - 1] ?? 0, y[low - 1]];
  return before == null ? undefined : before + ((after - before) * (at - left)) / (right - left);
}

// Curves of larger panels are not compared. Points of a curve that are, the part of them that has to lie on another
// curve, and the distance at which they do, as a part of the range of all values.
const MAX_COMPARED = 16;
const SAMPLE = 64;
const PART = 0.95;
const NEAR = 0.004;

// Whether nearly all points of `hidden` lie on `other`, so that only one of the two can be seen.
function isHidden(hidden: Series, other: Series, near: number): boolean {
  const step = Math.max(1, Math.floor(hidden.x.length / SAMPLE));
  const at = hidden.x.map((_, place) => place).filter((place) => place % step === 0 && hidden.y[place] != null);
  const lying = at.filter((place) => {
    const value = valueAt(other, hidden.x[place] ?? 0);
    return value !== undefined && Math.abs(value - (hidden.y[place] ?? 0)) <= near;
  });
  return at.length > 0 && lying.length >= PART * at.length;
}

// Whether the curves of a set are equal as far as they reach.
export const areEqual = ([first, ...others]: readonly Series[]): boolean => first === undefined || others.every((one) => isHidden(one, first, 0) || isHidden(first, one, 0));

// The sets of curves of one group of metrics that hide each other, the largest first; none if all can be seen. `logFrom`: the
// least value in sight of a logarithmic axis; undefined for a linear one.
export function coinciding({ series: parts }: Pick<Panel, 'series'>, logFrom?: number): Series[][] {
  const heightOf = (value: number | null): number | null => (logFrom === undefined || value === null ? value : value >= logFrom ? Math.log(value) : null);
  const series = wholly(parts).map((one) => ({ ...one, y: one.y.map(heightOf) }));
  if (series.length < 2 || series.length > MAX_COMPARED) return [];
  let [low, high] = [Infinity, -Infinity];
  for (const { y } of series) for (const value of y) if (value != null) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const near = NEAR * (high - low);
  const sets: Series[][] = [];
  for (const one of series) {
    const hiding = (other: Series): boolean => other.group === one.group && (isHidden(one, other, near) || isHidden(other, one, near));
    const joined = sets.filter((set) => set.some(hiding));
    for (const set of joined) sets.splice(sets.indexOf(set), 1);
    sets.push([...joined.flat(), one]);
  }
  return sets.filter(({ length }) => length > 1).sort((a, b) => b.length - a.length);
}

// Names of metrics before the first "/", without digits: "layer01/norm" and "layer02/norm" are of one section.
const SECTION = /^[^/]+(?=\/)/;

export interface Section {
  key: string; // '' for metrics without a prefix
  title: string; // "layer01/", or "layer…/" of several prefixes
  panels: Panel[];
}

// Panels by prefix, in the order of their first panels.
export function sectionsOf(panels: readonly Panel[]): Section[] {
  const found = new Map<string, { prefixes: Set<string>; panels: Panel[] }>();
  for (const panel of panels) {
    const prefix = SECTION.exec(panel.name)?.[0] ?? '';
    const key = prefix.replace(/\d+/g, '') || prefix;
    const own = found.get(key) ?? { prefixes: new Set(), panels: [] };
    found.set(key, own);
    own.prefixes.add(prefix);
    own.panels.push(panel);
  }
  return [...found].map(([key, { prefixes, panels: own }]) => ({
    key,
    title: key === '' ? '' : prefixes.size === 1 ? `${[...prefixes][0]}/` : `${key}…/`,
    panels: own,
  }));
}
