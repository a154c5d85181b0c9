// The state of the experiment list as encoded in its address: text, conditions, order, columns. Pure.
import { DEFAULT_COLUMNS } from './columns';
import type { SearchQuery } from './api';

export interface Condition {
  column: string;
  operator: string;
  value: string;
}
export interface Sort {
  column: string;
  descending: boolean;
}
export interface View {
  text: string;
  state: string; // "" or "STATE_…"
  conditions: Condition[];
  any: boolean; // match any condition instead of all
  archived: boolean; // include archived experiments
  sorts: Sort[]; // primary key first
  columns: string[];
  pins: string[]; // columns that stay visible on the left
  heat: string[]; // columns colored by value
}

export const OPERATORS: readonly (readonly [string, string])[] = [
  ['contains', 'contains'],
  ['notContains', 'does not contain'],
  ['=', '='],
  ['!=', '≠'],
  ['<', '<'],
  ['<=', '≤'],
  ['>', '>'],
  ['>=', '≥'],
  ['isEmpty', 'is empty'],
  ['notEmpty', 'is not empty'],
];

export const needsValue = (operator: string): boolean => operator !== 'isEmpty' && operator !== 'notEmpty';

export const isComplete = (condition: Condition): boolean => !needsValue(condition.operator) || condition.value !== '';

function readConditions(text: string | undefined): Condition[] {
  try {
    const raw = JSON.parse(text ?? '[]');
    if (!Array.isArray(raw)) return [];
    return raw
      .filter((one) => Array.isArray(one) && one.length === 3 && one.every((part) => typeof part === 'string'))
      .map(([column, operator, value]) => ({ column, operator, value }))
      .filter(({ operator }) => OPERATORS.some(([name]) => name === operator));
  } catch {
    return [];
  }
}

const names = (text: string | undefined): string[] => (text ?? '').split(',').filter((one) => one !== '');

export function readView(query: Record<string, string | undefined>): View {
  return {
    text: query.q ?? '',
    state: /^STATE_[A-Z_]+$/.test(query.state ?? '') ? (query.state ?? '') : '',
    conditions: readConditions(query.f),
    any: query.any === '1',
    archived: query.archived === '1',
    sorts: (query.sort ?? '')
      .split(',')
      .filter((one) => one !== '' && one !== '-')
      .map((one) => ({ column: one.replace(/^-/, ''), descending: one.startsWith('-') })),
    columns: query.cols ? names(query.cols) : DEFAULT_COLUMNS,
    pins: names(query.pin),
    heat: names(query.heat),
  };
}

// The address keys to change for these parts of a view; "" removes a key.
export function writeView(change: Partial<View>): Record<string, string> {
  const out: Record<string, string> = {};
  if (change.text !== undefined) out.q = change.text;
  if (change.state !== undefined) out.state = change.state;
  if (change.conditions !== undefined) {
    out.f =
      change.conditions.length === 0
        ? ''
        : JSON.stringify(change.conditions.map((one) => [one.column, one.operator, one.value]));
  }
  if (change.any !== undefined) out.any = change.any ? '1' : '';
  if (change.archived !== undefined) out.archived = change.archived ? '1' : '';
  if (change.sorts !== undefined)
    out.sort = change.sorts.map((one) => (one.descending ? '-' : '') + one.column).join(',');
  if (change.pins !== undefined) out.pin = change.pins.join(',');
  if (change.heat !== undefined) out.heat = change.heat.join(',');
  if (change.columns !== undefined)
    out.cols = change.columns.join() === DEFAULT_COLUMNS.join() ? '' : change.columns.join(',');
  return out;
}

const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));
// Columns with text values, even if a value looks like a number.
const TEXTUAL = ['name', 'description', 'tags', 'user', 'resourcePool', 'startTime', 'endTime', 'searcherType'];

function child({ column, operator, value }: Condition): object {
  const asNumber = isNumber(value) && !TEXTUAL.includes(column) && !/ontains/.test(operator);
  return { kind: 'field', columnName: column, operator, value: asNumber ? Number(value) : value };
}

// Converts a view to a query. Incomplete conditions (without a value) are ignored.
export function toSearch(view: View): SearchQuery {
  const whole = view.conditions.filter(isComplete);
  const children: object[] = [
    { kind: 'group', conjunction: view.any ? 'or' : 'and', children: whole.map(child) },
  ];
  if (view.state !== '')
    children.push({ kind: 'field', columnName: 'state', operator: '=', value: view.state });
  const filtered = whole.length > 0 || view.state !== '' || view.archived;
  return {
    text: view.text.trim(),
    sort: view.sorts.map((one) => `${one.column}=${one.descending ? 'desc' : 'asc'}`).join(','),
    filter: filtered
      ? JSON.stringify({
          filterGroup: { kind: 'group', conjunction: 'and', children },
          ...(view.archived ? { showArchived: true } : {}),
        })
      : '',
  };
}

// The experiments with these ids among those that the query finds.
export function withIds(search: SearchQuery, ids: readonly number[]): SearchQuery {
  const own = search.filter ? JSON.parse(search.filter) : {};
  const rows = { kind: 'field', columnName: 'id', operator: '=', value: ids };
  const children = own.filterGroup ? [own.filterGroup, rows] : [rows];
  return { ...search, filter: JSON.stringify({ ...own, filterGroup: { kind: 'group', conjunction: 'and', children } }) };
}

// Columns whose values never change, so that updates of rows keep the order.
const CONSTANT_COLUMNS = ['id', 'startTime', 'user', 'searcherType', 'forkedFrom'];
export const keepsOrder = (view: View): boolean => view.sorts.every(({ column }) => CONSTANT_COLUMNS.includes(column));

// The order after a click on a column head: ascending, descending, none. With `add` other columns are kept.
export function nextSorts(sorts: Sort[], column: string, add: boolean): Sort[] {
  const own = sorts.find((one) => one.column === column);
  const rest = add ? sorts : sorts.filter((one) => one.column === column);
  if (!own) return [...(add ? sorts : []), { column, descending: false }];
  if (!own.descending) return rest.map((one) => (one === own ? { column, descending: true } : one));
  return rest.filter((one) => one !== own);
}
