// The state of a run table as encoded in its address: query, order, columns, groups, drawn runs. Pure.
import type { Condition, SearchQuery } from '../api';
import { withKnownStates, toSearch as searchOf, type Query } from './query';

export interface Sort {
  column: string;
  descending: boolean;
}
export interface View {
  text: string; // the query
  archived: boolean; // include archived experiments
  sorts: Sort[]; // primary key first
  columns: string[] | undefined; // undefined: the default
  pins: string[]; // columns that stay visible on the left
  heat: string[]; // columns colored by value
  groups: string[]; // columns with the values that group the rows
  drawn: number[] | undefined; // ids of the runs with curves; undefined: the first rows
  top: number[]; // ids of the runs that stay above the others
}

// They say which run a row is.
const DEFAULT_PINS = ['id', 'name'];
const NO_PINS = '-';

const names = (text: string | undefined): string[] => (text ?? '').split(',').filter((one) => one !== '');

const idsOf = (text: string | undefined): number[] => names(text).map(Number).filter((id) => id > 0);

// Runs above the others at most: more would hide these.
const MAX_TOP = 5;

// With a run above the others, or without it. Beyond MAX_TOP the first one makes room.
export const flipTop = (top: readonly number[], id: number): number[] => (top.includes(id) ? top.filter((one) => one !== id) : [...top, id].slice(-MAX_TOP));

export function readView(query: Record<string, string | undefined>): View {
  return {
    text: query.q ?? '',
    archived: query.archived === '1',
    sorts: names(query.sort)
      .filter((one) => one !== '-')
      .map((one) => ({ column: one.replace(/^-/, ''), descending: one.startsWith('-') })),
    columns: query.cols ? names(query.cols) : undefined,
    pins: !query.pin ? DEFAULT_PINS : names(query.pin).filter((one) => one !== NO_PINS),
    heat: names(query.heat),
    groups: names(query.group),
    drawn: !query.drawn ? undefined : idsOf(query.drawn),
    top: idsOf(query.top).slice(0, MAX_TOP),
  };
}

// The address keys to change for these parts of a view; "" removes a key.
export function writeView(change: Partial<View>): Record<string, string> {
  const out: Record<string, string> = {};
  if (change.text !== undefined) out.q = change.text;
  if (change.archived !== undefined) out.archived = change.archived ? '1' : '';
  if (change.sorts !== undefined)
    out.sort = change.sorts.map((one) => (one.descending ? '-' : '') + one.column).join(',');
  if (change.pins !== undefined) out.pin = change.pins.join(',') || NO_PINS;
  if (change.heat !== undefined) out.heat = change.heat.join(',');
  if (change.groups !== undefined) out.group = change.groups.join(',');
  if (change.top !== undefined) out.top = change.top.join(',');
  if ('columns' in change) out.cols = change.columns?.join(',') ?? '';
  if ('drawn' in change) out.drawn = change.drawn === undefined ? '' : change.drawn.length === 0 ? '0' : change.drawn.join(',');
  return out;
}

// The master's search for a view with this query as its text.
export function toSearch(query: Query | undefined, view: Pick<View, 'sorts' | 'archived'>): SearchQuery {
  const { text, condition } = searchOf(withKnownStates(query));
  const filterGroup = condition ?? { kind: 'group', conjunction: 'and', children: [] };
  return {
    text,
    sort: view.sorts.map((one) => `${one.column}=${one.descending ? 'desc' : 'asc'}`).join(','),
    filter: condition || view.archived ? JSON.stringify({ filterGroup, ...(view.archived ? { showArchived: true } : {}) }) : '',
  };
}

// The experiments with these ids among those that the query finds.
export function withIds(search: SearchQuery, ids: readonly number[]): SearchQuery {
  const own = search.filter ? JSON.parse(search.filter) : {};
  const rows: Condition = { kind: 'field', columnName: 'id', operator: '=', value: [...ids] };
  const children = own.filterGroup ? [own.filterGroup, rows] : [rows];
  return { ...search, filter: JSON.stringify({ ...own, filterGroup: { kind: 'group', conjunction: 'and', children } }) };
}

// Columns with values that never change, so that updates of rows keep the order.
const CONSTANT_COLUMNS = ['id', 'startTime', 'user', 'searcherType', 'forkedFrom'];
export const keepsOrder = (view: Pick<View, 'sorts'>): boolean => view.sorts.every(({ column }) => CONSTANT_COLUMNS.includes(column));

// Further columns whose changes come with an event of a new state or of an edit.
const REPORTED_COLUMNS = [...CONSTANT_COLUMNS, 'name', 'description', 'tags', 'state', 'endTime', 'resourcePool', 'searcherMetric'];

// Whether a row begins to match a query only with such an event.
export const keepsRows = (query: Query | undefined): boolean =>
  !query || query.kind === 'text' || (query.kind === 'test' ? REPORTED_COLUMNS.includes(query.column) : query.all.every(keepsRows));

// The order after a click on a column head: ascending, descending, none. With `add` other columns are kept. The first
// direction of a metric is the one that puts the best first.
export function nextSorts(sorts: Sort[], column: string, add: boolean, first = false): Sort[] {
  const own = sorts.find((one) => one.column === column);
  const rest = add ? sorts : sorts.filter((one) => one.column === column);
  if (!own) return [...(add ? sorts : []), { column, descending: first }];
  if (own.descending === first) return rest.map((one) => (one === own ? { column, descending: !first } : one));
  return rest.filter((one) => one !== own);
}
