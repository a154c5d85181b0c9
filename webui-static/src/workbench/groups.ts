// Groups of runs with equal values in some columns, and what their rows show of a column. Pure.
import { counted, grouped, isEnded, metric } from '../format';
import type { JsonValue } from '../wire';
import { cellWidth, valueText, type Column } from './columns';
import { isNumber, isSearch, readerOf, type Run } from './runs';
import type { Sort } from './view';

export interface Group {
  key: string; // its values as JSON
  label: string; // "act = relu, lr = 0.1"
  tag: string; // "relu 0.1", at the end of its curve
  color: number; // its place among the labels in alphabetical order: groups have the same colors in any order of the rows
  runs: Run[];
  isUnset: boolean; // none of its runs has a value in these columns
  byHyperparameter: boolean; // searches are in it by their best trials
}

const NOT_SET = 'not set';

const short = (column: string): string => column.replace(/^(hp|metadata)\./, '');

// The JSON of values that are often equal.
function jsonOnce(): (value: JsonValue | undefined) => string {
  const known = new Map<JsonValue, string>();
  return (value = null) => {
    const text = known.get(value) ?? JSON.stringify(value);
    if (typeof value !== 'object') known.set(value, text);
    return text;
  };
}

// Groups in the order of their means in the column that the runs are sorted by, or else of their first runs; that without
// values comes last. Without columns there are none.
export function groupsOf(runs: readonly Run[], columns: readonly string[], sort?: Sort): Group[] {
  if (columns.length === 0) return [];
  const found = new Map<string, Group>();
  const readers = columns.map(readerOf);
  const asJson = jsonOnce();
  const byHyperparameter = columns.some((column) => column.startsWith('hp.'));
  for (const run of runs) {
    const values = readers.map((read) => read(run));
    const key = `[${values.map(asJson).join()}]`;
    const group = found.get(key);
    if (group) group.runs.push(run);
    else {
      const texts = values.map((value) => valueText(value) || NOT_SET);
      const label = columns.map((column, at) => `${short(column)} = ${texts[at]}`).join(', ');
      found.set(key, { key, label, tag: texts.join(' '), color: 0, runs: [run], isUnset: texts.every((text) => text === NOT_SET), byHyperparameter });
    }
  }
  const unsetLast = (a: Group, b: Group): number => Number(a.isUnset) - Number(b.isUnset);
  const groups = [...found.values()].sort(unsetLast);
  const byLabel = [...groups].sort((a, b) => unsetLast(a, b) || a.label.localeCompare(b.label, 'en', { numeric: true }));
  byLabel.forEach((group, at) => (group.color = at));
  if (!sort) return groups;
  const means = new Map(groups.map((group) => [group, spread(group.runs, sort.column)?.mean]));
  // Groups without a number come last.
  const off = (a: Group, b: Group): number => {
    const [one, other] = [means.get(a), means.get(b)];
    if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
    return sort.descending ? other - one : one - other;
  };
  return groups.sort((a, b) => unsetLast(a, b) || off(a, b));
}

// The searches of a group whose other trials may belong to other groups.
export const searchesByBest = ({ runs, byHyperparameter }: { runs: readonly Run[]; byHyperparameter: boolean }): number =>
  byHyperparameter ? runs.filter(isSearch).length : 0;

// "mean of 12 (3 searches)" of the runs in the mean, "mean of 9 ended" beside runs that have not ended, "mean of 9 of 12" where
// some runs have no number in the column of means, and "mean of 9, 1 failed"; "mean of 9/12" of all without room for more, and
// "4, one with a value".
export function sizeText(group: Pick<Group, 'runs' | 'byHyperparameter'>, column: Pick<Column, 'key' | 'inGroup'> | undefined, hasRoom: boolean): string {
  const { runs, byHyperparameter } = group;
  const all = grouped(runs.length);
  const hasMean = column !== undefined && column.inGroup !== 'range';
  const used = hasMean ? inMean(runs, column.key) : runs;
  const known = column?.inGroup === 'range' ? runs.length : column && spread(runs, column.key)?.count;
  if (!hasRoom) return hasMean && runs.length > 1 && known !== undefined ? (known < 2 ? `${grouped(known)} of ${all}` : `mean of ${known === runs.length ? all : `${grouped(known)}/${all}`}`) : `×${all}`;
  const searches = searchesByBest({ runs: used, byHyperparameter });
  const failed = hasMean && used.every(({ state }) => state !== 'STATE_ERROR') ? runs.filter(({ state }) => state === 'STATE_ERROR').length : 0;
  const more = searches === 0 ? '' : ` (${searches === 1 ? 'one search' : `${grouped(searches)} searches`})`;
  if (known === undefined || runs.length === 1) return all + more;
  if (known < 2) return `${all}, ${known === 1 ? 'one' : 'none'} with a value${more}`;
  return `mean of ${known === used.length ? grouped(known) : `${grouped(known)} of ${grouped(used.length)}`}${used.length + failed < runs.length ? ' ended' : ''}${failed > 0 ? `, ${grouped(failed)} failed` : ''}${more}`;
}

export interface Spread {
  count: number;
  mean: number;
  deviation: number; // of the sample; 0 for one value
}

// Mean and standard deviation of numbers; undefined for none. Welford's method.
export function spreadOf(values: readonly number[]): Spread | undefined {
  let [count, mean, squares] = [0, 0, 0];
  for (const value of values) {
    count++;
    const off = value - mean;
    mean += off / count;
    squares += off * (value - mean);
  }
  return count === 0 ? undefined : { count, mean, deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0 };
}

// Decimal places that show two digits of a deviation; undefined where an exponent is shorter.
export const placesOf = (deviation: number): number | undefined =>
  deviation >= 1e-4 && deviation < 1e6 ? Math.max(0, 1 - Math.floor(Math.log10(deviation))) : undefined;

// "0.0012", "0.030", "120", "3.4e-5", "0".
export function deviationText(deviation: number): string {
  const places = placesOf(deviation);
  return places === undefined ? (deviation === 0 ? '0' : deviation.toExponential(1)) : deviation.toFixed(places);
}

// "11 of 12 runs · mean 0.84589 ± 0.031 · min 0.79735 · median 0.83809 · max 0.88092"; '' if no run has a number in the
// column.
export function spreadText(runs: readonly Run[], { key, text = metric, deviation = deviationText }: Pick<Column, 'key' | 'text' | 'deviation'>): string {
  const values = runs.map(readerOf(key)).filter(isNumber).sort((a, b) => a - b);
  const own = spreadOf(values);
  if (!own) return '';
  const [low, high] = [values[Math.ceil(values.length / 2) - 1] ?? 0, values[Math.floor(values.length / 2)] ?? 0];
  const count = own.count < runs.length ? `${own.count} of ${counted(runs.length, 'run')}` : counted(own.count, 'run');
  const mean = `mean ${text(own.mean)}${own.count > 1 ? ` ± ${deviation(own.deviation)}` : ''}`;
  return [count, mean, `min ${text(values[0] ?? 0)}`, `median ${text((low + high) / 2)}`, `max ${text(values[values.length - 1] ?? 0)}`].join(' · ');
}

// The runs that count in the mean of a column: those that have ended and not failed, if one of them has a number there. The
// metrics of others are on the way, and the mean would tell how far they are.
function inMean(runs: readonly Run[], column: string): readonly Run[] {
  const read = readerOf(column);
  const [ended, whole] = [runs.filter(({ state }) => isEnded(state)), runs.filter(({ state }) => isEnded(state) && state !== 'STATE_ERROR')];
  return [whole, ended].find((some) => some.some((run) => isNumber(read(run)))) ?? runs;
}

// Mean and deviation of a column; undefined if no run has a number there.
export const spread = (runs: readonly Run[], column: string): Spread | undefined => spreadOf(inMean(runs, column).map(readerOf(column)).filter(isNumber));

// The range of a column, "0.001–0.1", or its only value, in no more decimal places than the rows have; '' if no run has a
// number there.
export function rangeText(runs: readonly Run[], { key: column, text: inRows = metric }: Pick<Column, 'key' | 'text'>): string {
  const text = (value: number): string => metric(Number(inRows(value)) || value);
  let [low, high] = [Infinity, -Infinity];
  const read = readerOf(column);
  for (const run of runs) {
    const value = read(run);
    if (isNumber(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return low > high ? '' : low === high ? text(low) : `${text(low)}–${text(high)}`;
}

// Room for a mean and the deviation beside it, and the most that a range has. Groups whose ranges decide the width of a
// column, which is called for each drawing of the table, and runs of each of them.
const MEAN_WIDTH = cellWidth('0.12345');
const DEVIATION_WIDTH = 56;
const MAX_RANGE_WIDTH = 200;
const SAMPLED_GROUPS = 20;
const SAMPLED_RUNS = 50;

// The column with room for what the rows of groups show.
export function inGroups(one: Column, groups: readonly Group[]): Column {
  if (groups.length === 0 || !one.number || one.key === 'id') return one;
  if (!one.key.startsWith('hp.')) return { ...one, inGroup: 'mean', width: Math.max(one.width, MEAN_WIDTH + DEVIATION_WIDTH) };
  const widest = Math.max(...groups.slice(0, SAMPLED_GROUPS).map(({ runs }) => cellWidth(rangeText(runs.slice(0, SAMPLED_RUNS), one))));
  return { ...one, inGroup: 'range', width: Math.min(MAX_RANGE_WIDTH, Math.max(one.width, widest)) };
}
