// A brush over an axis as conditions of the query, and back. Pure.
import type { Query } from '../workbench/query';
import { share, type Dimension } from './dimensions';

// Digits of the bounds that a brush sets.
const DIGITS = 4;

function valueAt({ kind, min, max }: Dimension, part: number): number {
  const value = kind === 'log' ? min * (max / min) ** part : min + (max - min) * part;
  return Number(value.toPrecision(DIGITS));
}

// The conditions that a column's value lies between two parts (0..1) of its axis.
export function brushTests(dimension: Dimension, column: string, low: number, high: number): Query[] {
  if (dimension.kind === 'words') {
    const last = Math.max(1, dimension.words.length - 1);
    const values = dimension.words.filter((_, at) => at / last >= low && at / last <= high);
    return values.length === 0 ? [] : [{ kind: 'test', column, operator: 'in', values }];
  }
  return [
    { kind: 'test', column, operator: '>=', values: [String(valueAt(dimension, low))] },
    { kind: 'test', column, operator: '<=', values: [String(valueAt(dimension, high))] },
  ];
}

// The part of the axis that the query keeps: [low, high]; undefined without conditions on the column.
export function brushed(query: Query | undefined, column: string, dimension: Dimension): [number, number] | undefined {
  const all = query?.kind === 'and' ? query.all : query ? [query] : [];
  const own = all.filter((one) => one.kind === 'test' && one.column === column);
  if (own.length === 0) return undefined;
  let [low, high] = [0, 1];
  for (const one of own) {
    if (one.kind !== 'test') continue;
    const [value] = one.values;
    if (dimension.kind === 'words') {
      const places = one.values.map((text) => dimension.words.indexOf(text)).filter((at) => at >= 0);
      const last = Math.max(1, dimension.words.length - 1);
      [low, high] = [Math.min(...places) / last, Math.max(...places) / last];
    } else if (one.operator.startsWith('>')) low = share(dimension, Number(value));
    else if (one.operator.startsWith('<')) high = share(dimension, Number(value));
  }
  const within = (part: number): number => (Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 0);
  return [within(low), within(high)];
}
