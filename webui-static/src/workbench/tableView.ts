// The rows and columns that the view of a workbench shows.
import { useMemo } from 'preact/hooks';
import type { Paged } from '../paged';
import { onPhone } from '../phone';
import { isEnded } from '../format';
import { aligned, column, DEFAULT_COLUMNS, retitled, titled, usualColumns, withBest, type Column } from './columns';
import { groupsOf, inGroups, type Group } from './groups';
import type { Item } from './RunTable';
import type { Run } from './runs';
import { drawnRuns, MAX_DRAWN } from './selection';
import { inMemory } from './sources';
import { targetOf, targetTitle } from './target';
import type { View } from './view';
import type { WorkbenchProps } from './Workbench';

// Groups and their runs as rows; those of closed groups are left out.
const itemsOf = (groups: readonly Group[], closed: ReadonlySet<string>): Item[] =>
  groups.flatMap((group): Item[] => [{ group }, ...(closed.has(group.key) ? [] : group.runs.map((run) => ({ run })))]);

const wrap = (run: Run | undefined): Item | undefined => run && { run };

// The rows of a workbench: groups, those that are known, and those that are drawn.
export interface ViewRows {
  groups: Group[];
  items: Paged<Item>; // of the table
  found: readonly Run[]; // by the query, in the order of the table, as far as they are loaded
  top: Run[]; // stay above the others
  loaded: readonly Run[]; // found ones, after those above that the query does not find, and before drawn ones out of sight
  drawn: readonly Run[];
  single: boolean; // there is one run in all
}

export function useRows({ source, objective }: WorkbenchProps, view: View, closed: ReadonlySet<string>): ViewRows {
  const groupKeys = view.groups.join();
  const sortKey = JSON.stringify(view.sorts[0]);
  const groups = useMemo(() => groupsOf(source.grouped ?? [], view.groups, view.sorts[0]), [source.grouped, groupKeys, sortKey]);
  const grouped = useMemo(() => (groups.length > 0 ? inMemory(itemsOf(groups, closed)) : undefined), [groups, closed]);
  const found = source.grouped ?? source.rows.loaded();
  const top = source.top.map((run) => found.find(({ id }) => id === run.id) ?? run);
  // A run that is drawn stays known when it is out of sight.
  const above = top.filter(({ id }) => !found.some((run) => run.id === id));
  const { beyond } = source;
  const loaded = above.length + beyond.length > 0 ? [...above, ...found, ...beyond] : found;
  return {
    groups,
    // Rows that the master has not sent yet are undefined.
    items: grouped ?? { ...source.rows, at: (index) => wrap(source.rows.at(index)), loaded: () => [] },
    found,
    top,
    loaded,
    // A group is drawn with all of its runs.
    drawn: groups.length > 0 && !view.drawn ? loaded.slice(0, MAX_DRAWN) : drawnRuns(loaded, view.drawn, view.top, objective?.smallerIsBetter),
    single: source.rows.total === 1 && view.text === '' && groups.length === 0 && above.length === 0,
  };
}

// The keys of the columns: those that the user chose, those of the page, or the usual ones. Labels of groups have the values
// of the columns that they are made by.
export function keysOf({ kind, columns }: WorkbenchProps, view: View, loaded: readonly Run[], isBeside: boolean): string[] {
  const usual = kind === 'experiment' && !onPhone() ? usualColumns(loaded, isBeside, innerWidth) : DEFAULT_COLUMNS[kind];
  return (view.columns ?? columns ?? usual).filter((key) => key === 'id' || !view.groups.includes(key));
}

// The columns of these keys, pinned ones first.
export function columnsOf({ kind, source, objective }: WorkbenchProps, view: View, { loaded, groups }: ViewRows, keys: readonly string[]): Column[] {
  const ordered = [...keys.filter((key) => view.pins.includes(key)), ...keys.filter((key) => !view.pins.includes(key))];
  const isOneMetric = new Set(loaded.slice(0, 200).map(({ experiment }) => experiment.searcherMetric)).size === 1;
  const judged = isOneMetric && loaded.length === source.rows.total ? objective : undefined;
  return ordered
    .map((key) => column(key, kind))
    .filter((one): one is Column => one !== undefined)
    .map((one) => aligned(titled(one, isOneMetric ? objective?.metric : undefined), loaded))
    .map((one) => (judged ? withBest(one, loaded, judged.smallerIsBetter) : one))
    .map((one) => (one.key === 'batches' ? withTarget(one, loaded) : one))
    .map((one) => inGroups(one, groups));
}

// The column of batches with the length to which the trials of a running search train.
function withTarget(one: Column, runs: readonly Run[]): Column {
  const [first] = runs;
  if (!first || isEnded(first.experiment.state) || runs.some(({ experiment }) => experiment.id !== first.experiment.id)) return one;
  const target = targetOf(first.experiment, runs.flatMap(({ trial }) => trial ?? []));
  return target ? retitled(one, targetTitle(one.title, target)) : one;
}
