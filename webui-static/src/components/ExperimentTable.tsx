// Table of experiments. Only visible rows are rendered; keys move, select and open. Does not fetch.
import { signal, type Signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import type { Column } from '../columns';
import { isEnded } from '../format';
import type { Heat } from '../heat';
import { typing } from '../keys';
import type { Paged } from '../paged';
import { density } from '../settings';
import type { Sort } from '../view';
import type { FoundExperiment } from '../wire';
import { useNow } from './clock';

// Rows rendered above and below the visible ones.
const MARGIN = 8;
const CHOICE_WIDTH = 40;
const NARROW_NAME = 112;

export const rowHeight = (): number => (density.value === 'dense' ? 28 : 38);

interface Props {
  list: Paged<FoundExperiment>;
  columns: Column[];
  sorts: Sort[];
  pins: readonly string[]; // leading columns that stay visible
  heat: Heat;
  chosen: Signal<ReadonlyMap<number, FoundExperiment>>;
  sort: (column: string, add: boolean) => void;
}

// The left offset of a pinned column.
function pinned(columns: readonly Column[], pins: readonly string[], key: string): { left: string } | undefined {
  if (!pins.includes(key)) return undefined;
  const before = columns.slice(0, columns.findIndex((one) => one.key === key));
  return { left: `${before.reduce((sum, one) => sum + one.width, CHOICE_WIDTH)}px` };
}

function Head({ columns, sorts, sort, pins }: Pick<Props, 'columns' | 'sorts' | 'sort' | 'pins'>) {
  return (
    <thead>
      <tr>
        <th scope="col">
          <span class="hidden">Choice</span>
        </th>
        {columns.map((column) => {
          const place = sorts.findIndex((one) => one.column === column.key);
          const own = sorts[place];
          return (
            <th
              scope="col"
              key={column.key}
              class={`${column.number ? 'number' : ''} ${pins.includes(column.key) ? 'pinned' : ''}`}
              style={pinned(columns, pins, column.key)}
              aria-sort={own ? (own.descending ? 'descending' : 'ascending') : undefined}
            >
              <button
                type="button"
                class="sort"
                title="Sort; with Shift as a further column"
                onClick={(event) => sort(column.key, event.shiftKey)}
              >
                {column.title}
                {own && <span aria-hidden="true">{own.descending ? ' ↓' : ' ↑'}</span>}
                {own && sorts.length > 1 && <sup>{place + 1}</sup>}
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

export function toggled(
  chosen: ReadonlyMap<number, FoundExperiment>,
  one: FoundExperiment,
): ReadonlyMap<number, FoundExperiment> {
  const next = new Map(chosen);
  if (!next.delete(one.experiment.id)) next.set(one.experiment.id, one);
  return next;
}

const sight = signal({ first: 0, last: 40 });
const cursor = signal(-1);

function useTableKeys(list: Paged<FoundExperiment>, chosen: Props['chosen'], frame: { current: HTMLElement | null }) {
  const { route } = useLocation();
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    cursor.value = -1;
    const move = (by: number): void => {
      const total = latest.current.total ?? 0;
      const next = Math.min(total - 1, Math.max(0, cursor.value + by));
      cursor.value = next;
      const element = frame.current;
      if (!element) return;
      const top = next * rowHeight();
      const room = element.clientHeight - 2 * rowHeight();
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top > element.scrollTop + room) element.scrollTop = top - room;
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      const onControl = (event.target as HTMLElement).closest?.('a, button') !== null;
      const one = latest.current.at(cursor.value);
      if (event.key === 'j' || event.key === 'ArrowDown') move(1);
      else if (event.key === 'k' || event.key === 'ArrowUp') move(-1);
      else if (one && (event.key === 'x' || (event.key === ' ' && !onControl)))
        chosen.value = toggled(chosen.value, one);
      else if (one && event.key === 'Enter' && !onControl) route(paths.experiment(one.experiment.id));
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

function Row(props: {
  index: number;
  one: FoundExperiment | undefined;
  columns: Column[];
  now: number;
  pins: readonly string[];
  heat: Heat;
  chosen: Props['chosen'];
}) {
  const { one, columns, chosen, pins } = props;
  const height = { height: `${rowHeight()}px` };
  const classes = props.index === cursor.value ? 'cursor' : '';
  if (!one) {
    return (
      <tr style={height} class={classes} aria-rowindex={props.index + 2}>
        <td colSpan={columns.length + 1} class="quiet">
          …
        </td>
      </tr>
    );
  }
  const id = one.experiment.id;
  return (
    <tr
      style={height}
      class={`${classes} ${chosen.value.has(id) ? 'chosen' : ''}`}
      aria-rowindex={props.index + 2}
      data-id={id}
    >
      <td>
        <input
          type="checkbox"
          aria-label={`Choose experiment ${id}`}
          checked={chosen.value.has(id)}
          onChange={() => (chosen.value = toggled(chosen.value, one))}
        />
      </td>
      {columns.map((column) =>
        column.key === 'name' ? (
          <th scope="row" key="name" class={pins.includes('name') ? 'pinned' : ''} style={pinned(columns, pins, 'name')}>
            {column.cell(one, props.now)}
          </th>
        ) : (
          <td
            key={column.key}
            class={`${column.number ? 'number' : ''} ${pins.includes(column.key) ? 'pinned' : ''} ${props.heat(column.key, one)}`}
            style={pinned(columns, pins, column.key)}
          >
            {column.cell(one, props.now)}
          </td>
        ),
      )}
    </tr>
  );
}

// On a phone the name column is narrower, so that the state beside it is visible.
const fitted = (columns: Column[]): Column[] =>
  matchMedia('(max-width: 40rem)').matches
    ? columns.map((column) => (column.key === 'name' ? { ...column, width: NARROW_NAME } : column))
    : columns;

export function ExperimentTable({ list, columns: wanted, sorts, pins, heat, chosen, sort }: Props) {
  const columns = fitted(wanted);
  const frame = useRef<HTMLDivElement>(null);
  const total = list.total ?? 0;
  const height = rowHeight();
  const look = (): void => {
    const element = frame.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / height) - MARGIN);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MARGIN;
    if (first !== sight.value.first || last !== sight.value.last) sight.value = { first, last };
    list.look(first, last);
  };
  useEffect(look, [total, height, columns.length]);
  useTableKeys(list, chosen, frame);
  const first = Math.min(sight.value.first, Math.max(0, total - 1));
  const last = Math.min(total - 1, sight.value.last);
  const rows: number[] = [];
  for (let index = first; index <= last; index++) rows.push(index);
  const now = useNow(rows.some((index) => !isEnded(list.at(index)?.experiment.state ?? 'STATE_COMPLETED')));
  const width = columns.reduce((sum, column) => sum + column.width, CHOICE_WIDTH);
  const gap = (count: number) =>
    count > 0 && (
      <tr aria-hidden="true" style={{ height: `${count * height}px` }}>
        <td colSpan={columns.length + 1} class="gap" />
      </tr>
    );
  return (
    <div
      class="table-frame table-tall"
      ref={frame}
      onScroll={look}
      tabIndex={0}
      role="region"
      aria-label="Experiments"
    >
      <table class="fixed" aria-rowcount={total + 1} style={{ minWidth: `${width}px` }}>
        <colgroup>
          <col style={{ width: `${CHOICE_WIDTH}px` }} />
          {columns.map((column) => (
            <col key={column.key} style={{ width: `${column.width}px` }} />
          ))}
        </colgroup>
        <Head columns={columns} sorts={sorts} sort={sort} pins={pins} />
        <tbody>
          {gap(first)}
          {rows.map((index) => (
            <Row
              key={index}
              index={index}
              one={list.at(index)}
              columns={columns}
              now={now}
              pins={pins}
              heat={heat}
              chosen={chosen}
            />
          ))}
          {gap(total - 1 - last)}
        </tbody>
      </table>
    </div>
  );
}
