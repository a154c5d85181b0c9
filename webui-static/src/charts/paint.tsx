// Colors of trials in the charts of hyperparameters and of the search: those of the runs as in the table, or by the
// metric.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { useQuery } from '../address';
import type { Trial } from '../wire';
import { metricOf, ranks, share, type Dimension } from './dimensions';

// Marks have colors of the metric, or those of the drawn runs, by the ids of their trials.
export const Colors = createContext<{ byMetric: boolean; runs: ReadonlyMap<number, string> }>({ byMetric: true, runs: new Map() });

const STEPS = 5;

// Five steps from best to worst.
export const shade = (rank: number | undefined): string => (rank === undefined ? 'shade-none' : `shade-${Math.min(STEPS - 1, Math.floor(rank * STEPS))}`);

// The class of a mark, and the color of a run. Set as a property: the content security policy forbids style attributes.
export interface Paint {
  class: string;
  style?: { '--shade': string };
}

export interface Painting {
  byMetric: boolean;
  of: (trial: number) => Paint;
  isDrawn: (trial: number) => boolean; // its run is shown
  order: (trials: readonly Trial[]) => Trial[]; // the most important ones last, on top
}

// How the trials are painted. Runs that are not drawn are pale.
export function usePainting(trials: readonly Trial[], smallerIsBetter: boolean): Painting {
  const { byMetric, runs } = useContext(Colors);
  const rank = ranks(trials, smallerIsBetter);
  const weight = (id: number): number => (byMetric ? 2 - (rank.get(id) ?? 2) : Number(runs.has(id)));
  return {
    byMetric,
    isDrawn: (id) => runs.has(id),
    of: (id) => {
      const color = runs.get(id);
      return byMetric ? { class: shade(rank.get(id)) } : color ? { class: 'of-run', style: { '--shade': color } } : { class: 'shade-none' };
    },
    order: (all) => [...all].sort((a, b) => weight(a.id) - weight(b.id)),
  };
}

const COLORINGS = ['run', 'metric'] as const;
export type Coloring = (typeof COLORINGS)[number];

export function ColorBy({ color, usual }: { color: Coloring; usual: Coloring }) {
  const { setQuery } = useQuery();
  return (
    <span class="color-by" role="group" aria-label="Color by">
      <span class="quiet">Color by</span>
      <span class="segments">
        {COLORINGS.map((one) => (
          <button type="button" key={one} aria-pressed={one === color} onClick={() => setQuery({ color: one === usual ? '' : one })}>
            {one}
          </button>
        ))}
      </span>
    </span>
  );
}

// The values of the metric at the fifths of the ranks, from best to worst: STEPS + 1 ends of the steps of color. Empty for
// less than two trials with a metric.
export function fifths(trials: readonly Trial[], smallerIsBetter: boolean): number[] {
  const values = trials.map(metricOf).filter((value) => value !== undefined).sort((a, b) => (smallerIsBetter ? a - b : b - a));
  const last = values.length - 1;
  // Between the last trial of a step and the first of the next one, as shade() has them.
  const edge = (step: number): number => {
    const next = Math.ceil((step * last) / STEPS);
    return ((values[Math.max(0, next - 1)] ?? 0) + (values[next] ?? 0)) / 2;
  };
  return last < 1 ? [] : [values[0] ?? 0, ...Array.from({ length: STEPS - 1 }, (_, at) => edge(at + 1)), values[last] ?? 0];
}

// The classes of values in the steps of color of these trials.
export function shadesOf(trials: readonly Trial[], smallerIsBetter: boolean): (value: number) => string {
  const edges = fifths(trials, smallerIsBetter).slice(1, -1);
  return (value) => `shade-${edges.filter((edge) => (smallerIsBetter ? value >= edge : value < edge)).length}`;
}

// The values between the steps of color, ascending.
export const levelsOf = (trials: readonly Trial[], smallerIsBetter: boolean): number[] =>
  [...new Set(fifths(trials, smallerIsBetter).slice(1, -1))].sort((a, b) => a - b);

// The steps of the colors along the axis of the metric, as parts 0..1 of it.
export function colorBar(trials: readonly Trial[], axis: Dimension, smallerIsBetter: boolean): { class: string; from: number; to: number }[] {
  const ends = fifths(trials, smallerIsBetter).map((value) => share(axis, value));
  return ends.slice(1).map((other, step) => {
    const one = ends[step] ?? other;
    return { class: `shade-${step}`, from: Math.min(one, other), to: Math.max(one, other) };
  });
}
