// Heat map of numeric columns in the experiment table. Pure.
import { isOpen, openValue } from './columns';
import type { FoundExperiment, JsonValue } from './wire';

const OWN: Record<string, (one: FoundExperiment) => JsonValue | undefined> = {
  progress: ({ experiment }) => experiment.progress,
  duration: ({ experiment }) => experiment.duration,
  numTrials: ({ experiment }) => experiment.numTrials,
  searcherMetricsVal: ({ experiment }) => experiment.bestTrialSearcherMetric,
  checkpointCount: ({ experiment }) => experiment.checkpointCount,
  checkpointSize: ({ experiment }) => Number(experiment.checkpointSize),
};

export const mayHeat = (key: string): boolean => key in OWN || isOpen(key);

export function numberOf(key: string, one: FoundExperiment): number | undefined {
  const value = isOpen(key) ? openValue(key, one) : OWN[key]?.(one);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export type Heat = (key: string, one: FoundExperiment) => string;

// The CSS class of a cell: "heat-0" for the smallest value of these rows to "heat-4"; "" without a number.
export function heatOf(keys: readonly string[], rows: readonly FoundExperiment[]): Heat {
  const ranges = new Map(
    keys.map((key) => {
      const values = rows.map((one) => numberOf(key, one)).filter((value): value is number => value !== undefined);
      return [key, { low: Math.min(...values), high: Math.max(...values) }];
    }),
  );
  return (key, one) => {
    const range = ranges.get(key);
    const value = range && numberOf(key, one);
    if (!range || value === undefined) return '';
    const part = range.high > range.low ? (value - range.low) / (range.high - range.low) : 0;
    return `heat-${Math.min(4, Math.floor(part * 5))}`;
  };
}
