// Rows of the comparison table: a value per subject, its difference from the first one, whether the row differs. Pure.
import { RATE } from '../charts/facts';
import { flatten, isWide } from '../charts/dimensions';
import { decimals, duration, grouped, metric, metricColumn, roughly, sorted, stateName, withoutPadding } from '../format';
import type { JsonObject, JsonValue } from '../wire';
import { at, isNumber, trialState } from '../workbench/runs';
import type { Subject } from './subjects';

export interface Cell {
  text: string; // "" if missing
  difference: string; // from the first subject: "+0.01"; "" if equal or not numeric
  tone: '' | 'better' | 'worse'; // of the difference, where the better direction is known
  isBest?: boolean;
  state?: string; // shown as a badge
}

export interface Row {
  name: string;
  cells: Cell[]; // one per subject
  differs: boolean;
  isMeasured?: boolean; // an outcome, which differs between all runs
}

// Stands for a missing value: a setting that all leave out is unset, an outcome is not there yet.
export const missingText = ({ differs, isMeasured }: Row): string => (differs || isMeasured ? '–' : 'unset');

export interface Section {
  name: string;
  rows: Row[];
}

const MINUS = '−';
const sign = (difference: number): string => (difference < 0 ? MINUS : '+');

// The index of the best value; undefined without values.
export function bestPlace(values: readonly (number | undefined)[], smallerIsBetter: boolean): number | undefined {
  let best: number | undefined;
  values.forEach((value, at) => {
    const before = best === undefined ? undefined : values[best];
    if (value !== undefined && (before === undefined || (smallerIsBetter ? value < before : value > before))) best = at;
  });
  return best;
}

type Value = number | undefined;

// Decimal places of numbers as texts; undefined if one has an exponent.
const placesOf = (texts: readonly string[]): number | undefined =>
  texts.some((text) => text.includes('e')) ? undefined : Math.max(0, ...texts.map((text) => text.split('.')[1]?.length ?? 0));

// The difference of two numbers with its sign and the given decimal places.
function signed(difference: number, places: number | undefined): string {
  const size = Math.abs(difference);
  return sign(difference) + (places === undefined ? metric(Number(size.toPrecision(3))) : size.toFixed(places));
}

// The same without zeros at the end; three digits of a fraction.
function signedShort(difference: number, places: number | undefined): string {
  const size = Math.abs(difference);
  return sign(difference) + metric(size < 1 ? Number(size.toPrecision(3)) : places === undefined ? size : Number(size.toFixed(places)));
}

// "×0.33": how numbers of different magnitudes differ.
const factor = (by: number, first: number): string => `×${metric(Number(((first + by) / first).toPrecision(2)))}`;

// Cells of numbers as their texts. The difference is that of the shown numbers, with their decimal places.
function cellsOf(values: readonly Value[], text: (value: number) => string, difference: (by: number, first: number) => string): Cell[] {
  const texts = values.map((value) => (value === undefined ? '' : text(value)));
  const [first] = values;
  return values.map((value, at) => ({
    text: texts[at] ?? '',
    difference: value === undefined || first === undefined || texts[at] === texts[0] ? '' : difference(value - first, first),
    tone: '',
  }));
}

const differing = (cells: readonly Cell[]): boolean => cells.some(({ text }) => text !== cells[0]?.text);

type Format = (value: number) => string;

// A row of metrics. Undefined values are missing. Differences are those of the shown numbers.
export function metricRow(name: string, values: readonly Value[], format: Format = metricColumn(values)): Row {
  const shown = values.map((value) => (value === undefined ? undefined : Number(format(value))));
  const places = placesOf(shown.flatMap((value) => (value === undefined ? [] : [format(value)])));
  const cells = cellsOf(shown, format, (by) => signed(by, places));
  return { name, cells, differs: differing(cells), isMeasured: true };
}

// The row of a metric with a direction: the best value and those that read the same are marked, differences have a tone.
export function objectiveRow(name: string, values: readonly Value[], smallerIsBetter: boolean, format?: Format): Row {
  const row = metricRow(name, values, format);
  const best = row.differs ? bestPlace(values, smallerIsBetter) : undefined;
  const cells = row.cells.map((cell): Cell => {
    const isSmaller = cell.difference.startsWith(MINUS);
    return { ...cell, tone: cell.difference === '' ? '' : isSmaller === smallerIsBetter ? 'better' : 'worse', isBest: best !== undefined && cell.text === row.cells[best]?.text };
  });
  return { ...row, cells };
}

function countRow(name: string, values: readonly Value[]): Row {
  const cells = cellsOf(values, grouped, (by) => sign(by) + grouped(Math.abs(by)));
  return { name, cells, differs: differing(cells), isMeasured: true };
}

// Durations that are closer to each other, in seconds and in parts of the longer one, have no difference: machines vary.
const NOISE_SECONDS = 10;
const NOISE_PART = 0.05;

const ALIKE_SECONDS = 2;

// A row of durations in seconds. Those that are within the part, or two seconds, of each other are one duration.
function durationRow(name: string, values: readonly Value[]): Row {
  const whole = values.map((value) => (value === undefined ? undefined : Math.max(0, Math.floor(value))));
  const isNoise = (by: number, first: number): boolean => Math.abs(by) < Math.max(NOISE_SECONDS, NOISE_PART * Math.max(first, first + by));
  const cells = cellsOf(whole, duration, (by, first) => (isNoise(by, first) ? '' : sign(by) + duration(Math.abs(by))));
  const known = whole.filter((one) => one !== undefined);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  if (known.length < whole.length || !differing(cells) || most - least > Math.max(ALIKE_SECONDS, NOISE_PART * most)) return { name, cells, differs: differing(cells), isMeasured: true };
  return { name, cells: cells.map((cell) => ({ ...cell, text: `about ${roughly((least + most) / 2)}` })), differs: false, isMeasured: true };
}

function textRow(name: string, texts: readonly string[]): Row {
  const cells = texts.map((text): Cell => ({ text, difference: '', tone: '' }));
  return { name, cells, differs: differing(cells) };
}

const stateRow = (states: readonly string[]): Row => {
  const row = textRow('State', states.map(stateName));
  return { ...row, cells: row.cells.map((cell, at) => ({ ...cell, state: states[at] ?? '' })) };
};

// Integers from this size on have separators, except seeds, which are no amounts.
const LARGE = 10_000;
const SEED = /seed$/;

function valueText(name: string, value: JsonValue | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  // Without a space the brackets of an empty list read as a box.
  if (typeof value !== 'number') return JSON.stringify(value).replace(/^(\[|\{)(\]|\})$/, '$1 $2');
  if (!Number.isSafeInteger(value)) return metric(value);
  return Math.abs(value) >= LARGE && !SEED.test(name) ? grouped(value) : String(value);
}

// All leaves of the objects as rows, by name; numbers have the digits of a column of the run table. `differs`
// compares exact values; numbers whose rounded texts are equal are shown with all digits. Without `hasDifferences` only texts: differences of settings have no meaning.
export function rowsOf(objects: readonly (JsonObject | null | undefined)[], hasDifferences = true): Row[] {
  const flat = objects.map((one) => flatten(sorted(one ?? {})));
  const names = [...new Set(flat.flatMap((one) => [...one.keys()]))].sort();
  return names.map((name) => {
    const values = flat.map((one) => one.get(name));
    const exact = values.map((value) => JSON.stringify(value) ?? '');
    const differs = exact.some((one) => one !== exact[0]);
    const known = values.filter((value) => value !== undefined);
    const places = hasDifferences ? decimals(known.filter(isNumber)) : undefined;
    const rounded = (value: JsonValue | undefined): string => (isNumber(value) && places !== undefined && places > 0 ? withoutPadding(value, places)[0] : valueText(name, value));
    const isRounded = new Set(values.map(rounded)).size < new Set(exact).size;
    const text = (value: JsonValue | undefined): string => (isRounded && typeof value === 'number' ? String(value) : rounded(value));
    if (!hasDifferences || SEED.test(name) || !known.every(isNumber)) return { ...textRow(name, values.map(text)), differs };
    const difference = isWide(Math.min(...known), Math.max(...known)) ? factor : (by: number) => signedShort(by, placesOf(known.map(text)));
    return { name, cells: cellsOf(values as Value[], text, difference), differs };
  });
}

// Rows of configurations: single fields first, then a section for each object.
export function configSections(configs: readonly (JsonObject | null | undefined)[]): Section[] {
  const sections = new Map<string, Row[]>([['', []]]);
  for (const row of rowsOf(configs, false)) {
    const end = row.name.indexOf('.');
    const parent = end < 0 ? '' : row.name.slice(0, end);
    sections.set(parent, [...(sections.get(parent) ?? []), { ...row, name: row.name.slice(end + 1) }]);
  }
  return [...sections].map(([name, rows]) => ({ name, rows })).filter(({ rows }) => rows.length > 0);
}

// Metrics with a direction that their names tell.
const SMALLER = /(^|[_/.])(loss|error|mse|mae|rmse|wer|cer|perplexity)($|[_/.\d])/i;
const LARGER = /(^|[_/.])(acc|accuracy|f1|auc|map|bleu|precision|recall)($|[_/.\d])/i;

const metricsOf = ({ trial }: Subject): JsonObject => trial?.bestValidation?.metrics?.avgMetrics ?? {};

// The batches and the metrics of the best validations, without the searcher metric, and those of the training before them
// whose better direction is known.
function validationRows(all: readonly Subject[], objective: string): Row[] {
  const isDirected = (name: string): boolean => SMALLER.test(name) || LARGER.test(name);
  const rows = (of: (one: Subject) => JsonObject, shown: (name: string) => boolean, more = ''): Row[] =>
    [...new Set(all.flatMap((one) => Object.keys(of(one))))].filter(shown).sort().map((name) => {
      const values = all.map((one) => of(one)[name]).map((value) => (isNumber(value) ? value : undefined));
      return isDirected(name) ? objectiveRow(name + more, values, SMALLER.test(name)) : metricRow(name + more, values);
    });
  const batches = all.map(({ trial }) => trial?.bestValidation?.totalBatches || undefined);
  return [
    ...(batches.some((one) => one !== undefined) ? [countRow('Batch', batches)] : []),
    ...rows(metricsOf, (name) => name !== objective),
    ...rows(({ training }) => training ?? {}, isDirected, ' (training)'),
  ];
}

// Metrics of the training itself, whose last values tell how it went.
const GRADIENT = /(^|[_/.])grad(ient)?s?_?norm([_/.\d]|$)/i;

// The last values of learning rates and norms of gradients.
function lastRows(all: readonly Subject[]): Row[] {
  const trainings = all.map(({ trial }) => at(trial?.summaryMetrics, ['avg_metrics']));
  const names = [...new Set(trainings.flatMap((one) => Object.keys((one as JsonObject | undefined) ?? {})))].filter((name) => RATE.test(name) || GRADIENT.test(name)).sort();
  return names.map((name) => {
    const values = trainings.map((one) => at(one, [name, 'last']));
    return metricRow(name, values.map((value) => (isNumber(value) ? value : undefined)));
  });
}

const ofTrial = (one: Subject): boolean => one.path === 'trial' && one.trial !== undefined;

const secondsOf = (one: Subject, nowMs: number): Value => {
  const { startTime, endTime } = one.path === 'trial' && one.trial ? one.trial : one.experiment;
  return startTime ? ((endTime ? Date.parse(endTime) : nowMs) - Date.parse(startTime)) / 1000 : undefined;
};

const valueOfMetric = ({ path, trial, experiment }: Subject): Value => {
  const value = path === 'trial' ? trial?.searcherMetricValue : experiment.bestTrialSearcherMetric;
  return isNumber(value ?? undefined) ? (value as number) : undefined;
};

const namedMetric = (one: Subject): string => `${one.experiment.searcherMetric} ${metric(valueOfMetric(one))}`;

const stateOf = (one: Subject): string => (one.path === 'trial' && one.trial ? trialState(one.trial, one.experiment) : one.experiment.state);

// The table of values: a summary, the other validation metrics, last values of the training, the hyperparameters. `format`: of the searcher metric.
export function sections(all: readonly Subject[], smallerIsBetter: boolean, nowMs: number, format?: Format): Section[] {
  const objectives = [...new Set(all.map(({ experiment }) => experiment.searcherMetric))];
  const objective = objectives.length === 1 ? (objectives[0] ?? '') : '';
  const summary = [
    stateRow(all.map(stateOf)),
    // Values of different metrics have no difference.
    objective === '' ? textRow('Best metric', all.map(namedMetric)) : objectiveRow(`best ${objective}`, all.map(valueOfMetric), smallerIsBetter, format),
    countRow('Batches', all.map(({ trial }) => trial?.totalBatchesProcessed ?? 0)),
    durationRow('Duration', all.map((one) => secondsOf(one, nowMs))),
    ...(all.every(ofTrial) ? [] : [countRow('Trials', all.map(({ experiment }) => experiment.numTrials))]),
    textRow('Searcher', all.map(({ experiment }) => experiment.searcherType)),
  ];
  return [
    { name: 'Summary', rows: summary },
    { name: 'At the best validation', rows: validationRows(all, objective) },
    { name: 'At the last report', rows: lastRows(all) },
    { name: 'Hyperparameters', rows: rowsOf(all.map(({ trial }) => trial?.hparams)) },
  ].filter(({ rows }) => rows.length > 0);
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

// The name of a subject within a sentence and at its begin.
const namesOf = ({ name, path, experiment }: Subject): { name: string; opening: string } =>
  path === 'experiment' && experiment.name ? { name: experiment.name, opening: experiment.name } : { name, opening: capital(name) };

// "Experiment 2 has the best accuracy, 0.00001 ahead of experiment 7"; "" without two values of one metric.
export function leaderText(all: readonly Subject[], smallerIsBetter: boolean, format?: Format): string {
  const objective = all[0]?.experiment.searcherMetric ?? '';
  if (objective === '' || all.some(({ experiment }) => experiment.searcherMetric !== objective)) return '';
  const values = all.flatMap((one) => valueOfMetric(one) ?? []);
  const text = format ?? metricColumn(values);
  const known = all.flatMap((one) => {
    const value = valueOfMetric(one);
    return value === undefined ? [] : [{ ...namesOf(one), value: Number(text(value)), text: text(value) }];
  });
  const [first, second] = known.sort((a, b) => (smallerIsBetter ? a.value - b.value : b.value - a.value));
  if (!first || !second) return '';
  const tied = known.filter(({ text }) => text === first.text);
  if (tied.length > 1) {
    if (tied.length === known.length) return `${known.length === 2 ? 'Both' : 'All'} reach ${objective} ${first.text}`;
    return `${tied.length === 2 ? `${first.opening} and ${second.name}` : `${tied.length} of ${known.length}`} lead ${objective} with ${first.text}`;
  }
  const lead = signed(Math.abs(first.value - second.value), placesOf([first.text, second.text])).slice(1);
  return `${first.opening} has the best ${objective}, ${lead} ahead of ${second.name}`;
}

// Rows that differ, in the sections that have some.
export const onlyDiffering = (all: readonly Section[]): Section[] =>
  all.map(({ name, rows }) => ({ name, rows: rows.filter(({ differs }) => differs) })).filter(({ rows }) => rows.length > 0);
