// Where the rows of a run table come from: the master's search for experiments, the loaded trials of an experiment.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import * as api from '../api';
import { withEvent, type ServerEvent } from '../events';
import { useLive } from '../live';
import { usePaged, type Paged, type RowUpdates } from '../paged';
import type { Stage } from '../search/lanes';
import type { Experiment, Trial } from '../wire';
import { available, column } from './columns';
import { takeFirstRows } from './firstRows';
import { isFiner, matcher, parse, type Known, type Query } from './query';
import { inOrder, ofExperiment, ofTrial, openKeys, valueOf, type Run, type RunKind } from './runs';
import { outside } from './selection';
import { keepsOrder, keepsRows, toSearch, withIds, type View } from './view';

export interface RunSource {
  rows: Paged<Run>;
  names: string[]; // keys of all columns
  known: Known[];
  query: Query | undefined;
  mistake: boolean; // the query cannot be read, so there are no rows
  grouped: Run[] | undefined; // the rows to group
  top: Run[]; // those that stay above the others, also if the query does not find them
  beyond: Run[]; // drawn ones that the query finds, beyond the loaded rows
  cut: number | undefined; // rows that were loaded, if the master has more than are loaded at once
}

const RELOAD_GAP_MS = 300;
const SORTED_GAP_MS = 4000;
// Experiments that are loaded at once, to be grouped or filtered here: in requests of PORTION, at most MAX_LOADED.
const PORTION = 2000;
const MAX_LOADED = 20_000;
// Least milliseconds between loads of that many.
const PORTIONS_GAP_MS = 20_000;

const toKnown = (names: readonly string[], kind: RunKind): Known[] =>
  names.map((key) => ({ key, title: column(key, kind)?.title ?? key }));

// The query of a view; `mistake` if it cannot be read.
function read(text: string, known: readonly Known[]): { query: Query | undefined; mistake: boolean } {
  try {
    return { query: parse(text, known), mistake: false };
  } catch {
    return { query: undefined, mistake: true };
  }
}

// Rows in memory as a paged list.
export const inMemory = <T>(rows: readonly T[]): Paged<T> => ({
  total: rows.length,
  at: (index) => rows[index],
  loaded: () => rows as T[],
  look: () => {},
  error: undefined,
  reload: () => {},
});

const isOfRow = (event: ServerEvent): boolean => ['experiment', 'trial', 'checkpoint'].includes(event.kind);

const rowUpdates = (search: api.SearchQuery, projectId: number): RowUpdates<Run> => ({
  id: (run) => run.id,
  changedId: (event) => (isOfRow(event) ? event.experimentId : undefined),
  apply: (run, event) => {
    const experiment = withEvent(run.experiment, event);
    return experiment === run.experiment ? run : { ...run, experiment };
  },
  load: async (ids, signal) =>
    (await api.searchExperiments({ ...withIds(search, ids), projectId }, 0, ids.length, signal)).experiments.map(ofExperiment),
});

// The names of all columns that rows had so far: a query may name them when it finds nothing.
class Names {
  list = available([], 'experiment');
  private readonly keys = new Set<string>();
  private readonly seen = new WeakSet<Run>();

  // Adds the columns of new rows. Returns true if there are any.
  add(rows: readonly Run[]): boolean {
    const fresh = rows.filter((run) => !this.seen.has(run));
    for (const run of fresh) this.seen.add(run);
    const before = this.keys.size;
    for (const key of openKeys(fresh)) this.keys.add(key);
    if (this.keys.size === before) return false;
    this.list = [...available([], 'experiment'), ...[...this.keys].sort()];
    return true;
  }
}

const ANY: api.SearchQuery = { text: '', sort: '', filter: JSON.stringify({ showArchived: true }), projectId: 0 };

// The experiments with these ids that a search finds, in this order. Known ones stay while others are loaded.
function useByIds(ids: readonly number[], search: api.SearchQuery): Run[] {
  const live = useLive(
    `${ids.join()} of ${JSON.stringify(search)}`,
    async (signal) => (ids.length === 0 ? undefined : (await api.searchExperiments(withIds(search, ids), 0, ids.length, signal)).experiments.map(ofExperiment)),
    (change) => ids.length > 0 && (change === 'everything' || (isOfRow(change) && ids.includes(change.experimentId ?? 0))),
    SORTED_GAP_MS,
  );
  const known = useRef<Run[]>([]);
  if (live.data) known.current = live.data;
  return useMemo(() => ordered(known.current, ids), [known.current, ids.join()]);
}

const ordered = (runs: readonly Run[], ids: readonly number[]): Run[] => ids.flatMap((id) => runs.find((run) => run.id === id) ?? []);

// The experiments of a project, or of all (0), that the view's query finds.
export function useExperimentRuns(view: View, projectId: number): RunSource {
  const names = useMemo(() => new Names(), []);
  const { query, mistake } = read(view.text, toKnown(names.list, 'experiment'));
  const search = toSearch(query, view);
  const kept = keepsOrder(view);
  const changes = !kept || !keepsRows(query);
  const rows = usePaged<Run>(
    `experiments ${projectId} ${JSON.stringify(search)}`,
    async (offset, limit, signal) => {
      const answer = await api.searchExperiments({ ...search, projectId }, offset, limit, signal);
      return { rows: answer.experiments.map(ofExperiment), total: answer.pagination.total };
    },
    // An event of an experiment that is not in the list: a new one, or one that may match the filter now.
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState) || (changes && isOfRow(change)),
    changes ? SORTED_GAP_MS : RELOAD_GAP_MS,
    kept ? rowUpdates(search, projectId) : undefined,
    () => takeFirstRows({ ...search, projectId }),
  );
  const grouping = view.groups.length > 0;
  const finer = isFiner(query);
  const all = useAll(grouping || finer ? search : undefined, projectId);
  const top = useByIds(view.top, ANY);
  const isLoaded = rows.total !== undefined && !grouping && !finer;
  const beyond = useByIds(isLoaded ? outside(view.drawn, [...rows.loaded(), ...top]) : [], { ...search, projectId });
  const grown = names.add(rows.loaded());
  const again = useReducer((count: number) => count + 1, 0)[1];
  useEffect(() => {
    if (grown && view.text !== '') again(undefined); // the query may name these columns
  });
  const found = useMemo(() => (finer ? all.runs?.filter(matcher(query, valueOf)) : all.runs), [all.runs, finer, view.text]);
  return {
    rows: finer ? { ...inMemory(found ?? []), total: found?.length, error: all.error, reload: all.reload } : rows,
    names: names.list,
    known: useMemo(() => toKnown(names.list, 'experiment'), [names.list]),
    query,
    mistake,
    grouped: grouping ? (found ?? []) : undefined,
    top,
    beyond,
    cut: all.runs && (all.total ?? 0) > all.runs.length ? all.runs.length : undefined,
  };
}

interface Loaded {
  runs: Run[];
  total: number; // that the master has
}
interface AllRuns extends Partial<Loaded> {
  error: RunSource['rows']['error'];
  reload: () => void;
}

// Every experiment that a search finds, up to MAX_LOADED. The first load shows portions as they arrive. Reloaded when
// one of them changes.
function useAll(search: api.SearchQuery | undefined, projectId: number): AllRuns {
  const key = search ? `all ${projectId} ${JSON.stringify(search)}` : 'not all';
  const partial = useSignal<(Loaded & { key: string }) | undefined>(undefined);
  const many = useSignal(false);
  const live = useLive(
    key,
    async (signal): Promise<Loaded | undefined> => {
      if (!search) return undefined;
      let [runs, total]: [Run[], number] = [[], 0];
      while (runs.length < MAX_LOADED) {
        const answer = await api.searchExperiments({ ...search, projectId }, runs.length, PORTION, signal);
        runs = [...runs, ...answer.experiments.map(ofExperiment)];
        total = answer.pagination.total;
        if (answer.experiments.length === 0 || runs.length >= total) break;
        partial.value = { key, runs, total };
      }
      many.value = runs.length > PORTION;
      return { runs, total };
    },
    (change) => search !== undefined && (change === 'everything' || isOfRow(change)),
    many.value ? PORTIONS_GAP_MS : SORTED_GAP_MS,
  );
  const known = live.data ?? (partial.value?.key === key ? partial.value : undefined);
  return { ...(search ? known : undefined), error: live.error, reload: live.reload };
}

// The runs of a list that the view's query finds, in its order.
export function useRunsInMemory(view: View, runs: readonly Run[]): RunSource {
  const names = useMemo(() => available(runs, 'trial'), [runs]);
  const known = useMemo(() => toKnown(names, 'trial'), [names]);
  const { query, mistake } = useMemo(() => read(view.text, known), [view.text, known]);
  const order = JSON.stringify(view.sorts);
  const rows = useMemo(() => inMemory(mistake ? [] : inOrder(runs.filter(matcher(query, valueOf)), view.sorts)), [runs, query, mistake, order]);
  const top = useMemo(() => ordered(runs, view.top), [runs, view.top.join()]);
  return { rows, names, known, query, mistake, grouped: view.groups.length > 0 ? rows.loaded() : undefined, top, beyond: [], cut: undefined };
}

// The trials of an experiment. `stages`: those of a search by halving, by trial.
export function useTrialRuns(view: View, experiment: Experiment, trials: readonly Trial[], stages: ReadonlyMap<number, Stage>): RunSource {
  const runs = useMemo(() => trials.map((trial) => ({ ...ofTrial(experiment, trial), stage: stages.get(trial.id) })), [experiment, trials, stages]);
  return useRunsInMemory(view, runs);
}
