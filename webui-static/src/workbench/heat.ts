// Heat map of numeric columns in run tables. Pure.
import { isOpen, numberOf, type Run } from './runs';

const FIXED: readonly string[] = ['progress', 'duration', 'numTrials', 'searcherMetricsVal', 'checkpointCount', 'checkpointSize', 'batches', 'restarts'];

export const mayHeat = (key: string): boolean => FIXED.includes(key) || isOpen(key);

export type Heat = (key: string, run: Run) => string;

// The CSS class of a cell: "heat-0" for the smallest value of these rows to "heat-4"; "" without a number.
export function heatOf(keys: readonly string[], runs: readonly Run[]): Heat {
  const ranges = new Map(
    keys.filter(mayHeat).map((key) => {
      let [low, high] = [Infinity, -Infinity];
      for (const run of runs) {
        const value = numberOf(run, key);
        if (value === undefined) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
      return [key, { low, high }];
    }),
  );
  return (key, run) => {
    const range = ranges.get(key);
    const value = range && numberOf(run, key);
    if (!range || value === undefined) return '';
    const part = range.high > range.low ? (value - range.low) / (range.high - range.low) : 0;
    return `heat-${Math.min(4, Math.floor(part * 5))}`;
  };
}
