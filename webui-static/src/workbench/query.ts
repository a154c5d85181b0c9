// Query language of run tables: `lr < 1e-3 and state = running`. Parsing, printing, evaluation, translation to the
// master's filter. Pure.
import type { Condition } from '../api';
import type { JsonValue } from '../wire';

type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | '~' | '!~' | 'in' | 'is empty' | 'is not empty';
export type Query =
  | { kind: 'and' | 'or'; all: Query[] }
  | { kind: 'test'; column: string; operator: Operator; values: string[] }
  | { kind: 'text'; text: string }; // in the name, the description or a label

// A column that a query may name.
export interface Known {
  key: string; // "hp.lr"
  title: string;
}

// A mistake with its position in the text.
export class QueryError extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

export interface Token {
  kind: 'word' | 'string' | 'sign';
  text: string;
  at: number;
  end: number;
}

const SIGNS = /^(<=|>=|!=|!~|[=<>~(),])/;
const WORD = /^[^\s"'`=<>~!(),]+/;
const OPERATORS: readonly string[] = ['=', '!=', '<', '<=', '>', '>=', '~', '!~'];
const KEYWORDS: readonly string[] = ['and', 'or', 'in', 'is'];

// The tokens of a text. Strings stand in quotes; a backslash keeps the next character.
export function tokens(text: string): Token[] {
  const out: Token[] = [];
  for (let at = 0; at < text.length; ) {
    const rest = text.slice(at);
    const space = /^\s+/.exec(rest)?.[0].length ?? 0;
    if (space > 0) {
      at += space;
      continue;
    }
    const quoted = /^(["'`])((?:\\.|(?!\1)[^\\])*)\1/s.exec(rest);
    const found = quoted?.[0] ?? SIGNS.exec(rest)?.[0] ?? WORD.exec(rest)?.[0];
    if (found === undefined) throw new QueryError(/^["'`]/.test(rest) ? 'This quote is not closed.' : `Unexpected ${rest[0]}.`, at);
    const kind = quoted ? 'string' : SIGNS.test(rest) ? 'sign' : 'word';
    out.push({ kind, text: quoted ? (quoted[2] ?? '').replace(/\\(.)/gs, '$1') : found, at, end: at + found.length });
    at += found.length;
  }
  return out;
}

const ALIASES: Record<string, string> = {
  metric: 'searcherMetricsVal',
  best: 'searcherMetricsVal',
  tag: 'tags',
  label: 'tags',
  labels: 'tags',
  pool: 'resourcePool',
  searcher: 'searcherType',
  started: 'startTime',
  ended: 'endTime',
  trials: 'numTrials',
  checkpoints: 'checkpointCount',
};
const PREFIXES: readonly string[] = ['hp.', 'validation.', 'training.', 'metadata.'];
const plain = (text: string): string => text.toLowerCase().replace(/[\s_]/g, '');

// Number of single-character changes between two words.
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length] ?? 0;
}

// The key of the column that a name means: a key, a title, the name of a hyperparameter or metric, or its last part.
function columnOf(name: string, known: readonly Known[], at = 0): string {
  const wanted = plain(name);
  const own = known.find(({ key }) => key === name) ?? known.find(({ key, title }) => plain(key) === wanted || plain(title) === wanted);
  if (own) return own.key;
  const alias = ALIASES[name.toLowerCase()];
  if (alias && known.some(({ key }) => key === alias)) return alias;
  for (const prefix of PREFIXES) if (known.some(({ key }) => key === prefix + name)) return prefix + name;
  const last = known.filter(({ key }) => key.endsWith(`.${name}`));
  if (last.length === 1 && last[0]) return last[0].key;
  if (PREFIXES.some((prefix) => name.startsWith(prefix) && name.length > prefix.length)) return name;
  const near = known
    .flatMap(({ key }) => [key, key.replace(/^\w+\./, '')].map((text) => ({ text, far: distance(text.toLowerCase(), name.toLowerCase()) })))
    .sort((a, b) => a.far - b.far)[0];
  throw new QueryError(`There is no column “${name}”.${near && near.far <= 3 ? ` Did you mean ${near.text}?` : ''}`, at);
}

class Parser {
  private at = 0;
  private readonly all: Token[];
  constructor(
    private readonly text: string,
    private readonly known: readonly Known[],
  ) {
    this.all = tokens(text);
  }

  whole(): Query | undefined {
    if (this.all.length === 0) return undefined;
    const query = this.or();
    const rest = this.peek();
    if (rest) throw new QueryError(`Unexpected “${rest.text}”.`, rest.at);
    return query;
  }

  private peek(ahead = 0): Token | undefined {
    return this.all[this.at + ahead];
  }
  private isSign(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token?.kind === 'sign' && token.text === text;
  }
  private isWord(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token?.kind === 'word' && token.text.toLowerCase() === text;
  }
  private end(): number {
    return this.peek()?.at ?? this.text.length;
  }

  private or(): Query {
    const all = [this.and()];
    while (this.isWord('or')) {
      this.at++;
      all.push(this.and());
    }
    return all.length === 1 && all[0] ? all[0] : { kind: 'or', all };
  }
  private and(): Query {
    const all = [this.one()];
    for (;;) {
      if (this.isWord('and')) this.at++;
      else if (!this.peek() || this.isWord('or') || this.isSign(')')) break;
      all.push(this.one());
    }
    return all.length === 1 && all[0] ? all[0] : { kind: 'and', all };
  }

  private one(): Query {
    if (this.isSign('(')) {
      this.at++;
      const inner = this.or();
      if (!this.isSign(')')) throw new QueryError('A closing parenthesis is missing.', this.end());
      this.at++;
      return inner;
    }
    const first = this.peek();
    if (!first || first.kind === 'sign' || this.isWord('and') || this.isWord('or'))
      throw new QueryError('Expected a column or a text.', this.end());
    return this.isTest(1) ? this.test(first) : this.words();
  }
  // Whether an operator stands there.
  private isTest(ahead: number): boolean {
    const token = this.peek(ahead);
    if (token?.kind === 'sign') return OPERATORS.includes(token.text);
    if (this.isWord('in', ahead)) return this.isSign('(', ahead + 1);
    return this.isWord('is', ahead) && this.isWord('empty', ahead + (this.isWord('not', ahead + 1) ? 2 : 1));
  }
  // Words without an operator are one text.
  private words(): Query {
    const from = this.at;
    const ends = (token: Token | undefined): boolean =>
      !token || token.kind === 'sign' || (token.kind === 'word' && ['and', 'or'].includes(token.text.toLowerCase()));
    while (!ends(this.peek()) && (this.at === from || !this.isTest(1))) this.at++;
    return { kind: 'text', text: this.all.slice(from, this.at).map(({ text }) => text).join(' ') };
  }

  private test(name: Token): Query {
    const column = columnOf(name.text, this.known, name.at);
    const operator = this.peek(1)?.text.toLowerCase() ?? '';
    this.at += 2;
    if (operator === 'is') {
      const not = this.isWord('not');
      this.at += not ? 2 : 1;
      return { kind: 'test', column, operator: not ? 'is not empty' : 'is empty', values: [] };
    }
    if (operator === 'in') return { kind: 'test', column, operator: 'in', values: this.list() };
    return { kind: 'test', column, operator: operator as Operator, values: [this.value(operator)] };
  }
  private list(): string[] {
    this.at++;
    const values = [this.value('in')];
    while (this.isSign(',')) {
      this.at++;
      values.push(this.value(','));
    }
    if (!this.isSign(')')) throw new QueryError('Expected a comma or a closing parenthesis.', this.end());
    this.at++;
    return values;
  }
  private value(after: string): string {
    const token = this.peek();
    if (!token || token.kind === 'sign') throw new QueryError(`Expected a value after “${after}”.`, this.end());
    this.at++;
    return token.text;
  }
}

// The query of a text; undefined for an empty one. Throws QueryError.
export const parse = (text: string, known: readonly Known[]): Query | undefined => new Parser(text, known).whole();

const word = (text: string): string =>
  WORD.exec(text)?.[0] === text && !KEYWORDS.includes(text.toLowerCase()) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;

// Whether a text is read back without quotes.
function isText(text: string): boolean {
  try {
    const query = parse(text, []);
    return query?.kind === 'text' && query.text === text;
  } catch {
    return false;
  }
}

// The text of a query, with full names of columns. parse(print(query)) is the same query.
export function print(query: Query | undefined, inner = false): string {
  if (!query) return '';
  if (query.kind === 'text') return isText(query.text) ? query.text : word(query.text);
  if (query.kind === 'test') {
    const { column, operator, values } = query;
    const all = values.map(word).join(', ');
    return [word(column), operator, operator === 'in' ? `(${all})` : all].filter((part) => part !== '').join(' ');
  }
  const text = query.all.map((one) => print(one, true)).join(` ${query.kind} `);
  return inner ? `(${text})` : text;
}

// The query with further conditions on some columns in place of its own ones, as a brush over an axis sets them.
export function withTests(query: Query | undefined, columns: readonly string[], tests: readonly Query[]): Query | undefined {
  const own = query?.kind === 'and' ? query.all : query ? [query] : [];
  const kept = own.filter((one) => !(one.kind === 'test' && columns.includes(one.column)));
  const all = [...kept, ...tests];
  return all.length <= 1 ? all[0] : { kind: 'and', all };
}

// Columns with text values, even if a value looks like a number.
const TEXTUAL: readonly string[] = ['name', 'description', 'tags', 'user', 'resourcePool', 'startTime', 'endTime', 'searcherType', 'searcherMetric', 'state'];
const UNITS: Record<string, number> = { s: 1, min: 60, m: 60, h: 3600, d: 86400 };

// A value as a number; "90min" in a column of seconds. undefined for text.
function numberIn(column: string, text: string): number | undefined {
  if (TEXTUAL.includes(column) || text.trim() === '') return undefined;
  const unit = column === 'duration' ? /^([\d.]+)(s|min|m|h|d)$/.exec(text) : null;
  const value = unit ? Number(unit[1]) * (UNITS[unit[2] ?? ''] ?? 1) : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

// States that the master's filter does not tell apart: all are active.
const LIVE: readonly string[] = ['queued', 'building', 'starting', 'running'];
// Words of states, and what the API calls them.
const STATES: Record<string, string> = { running: 'ACTIVE', queued: 'ACTIVE', building: 'ACTIVE', starting: 'ACTIVE', failed: 'ERROR' };
const apiState = (text: string): string => `STATE_${STATES[text.toLowerCase()] ?? text.toUpperCase().replace(/^STATE_/, '').replace(/ /g, '_')}`;
export const stateWord = (state: string): string => state.replace(/^STATE_/, '').toLowerCase().replace(/_/g, ' ');

const isLive = (query: Query): boolean => query.kind === 'test' && query.column === 'state' && query.values.some((value) => LIVE.includes(value.toLowerCase()));

// Whether the query tells states apart that the master's filter does not: its rows are filtered here once more.
export const isFiner = (query: Query | undefined): boolean =>
  query !== undefined && query.kind !== 'text' && (query.kind === 'test' ? isLive(query) : query.all.some(isFiner));

// A query that the master can answer and that finds at least the rows of this one; undefined finds all.
export function withKnownStates(query: Query | undefined): Query | undefined {
  if (!query || query.kind === 'text') return query;
  if (query.kind !== 'test') {
    const all = query.all.map(withKnownStates);
    if (query.kind === 'or' && all.includes(undefined)) return undefined;
    const kept = all.filter((one) => one !== undefined);
    return kept.length <= 1 ? kept[0] : { ...query, all: kept };
  }
  if (query.column !== 'state') return query;
  if (isLive(query) && query.operator !== '=' && query.operator !== 'in') return undefined;
  return { ...query, values: [...new Set(query.values.map((value) => stateWord(apiState(value))))] };
}

const field = (columnName: string, operator: string, value?: JsonValue): Condition =>
  ({ kind: 'field', columnName, operator, ...(value === undefined ? {} : { value }) }) as Condition;
const TEXT_COLUMNS: readonly string[] = ['name', 'description', 'tags'];
const API_OPERATORS: Partial<Record<Operator, string>> = { '~': 'contains', '!~': 'notContains', in: '=', 'is empty': 'isEmpty', 'is not empty': 'notEmpty' };

function condition(query: Query): Condition {
  if (query.kind === 'text') {
    const id = /^\d{1,9}$/.test(query.text) ? [field('id', '=', Number(query.text))] : [];
    return { kind: 'group', conjunction: 'or', children: [...TEXT_COLUMNS.map((column) => field(column, 'contains', query.text)), ...id] };
  }
  if (query.kind !== 'test') return { kind: 'group', conjunction: query.kind, children: query.all.map(condition) };
  const { column, operator, values } = query;
  const contains = operator === '~' || operator === '!~';
  const all = values.map((value) => (column === 'state' ? apiState(value) : contains ? value : (numberIn(column, value) ?? value)));
  return field(column, API_OPERATORS[operator] ?? operator, operator === 'in' ? all : all[0]);
}

// The master's search: the first text apart, because it is found faster, and the conditions.
export function toSearch(query: Query | undefined): { text: string; condition: Condition | undefined } {
  const all = query?.kind === 'and' ? query.all : query ? [query] : [];
  const text = all.find((one) => one.kind === 'text');
  const rest = all.filter((one) => one !== text);
  return {
    text: text?.kind === 'text' ? text.text : '',
    condition: rest.length === 0 ? undefined : { kind: 'group', conjunction: 'and', children: rest.map(condition) },
  };
}

// What a row has in a column; undefined without a value.
export type Values<T> = (row: T, column: string) => JsonValue | undefined;

const lower = (value: JsonValue | undefined): string =>
  value === undefined || value === null ? '' : (Array.isArray(value) ? value.join('\n') : typeof value === 'object' ? JSON.stringify(value) : String(value)).toLowerCase();

function compare(column: string, operator: Operator, text: string): (value: JsonValue | undefined) => boolean {
  const number = numberIn(column, text);
  const time = /Time$/.test(column) ? Date.parse(text) : NaN;
  const wanted = column === 'state' && text.toLowerCase() === 'failed' ? 'error' : text.toLowerCase();
  const order = (value: JsonValue | undefined): number => {
    if (Number.isFinite(time)) return Date.parse(String(value)) - time;
    if (number !== undefined) return typeof value === 'number' ? value - number : NaN;
    return value === undefined || value === null ? NaN : lower(value).localeCompare(wanted);
  };
  const equal = (value: JsonValue | undefined): boolean => {
    if (column === 'tags' && Array.isArray(value)) return value.some((one) => lower(one) === wanted);
    if (column === 'state' && wanted === 'active') return ['active', 'queued', 'building', 'starting', 'running'].includes(lower(value));
    return order(value) === 0;
  };
  switch (operator) {
    case '=':
    case 'in':
      return equal;
    case '!=':
      return (value) => !equal(value);
    case '~':
      return (value) => lower(value).includes(wanted);
    case '!~':
      return (value) => !lower(value).includes(wanted);
    case '<':
      return (value) => order(value) < 0;
    case '<=':
      return (value) => order(value) <= 0;
    case '>':
      return (value) => order(value) > 0;
    case '>=':
      return (value) => order(value) >= 0;
    case 'is empty':
      return (value) => lower(value) === '';
    case 'is not empty':
      return (value) => lower(value) !== '';
  }
}

// A function that tells whether a row fulfills the query.
export function matcher<T>(query: Query | undefined, values: Values<T>): (row: T) => boolean {
  if (!query) return () => true;
  if (query.kind === 'text') {
    const wanted = query.text.toLowerCase();
    return (row) => lower(values(row, 'id')) === wanted || TEXT_COLUMNS.some((column) => lower(values(row, column)).includes(wanted));
  }
  if (query.kind === 'test') {
    const { column, operator } = query;
    const all = (query.values.length === 0 ? [''] : query.values).map((text) => compare(column, operator, text));
    return (row) => {
      const value = values(row, column);
      return all.some((one) => one(value));
    };
  }
  const all = query.all.map((one) => matcher(one, values));
  return query.kind === 'and' ? (row) => all.every((one) => one(row)) : (row) => all.some((one) => one(row));
}

export interface Completion {
  from: number; // part of the text that it replaces
  to: number;
  options: string[];
}

// What may stand at the cursor: a column, an operator, a value, or a conjunction. `valuesOf` lists values of a column.
export function complete(text: string, cursor: number, known: readonly Known[], valuesOf: (column: string) => string[]): Completion {
  let all: Token[];
  try {
    all = tokens(text.slice(0, cursor));
  } catch {
    return { from: cursor, to: cursor, options: [] };
  }
  const current = all[all.length - 1];
  const typing = current?.kind !== 'sign' && current?.end === cursor ? current : undefined;
  const before = typing ? all.slice(0, -1) : all;
  const [last, previous] = [before[before.length - 1], before[before.length - 2]];
  const fits = (options: string[]): string[] => {
    const start = (typing?.text ?? '').toLowerCase();
    const found = options.filter((one) => one.toLowerCase().includes(start) && one.toLowerCase() !== start);
    return [...found].sort((a, b) => Number(b.toLowerCase().startsWith(start)) - Number(a.toLowerCase().startsWith(start)));
  };
  const answer = (options: string[]): Completion => ({ from: typing?.at ?? cursor, to: cursor, options: fits(options) });
  if (last?.kind === 'sign' && OPERATORS.includes(last.text) && previous) {
    try {
      return answer(valuesOf(columnOf(previous.text, known)).map(word));
    } catch {
      return answer([]);
    }
  }
  const starts = !last || last.text === '(' || ['and', 'or'].includes(last.text.toLowerCase());
  if (starts) return answer(known.map(({ key }) => word(key)));
  const isColumn = (token: Token): boolean => known.some(({ key }) => key === token.text);
  return answer(isColumn(last) ? [...OPERATORS, 'in (', 'is empty', 'is not empty'] : ['and', 'or']);
}
