// Formats values for display: states, times, durations, numbers. Pure.
import type { JsonValue } from './wire';

// Names that say what happens, where the API's word does not.
const STATE_NAMES: Record<string, string> = {
  STATE_PULLING: 'Building',
  STATE_WAITING: 'Queued',
};

// "STATE_STOPPING_CANCELED" → "Stopping canceled".
export function stateName(state: string): string {
  const own = STATE_NAMES[state];
  if (own) return own;
  const words = state
    .replace(/^STATE_/, '')
    .toLowerCase()
    .replace(/_/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export type Tone = 'good' | 'bad' | 'busy' | 'waiting' | 'idle';

const TONES: Record<string, Tone> = {
  STATE_COMPLETED: 'good',
  STATE_ERROR: 'bad',
  STATE_DELETE_FAILED: 'bad',
  STATE_STOPPING_ERROR: 'bad',
  STATE_RUNNING: 'busy',
  STATE_ACTIVE: 'busy',
  STATE_STARTING: 'busy',
  STATE_PULLING: 'busy',
  STATE_TERMINATING: 'busy',
  STATE_WAITING: 'waiting',
  STATE_STOPPING_COMPLETED: 'busy',
  STATE_PAUSED: 'waiting',
  STATE_QUEUED: 'waiting',
  STATE_STOPPING_CANCELED: 'waiting',
  STATE_STOPPING_KILLED: 'waiting',
};

export const stateTone = (state: string): Tone => TONES[state] ?? 'idle';

const ACTIVE = ['STATE_ACTIVE', 'STATE_QUEUED', 'STATE_PULLING', 'STATE_STARTING', 'STATE_RUNNING'];
const ENDED = ['STATE_COMPLETED', 'STATE_CANCELED', 'STATE_ERROR', 'STATE_DELETED', 'STATE_DELETE_FAILED'];

export const isActive = (state: string): boolean => ACTIVE.includes(state);
export const isEnded = (state: string): boolean => ENDED.includes(state);
export const isStopping = (state: string): boolean => state.startsWith('STATE_STOPPING_');

// Progress 0..1. Undefined for experiments that ended early, because a search counts stopped trials as done.
export const progressOf = (one: { state: string; progress?: number | null }): number | undefined =>
  isEnded(one.state) && one.state !== 'STATE_COMPLETED' ? undefined : (one.progress ?? undefined);

// "5s", "3m 07s", "2h 05m", "4d 03h". Negative values count as 0.
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n: number): string => String(n).padStart(2, '0');
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d ${two(Math.floor((s % 86400) / 3600))}h`;
}

// The duration of something that has ended, with a decimal below ten seconds: "2.5s".
export const lasted = (seconds: number): string => (seconds < 9.95 ? `${Math.max(0, seconds).toFixed(1)}s` : duration(seconds));

// The duration of an estimate, without seconds from two minutes on: "11m".
export const roughly = (seconds: number): string => (seconds >= 120 && seconds < 3570 ? `${Math.round(seconds / 60)}m` : duration(seconds));

// "just now", "5 min ago", "3 h ago", "2 d ago", and the date after four weeks; "in 5 min" for the future.
export function ago(time: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(time)) / 1000;
  const [size, future] = [Math.abs(seconds), seconds < 0];
  const text = (count: number, unit: string): string => (future ? `in ${count} ${unit}` : `${count} ${unit} ago`);
  if (size < 45) return 'just now';
  if (size < 3600) return text(Math.max(1, Math.round(size / 60)), 'min');
  if (size < 86400) return text(Math.floor(size / 3600), 'h');
  if (size < 28 * 86400) return text(Math.floor(size / 86400), 'd');
  return localDate(new Date(time));
}

// The rest of the work at a progress of 0..1, as a multiple of the work done; undefined before 2 %, where it would be a guess.
export const restOf = (progress: number | undefined): number | undefined =>
  progress === undefined || progress < 0.02 || progress >= 1 ? undefined : (1 - progress) / progress;

// Time from start to end, or to now while running; "" before the start.
export function span(
  start: string | null | undefined,
  end: string | null | undefined,
  nowMs: number,
): string {
  if (!start) return '';
  return end ? lasted((Date.parse(end) - Date.parse(start)) / 1000) : duration((nowMs - Date.parse(start)) / 1000);
}

// "2026-11-21 02:30:05" in local time.
export function dateTime(time: string | null | undefined): string {
  return time ? `${localDate(new Date(time))} ${clock(time)}` : '';
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

// "27 Nov" in UTC.
export const dayMonth = (ms: number): string => `${new Date(ms).getUTCDate()} ${MONTHS[new Date(ms).getUTCMonth()]}`;

// "15:20" in local time.
export const minute = (ms: number): string => clock(new Date(ms).toISOString()).slice(0, 'hh:mm'.length);

// "27 Nov 15:20" in local time.
export function dayTime(ms: number): string {
  const d = new Date(ms);
  return `${d.getDate()} ${MONTHS[d.getMonth()]} ${minute(ms)}`;
}

// "Nov 2026" in UTC.
export const monthYear = (ms: number): string => `${MONTHS[new Date(ms).getUTCMonth()]} ${new Date(ms).getUTCFullYear()}`;

function localDate(d: Date): string {
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

// "02:30:05" in local time.
export function clock(time: string | null | undefined): string {
  if (!time) return '';
  const d = new Date(time);
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':');
}

// Digits of a metric besides zeros at its start.
const SIGNIFICANT = 5;

// The shortest number that is this 32-bit float, as in the series of a chart: the one that was reported, which a table
// has. Other numbers stay as they are.
const FLOAT_DIGITS = [6, 7, 8, 9];
function asReported(value: number): number {
  if (Math.fround(value) !== value) return value;
  return FLOAT_DIGITS.map((count) => Number(value.toPrecision(count))).find((number) => Math.fround(number) === value) ?? value;
}

// Metrics are numbers, or "NaN", "Infinity", "-Infinity" as strings; "" for none.
export function metric(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return Number(value.toPrecision(4)).toExponential();
  if (Number.isInteger(value)) return String(value);
  return String(Number(asReported(value).toPrecision(SIGNIFICANT)));
}

// Whole as far as the series of a chart tell, which are 32-bit floats.
const isWhole = (value: number): boolean => Number.isInteger(Math.fround(value));

// A number with `places` decimals. A fraction is cut instead of rounded up to a whole number: 0.999996 is "0.99999".
function fixed(value: number, places: number): string {
  const text = value.toFixed(places);
  if (places === 0 || isWhole(value) || !Number.isInteger(Number(text))) return text;
  return (Math.trunc(value * 10 ** places) / 10 ** places).toFixed(places);
}

// A fraction between 1e-4 and 1e6 with SIGNIFICANT digits.
const significant = (value: number): string => fixed(asReported(value), Math.max(0, SIGNIFICANT - 1 - Math.floor(Math.log10(Math.abs(value)))));

// A metric with the zeros at its end: the points of a column are below each other, and a changing value keeps its width.
export const digits = (value: number | string | null | undefined): string => {
  const text = metric(value);
  if (typeof value !== 'number') return text;
  return text.includes('e') ? value.toExponential(3) : isWhole(value) ? text : significant(value);
};

// Most decimal places of a column of metrics.
const METRIC_PLACES = 5;

// A fraction that is cut to a whole number keeps its zeros: 1.0000004 is "1.0000".
function metricPlaces(value: JsonValue | undefined): number {
  if (typeof value !== 'number' || isWhole(value)) return 0;
  const text = metric(value);
  return text.includes('e') ? 0 : ((text.includes('.') ? text : significant(value)).split('.')[1]?.length ?? 0);
}

// The format of a column of metrics: as many decimal places as its values have, at most METRIC_PLACES, or five digits
// beside a value with an exponent. The mean of integers keeps its decimals.
export function metricColumn(values: readonly (JsonValue | undefined)[]): (value: number | string | null | undefined) => string {
  if (values.some((value) => typeof value === 'number' && metric(value).includes('e'))) return digits;
  const places = Math.min(METRIC_PLACES, Math.max(0, ...values.map(metricPlaces)));
  return (value) => {
    if (typeof value !== 'number' || metric(value).includes('e')) return digits(value);
    return places === 0 ? metric(value) : fixed(value, places);
  };
}

// The decimal places of a column of numbers: as many as they have, and no more than the smallest needs for three digits.
// Undefined for a column with exponents.
export function decimals(values: readonly number[]): number | undefined {
  const texts = values.map(metric);
  if (texts.some((text) => text.includes('e'))) return undefined;
  const sizes = values.filter((value) => value !== 0).map(Math.abs);
  const most = Math.max(0, 2 - Math.floor(Math.log10(Math.min(...sizes, 1))));
  return Math.min(most, Math.max(0, ...texts.map((text) => text.split('.')[1]?.length ?? 0)));
}

// A number with decimal places, and the zeros at its end as a text of their own. Zeros of a rounded number stay.
export function withoutPadding(value: number, places: number): [text: string, zeros: string] {
  const text = value.toFixed(places);
  const zeros = places > 0 && Number(text) === value ? (/\.?0+$/.exec(text)?.[0] ?? '') : '';
  return [text.slice(0, text.length - zeros.length), zeros];
}

// "1,234.5", with at most three decimals. The first number that Intl formats takes 13 ms.
export function grouped(value: number): string {
  const [whole = '', part] = String(Math.round(value * 1000) / 1000).split('.');
  return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (part === undefined ? '' : `.${part}`);
}

// A number on an axis: "1,000", "0.25", "2e+6".
export const axisNumber = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e6 ? grouped(value) : metric(value);

// Most decimal places of ticks without an exponent, and how exact they are then.
const TICK_PLACES = 6;
const EXACT = 1e-9;

// The decimal places that ticks need: "0.0001" beside "5e-5" would be two notations. Undefined for too many.
function tickPlaces(ticks: readonly number[]): number | undefined {
  const isExact = (value: number, places: number): boolean => Math.abs(Number(value.toFixed(places)) - value) <= EXACT * Math.abs(value);
  for (let places = 0; places <= TICK_PLACES; places++) if (ticks.every((value) => isExact(value, places))) return places;
  return undefined;
}

// The ticks of an axis, with the same number of decimal places.
export function axisTexts(ticks: readonly number[]): string[] {
  const places = decimals(ticks) ?? tickPlaces(ticks);
  return ticks.map((value) => (places === undefined || places === 0 || value === 0 ? axisNumber(value) : value.toFixed(places)));
}

// The length of a list: "12", or "200+" if it was cut.
export const lengthText = (length: number, isCut: boolean): string => `${grouped(length)}${isCut ? '+' : ''}`;

// "1 trial", "3 trials"; for nouns with a regular plural.
export const counted = (count: number, noun: string): string => `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;

// Whole units for each value, `total` in all: rounded down, and up where the remainders are largest.
export function apportion(values: readonly number[], total: number): number[] {
  const sum = values.reduce((all, one) => all + one, 0);
  if (!(sum > 0)) return values.map(() => 0);
  const exact = values.map((value) => (value / sum) * total);
  const whole = exact.map(Math.floor);
  const left = Math.round(total - whole.reduce((all, one) => all + one, 0));
  const rest = (at: number): number => (exact[at] ?? 0) - (whole[at] ?? 0);
  const raised = new Set(exact.map((_, at) => at).sort((a, b) => rest(b) - rest(a)).slice(0, left));
  return whole.map((value, at) => value + (raised.has(at) ? 1 : 0));
}

// Whole percents, rounded down: progress is never 100% before the end.
export const percent = (fraction: number): string => `${Math.floor(Math.min(1, Math.max(0, fraction)) * 100 + 1e-9)}%`;

// "2.5 KB"; decimal units.
export function bytes(value: number, digits = 1): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  let n = value;
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return `${i === 0 ? n : n.toFixed(digits)} ${units[i]}`;
}

// Sorts the keys of all objects; the API returns them in arbitrary order.
export function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

// The least characters of a beginning that is left out.
const LEAST_SHARED = 4;

// The beginning that all names share, in whole words; "" if it is short or a whole name.
export function sharedStart(names: readonly string[]): string {
  const [first = ''] = names;
  let length = first.length;
  for (const name of names) while (!name.startsWith(first.slice(0, length))) length--;
  const start = /^.*[\s_/-]/.exec(first.slice(0, length))?.[0] ?? '';
  return names.length > 1 && start.length >= LEAST_SHARED && names.every((name) => name.length > start.length) ? start : '';
}
