// The y range of curves without their first values, which are often so far from the others that these would be one flat
// line. Pure.
import { bestOf } from './facts';
import type { Panel } from './series';

export interface Focus {
  range: [number, number]; // of the values in sight
  beyond: number; // the farthest value out of sight
}

// Values of this part of the x axis may be out of sight, if the others have at most that part of the whole y range.
const FIRST = 0.15;
const LEAST_GAIN = 0.6;
// Fewer points in each curve are all in sight.
const LEAST_POINTS = 10;

const extent = (values: readonly number[]): [number, number] => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity] as [number, number]);

const known = (values: readonly (number | null | undefined)[]): number[] => values.filter((one): one is number => one != null);

// Undefined if all values are in sight. The last value of each curve and the best one of all, if the better direction is
// known, are never out of it.
export function focusOf({ series }: Pick<Panel, 'series'>, smallerIsBetter?: boolean): Focus | undefined {
  if (!series.some(({ x }) => x.length >= LEAST_POINTS)) return undefined;
  const [start, end] = extent(series.flatMap(({ x }) => [x[0] ?? Infinity, x[x.length - 1] ?? -Infinity]).filter(Number.isFinite));
  const from = start + FIRST * (end - start);
  const later = series.flatMap(({ x, y, low = [], high = [] }) => x.flatMap((at, i) => (at >= from || i === x.length - 1 ? [y[i], low[i], high[i]] : [])));
  const best = smallerIsBetter === undefined ? [] : series.map((one) => bestOf(one, smallerIsBetter));
  const [low, high] = extent(known([...later, ...best]));
  const [least, most] = extent(known(series.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])])));
  if (!(high - low <= LEAST_GAIN * (most - least)) || high === low) return undefined;
  return { range: [low, high], beyond: most - high >= low - least ? most : least };
}
