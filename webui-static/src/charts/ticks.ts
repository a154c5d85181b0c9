// Round ticks of an axis: steps of 1, 2 or 5 times a power of ten; powers of ten on a logarithmic axis. Labels that do not
// overlap. Pure.
import { metric } from '../format';
import type { Trial } from '../wire';
import { flatten, isConstant, share, type Dimension } from './dimensions';
import { uniform } from './series';

interface Tick {
  at: number; // 0..1
  text: string;
}

type Axis = Pick<Dimension, 'kind' | 'words' | 'min' | 'max' | 'isWhole'>;

const DIGITS = [1, 2, 5];
const LEAST_TICKS = 3;
// Tolerance of a bound that is the result of a power, as a part of a step.
const NEAR = 1e-9;
// Axes whose greatest value is outside of these have exponents, as in the tables.
const MIN_PLAIN = 1e-4;
const MAX_PLAIN = 1e6;

// The least step of 1, 2 or 5 times a power of ten that is not below `least`.
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([...DIGITS, 10].find((digit) => power * digit >= least * (1 - NEAR)) ?? 10);
}

// Numbers with as many digits as the step needs, so that all texts differ.
function texts(values: readonly number[], step: number): string[] {
  const power = Math.floor(Math.log10(step) + NEAR);
  const greatest = Math.max(...values.map(Math.abs));
  const isPlain = greatest >= MIN_PLAIN && greatest < MAX_PLAIN;
  const text = (value: number): string => {
    if (isPlain) return value.toFixed(Math.max(0, -power));
    const places = Math.max(0, Math.floor(Math.log10(Math.abs(value)) + NEAR) - power);
    return Number(value.toExponential(places)).toExponential();
  };
  return values.map((value) => (value === 0 ? '0' : text(value)));
}

function linear(axis: Axis, count: number): Tick[] {
  const { min, max, isWhole } = axis;
  const least = isWhole ? 1 : 0;
  const inside = (step: number): [number, number] => [Math.ceil(min / step - NEAR), Math.floor(max / step + NEAR)];
  let step = Math.max(roundStep((max - min) / count), least);
  let [first, last] = inside(step);
  // The next smaller step where a range holds too few of this one.
  if (last - first + 1 < Math.min(LEAST_TICKS, count)) [first, last] = inside((step = Math.max(roundStep(step * 0.4), least)));
  const values = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => (first + at) * step);
  const all = texts(values, step);
  return values.map((value, at) => ({ at: share(axis, value), text: all[at] ?? '' }));
}

// Powers of ten, at most `count`; with their multiples by 2 and 5 if those are not too many.
function logarithmic(axis: Axis, count: number): Tick[] {
  const first = Math.ceil(Math.log10(axis.min) - NEAR);
  const last = Math.floor(Math.log10(axis.max) + NEAR);
  const powers = Math.max(0, last - first + 1);
  const tickAll = (all: readonly number[]): Tick[] => {
    const words = uniform(all.map((value) => Number(value.toPrecision(12))));
    return all.map((value, at) => ({ at: share(axis, value), text: words[at] ?? '' }));
  };
  const values = Array.from({ length: powers + 2 }, (_, at) => first - 1 + at)
    .flatMap((power) => DIGITS.map((digit) => digit * 10 ** power))
    .filter((value) => value >= axis.min * (1 - NEAR) && value <= axis.max * (1 + NEAR));
  if (powers < Math.min(LEAST_TICKS, count) && (powers < 2 || values.length <= count + 1))
    return values.length >= 2 ? tickAll(values) : linear(axis, count);
  const every = Math.ceil(powers / count);
  return tickAll(Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, at) => 10 ** (first + at * every)));
}

// Numbers that are shown as ticks if no more are used.
const FEW = 4;

// Ticks at the values that trials have, if these are few numbers, each at least `apart` (a part of the axis) from the
// next.
export function usedTicks(axis: Dimension, trials: readonly Trial[], apart: number): Tick[] | undefined {
  if (axis.kind === 'words' || isConstant(axis)) return undefined;
  const values = [...new Set(trials.map(({ hparams }) => flatten(hparams).get(axis.name)))].filter((value) => typeof value === 'number').sort((a, b) => a - b);
  if (values.length === 0 || values.length > FEW) return undefined;
  const words = uniform(values);
  const all = values.map((value, at) => ({ at: share(axis, value), text: words[at] ?? '' }));
  return all.every(({ at }, place) => place === 0 || at - (all[place - 1]?.at ?? 0) >= apart) ? all : undefined;
}

// With more words, only the first and last are labeled.
const MAX_WORDS = 8;
function wordTicks(words: readonly string[]): Tick[] {
  const all = words.map((text, i) => ({ at: i / Math.max(1, words.length - 1), text }));
  return all.length <= MAX_WORDS ? all : [all[0], all[all.length - 1]].filter((one) => one !== undefined);
}

// At most about `count` ticks within the range of an axis; the words of a choice; the value of a constant.
export function ticks(axis: Axis, count: number): Tick[] {
  if (axis.kind === 'words') return wordTicks(axis.words);
  if (isConstant(axis)) return [{ at: 0.5, text: metric(axis.max) }];
  return axis.kind === 'log' && axis.min > 0 ? logarithmic(axis, count) : linear(axis, count);
}

// A label in the middle of `x`, in pixels.
interface Label {
  x: number;
  text: string;
}

// Whether labels overlap, with characters of this mean width.
const BETWEEN = 4;
export const overlap = (a: Label, b: Label, character: number): boolean => Math.abs(a.x - b.x) < (character * (a.text.length + b.text.length)) / 2 + BETWEEN;

// The texts of labels from left to right: a short one beside a label that it would overlap, and two short ones if one is not
// enough.
export function shortened(labels: readonly (Label & { short: string })[], character: number): string[] {
  const texts: string[] = [];
  labels.forEach(({ x, text, short }, at) => {
    const before = labels[at - 1];
    const isOver = (own: string): boolean => before !== undefined && overlap({ x: before.x, text: texts[at - 1] ?? '' }, { x, text: own }, character);
    texts.push(isOver(text) ? short : text);
    if (before && isOver(short)) texts[at - 1] = before.short;
  });
  return texts;
}
