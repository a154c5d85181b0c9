// Table of runs and groups of runs. Only visible rows are rendered; keys move, select and open. Does not fetch.
import { effect, signal, type Signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { useNow } from '../components/clock';
import { Icon } from '../components/Icon';
import { Swatch } from '../components/Swatch';
import { useWidth } from '../components/width';
import { isEnded, metric } from '../format';
import { typing } from '../keys';
import type { Paged } from '../paged';
import { density } from '../settings';
import type { Column } from './columns';
import { fitted, NAMES } from './fitted';
import { spread, type Group } from './groups';
import type { Heat } from './heat';
import { onPhone } from '../phone';
import type { Run } from './runs';
import { hovered, trialOf } from './selection';
import type { Sort } from './view';

export type Item = { run: Run; group?: undefined } | { group: Group; run?: undefined };

// Rows rendered above and below the visible ones.
const MARGIN = 8;
// Width of the first column: the round button with the pin, and a check box before it.
const CHOICE_WIDTH = 54;
const PHONE_WIDTH = 36;
const BOX_WIDTH = 24;
const PHONE_BOX_WIDTH = 36;
// Widths on a phone, so that name and metric fit; pixels of padding that the id does not have there.
const NARROW: Record<string, number> = { name: 200, experiment: 200, state: 106, searcherMetricsVal: 68 };
const LESS_PADDING = 16;

// A row on a phone has two lines for the name, and id and state below it.
const NAMED_HEIGHT = 62;
const rowHeight = (columns: readonly Column[]): number =>
  onPhone() ? (columns.some(({ key }) => NAMES.includes(key)) ? NAMED_HEIGHT : 48) : density.value === 'dense' ? 26 : 34;

interface Props {
  label: string;
  items: Paged<Item>;
  columns: Column[];
  sorts: Sort[];
  pins: readonly string[]; // leading columns that stay visible
  heat: Heat;
  chosen: Signal<ReadonlyMap<number, Run>> | undefined; // undefined: rows cannot be chosen
  colors: ReadonlyMap<number, string>; // of the drawn runs, by id
  closed: Signal<ReadonlySet<string>>; // groups with hidden runs
  draw: (run: Run) => void; // draws or removes its curves
  top: readonly Run[]; // stay below the head while the others scroll
  pin: (run: Run) => void; // puts a run there or takes it away
  sort: (column: string, add: boolean) => void;
}

// The left offset of a pinned column.
function pinned(columns: readonly Column[], pins: readonly string[], key: string, first: number): { left: string } | undefined {
  if (!pins.includes(key)) return undefined;
  const before = columns.slice(0, columns.findIndex((one) => one.key === key));
  return { left: `${before.reduce((sum, one) => sum + one.width, first)}px` };
}

const pinClass = (columns: readonly Column[], pins: readonly string[], key: string): string =>
  !pins.includes(key) ? '' : columns.filter((one) => pins.includes(one.key)).slice(-1)[0]?.key === key ? 'pinned pinned-last' : 'pinned';

const numberClass = ({ number, deviating }: Column): string => (number ? (deviating ? 'number deviating' : 'number') : '');

// Two digits: "0.0012", "3.4e-5".
const deviationText = (value: number): string => (value > 0 && value < 1e-4 ? value.toExponential(1) : metric(Number(value.toPrecision(2))));

const firstWidth = (chosen: Props['chosen']): number =>
  onPhone() ? PHONE_WIDTH + (chosen ? PHONE_BOX_WIDTH : 0) : CHOICE_WIDTH + (chosen ? BOX_WIDTH : 0);

function Head({ columns, sorts, sort, pins, chosen }: Pick<Props, 'columns' | 'sorts' | 'sort' | 'pins' | 'chosen'>) {
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
              class={`${numberClass(column)} ${pinClass(columns, pins, column.key)}`}
              style={pinned(columns, pins, column.key, firstWidth(chosen))}
              aria-sort={own ? (own.descending ? 'descending' : 'ascending') : undefined}
            >
              <button
                type="button"
                class="sort"
                title={`Sort by ${column.title}; with Shift as a further column`}
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

export function toggled(chosen: ReadonlyMap<number, Run>, run: Run): ReadonlyMap<number, Run> {
  const next = new Map(chosen);
  if (!next.delete(run.id)) next.set(run.id, run);
  return next;
}

// The rendered rows. Before the first look, those that fit into the window: the margin is drawn after the first paint.
const sight = signal({ first: 0, last: 0 });
const cursor = signal(-1);
const addressOf = (run: Run): string => (run.kind === 'trial' ? paths.trial(run.id) : paths.experiment(run.id));

function useTableKeys(props: Props, frame: { current: HTMLElement | null }) {
  const { route } = useLocation();
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    cursor.value = -1;
    const move = (by: number): void => {
      const total = latest.current.items.total ?? 0;
      const next = Math.min(total - 1, Math.max(0, cursor.value + by));
      cursor.value = next;
      const element = frame.current;
      if (!element) return;
      const height = rowHeight(latest.current.columns);
      const top = next * height;
      const room = element.clientHeight - (2 + latest.current.top.length) * height;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top > element.scrollTop + room) element.scrollTop = top - room;
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      const { items, chosen, draw, pin } = latest.current;
      const onControl = (event.target as HTMLElement).closest?.('a, button, [role="separator"]') !== null;
      const run = items.at(cursor.value)?.run;
      if (event.key === 'j' || (event.key === 'ArrowDown' && !onControl)) move(1);
      else if (event.key === 'k' || (event.key === 'ArrowUp' && !onControl)) move(-1);
      else if (run && event.key === 'v') draw(run);
      else if (run && event.key === 'p') pin(run);
      else if (run && chosen && (event.key === 'x' || (event.key === ' ' && !onControl))) chosen.value = toggled(chosen.value, run);
      else if (run && event.key === 'Enter' && !onControl) route(addressOf(run));
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

interface RowProps extends Pick<Props, 'columns' | 'pins' | 'heat' | 'chosen' | 'colors' | 'draw' | 'pin' | 'top'> {
  index: number | undefined; // undefined: the row stays below the head
  run: Run;
  now: number;
}

function RunRow({ index, run, now, columns, pins, heat, chosen, colors, draw, pin, top }: RowProps) {
  const isTop = top.some(({ id }) => id === run.id);
  const color = colors.get(run.id);
  const isChosen = chosen?.value.has(run.id) ?? false;
  const shown = color !== undefined;
  return (
    <tr
      style={{ height: `${rowHeight(columns)}px` }}
      class={`${index === cursor.value ? 'cursor' : ''} ${isChosen ? 'chosen' : ''} ${shown ? 'drawn' : ''}`}
      aria-rowindex={index === undefined ? undefined : index + 2}
      data-id={run.id}
      data-trial={trialOf(run)}
      onPointerEnter={() => (hovered.value = shown ? trialOf(run) : undefined)}
      onPointerLeave={() => (hovered.value = undefined)}
    >
      <td>
        <span class="choice">
          {chosen && (
            <label>
              <input
                type="checkbox"
                aria-label={`Choose ${run.kind} ${run.id}`}
                checked={isChosen}
                onChange={() => (chosen.value = toggled(chosen.value, run))}
              />
            </label>
          )}
          <button
            type="button"
            class="eye"
            aria-label={`Draw ${run.kind} ${run.id}`}
            aria-pressed={shown}
            title={shown ? 'Hide its curves' : 'Draw its curves'}
            style={shown ? { background: color } : undefined}
            onClick={() => draw(run)}
          />
          <button
            type="button"
            class="plain pin"
            aria-label={`Pin ${run.kind} ${run.id}`}
            aria-pressed={isTop}
            title={isTop ? 'Take it back to the other rows' : 'Keep it above the other rows'}
            onClick={() => pin(run)}
          >
            <Icon name="pin" />
          </button>
        </span>
      </td>
      {columns.map((column) =>
        column.key === 'name' ? (
          <th scope="row" key="name" class={pinClass(columns, pins, 'name')} style={pinned(columns, pins, 'name', firstWidth(chosen))}>
            {column.cell(run, now)}
          </th>
        ) : (
          <td
            key={column.key}
            class={`${numberClass(column)} ${pinClass(columns, pins, column.key)} ${heat(column.key, run)}`}
            style={pinned(columns, pins, column.key, firstWidth(chosen))}
          >
            {column.cell(run, now)}
          </td>
        ),
      )}
    </tr>
  );
}

// A group: its label over the first columns, then mean ± deviation of numeric ones.
function GroupRow({ group, index, columns, closed, colors }: Pick<Props, 'columns' | 'closed' | 'colors'> & { group: Group; index: number }) {
  const color = group.runs.map(({ id }) => colors.get(id)).find((one) => one !== undefined);
  const open = !closed.value.has(group.key);
  const toggle = (): void => {
    const next = new Set(closed.value);
    if (!next.delete(group.key)) next.add(group.key);
    closed.value = next;
  };
  const firstNumber = columns.findIndex((column, at) => at > 0 && column.number && column.key !== 'id');
  const named = firstNumber < 0 ? columns.length : firstNumber;
  return (
    <tr class="group" style={{ height: `${rowHeight(columns)}px` }} aria-rowindex={index + 2}>
      <th scope="rowgroup" colSpan={named + 1}>
        <button type="button" class="plain" aria-expanded={open} onClick={toggle}>
          <span aria-hidden="true">{open ? '▾' : '▸'}</span> {color && <Swatch color={color} />}
          {group.label}
        </button>{' '}
        <span class="quiet">{group.runs.length}</span>
      </th>
      {columns.slice(named).map((column) => {
        const own = column.number ? spread(group.runs, column.key) : undefined;
        return (
          <td key={column.key} class={numberClass(column)}>
            {own && column.key !== 'id' && (
              <>
                {(column.text ?? metric)(own.mean)}
                {own.count > 1 && <span class="deviation"> ± {deviationText(own.deviation)}</span>}
              </>
            )}
          </td>
        );
      })}
    </tr>
  );
}

// On a phone the name and the metric fit; id and state are below the name. A trial without a name keeps its column of ids.
function forPhone(columns: Column[]): Column[] {
  const narrow = columns.map((column) => ({
    ...column,
    width: NARROW[column.key] ?? (column.key === 'id' ? column.width - LESS_PADDING : column.width),
  }));
  const name = narrow.find(({ key }) => NAMES.includes(key));
  if (!name) return narrow;
  const [state, cell] = [narrow.find(({ key }) => key === 'state'), name.cell];
  name.cell = (run, now) => (
    <>
      <span class="wrapped">{cell(run, now)}</span>
      <span class="below">
        {run.kind === 'trial' ? <a href={paths.trial(run.id)}>trial {run.id}</a> : <span class="quiet">ID {run.id}</span>}
        {state?.cell(run, now)}
      </span>
    </>
  );
  return narrow.filter(({ key }) => key !== 'id' && key !== 'state');
}

// Marks the row of the trial under the pointer, without rendering the rows again.
function useHovered(frame: { current: HTMLElement | null }): void {
  useEffect(
    () =>
      effect(() => {
        const trial = hovered.value;
        for (const row of frame.current?.querySelectorAll('tr.hovered') ?? []) row.classList.remove('hovered');
        if (trial === undefined) return;
        for (const row of frame.current?.querySelectorAll(`tr[data-trial="${trial}"]`) ?? []) row.classList.add('hovered');
      }),
    [],
  );
}

export function RunTable(props: Props) {
  const { items, pins } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [measured, frameWidth] = useWidth<HTMLDivElement>(0);
  const host = useCallback((element: HTMLDivElement | null) => {
    frame.current = element;
    measured(element);
  }, []);
  const choiceWidth = firstWidth(props.chosen);
  const columns = fitted(onPhone() ? forPhone(props.columns) : props.columns, frameWidth - choiceWidth);
  const total = items.total ?? 0;
  const height = rowHeight(columns);
  const look = (): void => {
    const element = frame.current;
    if (!element?.firstElementChild) return;
    const first = Math.max(0, Math.floor(element.scrollTop / height) - MARGIN);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MARGIN;
    if (first !== sight.value.first || last !== sight.value.last) sight.value = { first, last };
    items.look(first, last);
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    // The frame grows with its rows, and with the window.
    const observer = new ResizeObserver(() => latest.current());
    if (frame.current) observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  useEffect(look, [total, height, columns.length]);
  useTableKeys(props, frame);
  useHovered(frame);
  const first = Math.min(sight.value.first, Math.max(0, total - 1));
  const last = Math.min(total - 1, sight.value.last || Math.ceil(innerHeight / height));
  const rows: number[] = [];
  for (let index = first; index <= last; index++) rows.push(index);
  const now = useNow(rows.some((index) => !isEnded(items.at(index)?.run?.state ?? 'STATE_COMPLETED')));
  const width = columns.reduce((sum, column) => sum + column.width, choiceWidth);
  const gap = (count: number) =>
    count > 0 && (
      <tr aria-hidden="true" style={{ height: `${count * height}px` }}>
        <td colSpan={columns.length + 1} class="gap" />
      </tr>
    );
  const row = (index: number) => {
    const item = items.at(index);
    if (item?.group) return <GroupRow key={index} group={item.group} index={index} columns={columns} closed={props.closed} colors={props.colors} />;
    if (item) return <RunRow key={index} {...props} columns={columns} index={index} run={item.run} now={now} />;
    return (
      <tr key={index} style={{ height: `${height}px` }} aria-rowindex={index + 2}>
        <td colSpan={columns.length + 1} class="quiet">
          …
        </td>
      </tr>
    );
  };
  // The width is known before the table is drawn, so that it is laid out once; a scroll bar would change it.
  const isLong = total * height > innerHeight;
  return (
    <div
      class={`table-frame table-tall ${isLong ? 'table-long' : ''}`}
      ref={host}
      onScroll={look}
      tabIndex={0}
      role="region"
      aria-label={props.label}
    >
      {frameWidth > 0 && (
        <table class="fixed" aria-rowcount={total + 1} style={{ minWidth: `${width}px` }}>
          <colgroup>
            <col style={{ width: `${choiceWidth}px` }} />
            {columns.map((column) => (
              <col key={column.key} style={{ width: `${column.width}px` }} />
            ))}
          </colgroup>
          <Head columns={columns} sorts={props.sorts} sort={props.sort} pins={pins} chosen={props.chosen} />
          {props.top.length > 0 && (
            <tbody class="top-rows">
              {props.top.map((run) => (
                <RunRow key={run.id} {...props} columns={columns} index={undefined} run={run} now={now} />
              ))}
            </tbody>
          )}
          <tbody>
            {gap(first)}
            {rows.map(row)}
            {gap(total - 1 - last)}
          </tbody>
        </table>
      )}
    </div>
  );
}
