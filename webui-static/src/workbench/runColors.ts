// The colors of shown runs. A run keeps the color that it had last: in all views, and after the page was left.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { colorOfSeed, MAX_APART, seedsOf, seriesColors, themeColor, useColors } from '../colors';
import type { Group } from './groups';
import { isOnlyTrial, type Run, type RunKind } from './runs';

type Seeds = ReadonlyMap<number, number>;

// Runs with a kept color, at most: the oldest ones make room.
const MOST = 500;
const keyOf = (kind: RunKind): string => `det.colors.${kind}`;

// The seeds of a stored text; none if it cannot be read.
export function readSeeds(text: string | null): Map<number, number> {
  try {
    const pairs: unknown = JSON.parse(text ?? '[]');
    const isPair = (one: unknown): one is [number, number] => Array.isArray(one) && one.length === 2 && one.every((part) => Number.isSafeInteger(part) && part >= 0);
    return new Map(Array.isArray(pairs) ? pairs.filter(isPair) : []);
  } catch {
    return new Map();
  }
}

// With the seeds of shown runs; undefined without a change, and for runs too many to have colors of their own.
export function withShown(kept: Seeds, seeds: Seeds): Map<number, number> | undefined {
  const isSame = [...seeds].every(([id, seed]) => kept.get(id) === seed);
  return isSame || seeds.size > MAX_APART ? undefined : new Map([...[...kept].filter(([id]) => !seeds.has(id)), ...seeds].slice(-MOST));
}

function load(kind: RunKind): Map<number, number> {
  try {
    return readSeeds(localStorage.getItem(keyOf(kind)));
  } catch {
    return new Map(); // local storage is disabled
  }
}

function keep(kind: RunKind, seeds: Seeds): void {
  const all = withShown(load(kind), seeds);
  try {
    if (all) localStorage.setItem(keyOf(kind), JSON.stringify([...all]));
  } catch {
    // Local storage is full or disabled: the colors last until the page is closed.
  }
}

// The seeds that runs have unless they look like others: those that they had last. The only trial of an experiment has that
// of the experiment, whose row in the list stands for the same curves.
export function usualSeeds(runs: readonly Run[], kept: Seeds, ofExperiments: () => Seeds): Seeds {
  const only = runs.filter(isOnlyTrial);
  if (only.length === 0) return kept;
  const experiments = ofExperiments();
  return new Map([...kept, ...only.map(({ id, experiment }) => [id, experiments.get(experiment.id) ?? experiment.id] as const)]);
}

// The colors of groups, in their order: that of runs without a value is gray.
export function groupColors(groups: readonly Pick<Group, 'color' | 'isUnset'>[]): string[] {
  const own = seriesColors(groups.length);
  return groups.map(({ color, isUnset }) => (isUnset ? themeColor('--text-dim') : (own[color] ?? '')));
}

// The color of each run of `drawn`, or that of its group.
export function useColorOf(kind: RunKind, groups: readonly Group[], drawn: readonly Run[]): (id: number) => string {
  const theme = useColors();
  const kept = useMemo(() => load(kind), [kind]);
  const shown = useRef<Seeds>(new Map());
  const ids = drawn.map(({ id }) => id);
  const usual = useMemo(() => usualSeeds(drawn, kept, () => load('experiment')), [kept, ids.join()]);
  const seeds = useMemo(() => (shown.current = seedsOf(ids, shown.current, usual)), [ids.join()]);
  // Groups have colors of their own.
  const areShown = groups.length === 0;
  useEffect(() => (areShown ? keep(kind, seeds) : undefined), [seeds, areShown]);
  return useMemo(() => {
    const byGroup = new Map<number, number>();
    groups.forEach(({ runs }, place) => runs.forEach(({ id }) => seeds.has(id) && byGroup.set(id, place)));
    const ofGroups = groupColors(groups);
    const known = new Map<number, string>();
    return (id: number): string => {
      const color = known.get(id) ?? (groups.length > 0 ? ofGroups[byGroup.get(id) ?? 0] : colorOfSeed(seeds.get(id) ?? id)) ?? '';
      known.set(id, color);
      return color;
    };
  }, [theme, groups, seeds]);
}
