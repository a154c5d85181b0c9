// Table of runs and groups of runs. Only visible rows are rendered; keys move, select and open. Does not fetch.
import { effect, signal, type Signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useCallback, useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { useNow } from '../components/clock';
import { useWidth } from '../components/width';
import { isEnded } from '../format';
import { typing } from '../keys';
import type { Paged } from '../paged';
import { onPhone } from '../phone';
import { density } from '../settings';
import type { Column } from './columns';
import { edges, fitted, revealed } from './fitted';
import type { Group } from './groups';
import { firstWidth, GroupRow, Head, RunRow, toggled, type HeadProps, type RowProps } from './rows';
import type { Run } from './runs';
import { hovered } from './selection';
import { besidePanels, onOneLine } from './shapes';

export type Item = { run: Run; group?: undefined } | { group: Group; run?: undefined };

// Rows rendered above and below the visible ones.
const MARGIN = 8;
// The margin follows this long after the first paint.
const FIRST_LOOK_MS = 50;
// Least width for columns that scroll beside the pinned ones.
const SCROLLING_WIDTH = 180;
// Height of the head with the borders of the frame; a table with more rows than this shows at least as much.
const HEAD_HEIGHT = 38;
const LEAST_HEIGHT = 128;

// A row on a phone has two lines for the name, and id, state and metric below it.
const PHONE_HEIGHT = 66;
const rowHeight = (): number => (onPhone() ? PHONE_HEIGHT : density.value === 'dense' ? 26 : 34);

interface Props extends Omit<RowProps, 'height' | 'filled'>, Pick<HeadProps, 'sorts' | 'sort' | 'all' | 'showAll'> {
  label: string;
  items: Paged<Item>;
  beside: boolean; // has panels beside it
  single: boolean; // has one run, and no filter hides others
  closed: Signal<ReadonlySet<string>>; // groups with hidden runs
  grouped: boolean;
  picked: boolean; // the user chose the columns
  hides: Signal<number>; // set to the number of columns beyond the right edge
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
      const height = rowHeight();
      const top = next * height;
      const room = element.clientHeight - (2 + latest.current.top.length) * height;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top > element.scrollTop + room) element.scrollTop = top - room;
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      const { items, chosen, draw, pin } = latest.current;
      const onControl = (event.target as HTMLElement).closest?.('a, button, summary, [role="separator"]') !== null;
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

// Pinned columns would leave no room for the others in a narrow window (styles/table.css).
const pinsStay = (): boolean => innerWidth > 768;

// Scrolls to a column that was just added or sorted by. Returns the width of what does not scroll, and the columns with
// a last one so wide that the table, scrolled to its end, begins with a whole column beside the pinned ones.
function useScrolling(frame: { current: HTMLElement | null }, columns: Column[], { pins, sorts, beside, picked }: Pick<Props, 'pins' | 'sorts' | 'beside' | 'picked'>, first: number, frameWidth: number): { columns: Column[]; pinnedWidth: number } {
  const [still, moving] = [columns.filter(({ key }) => pinsStay() && pins.includes(key)), columns.filter(({ key }) => !pinsStay() || !pins.includes(key))];
  const pinnedWidth = still.reduce((sum, { width }) => sum + width, first);
  const widths = moving.map(({ width }) => width);
  const room = frameWidth - pinnedWidth;
  const keys = columns.map(({ key }) => key);
  const order = JSON.stringify(sorts);
  const before = useRef({ keys, sorts, order, beside });
  useLayoutEffect(() => {
    const last = before.current;
    before.current = { keys, sorts, order, beside };
    // Beside panels the table has other columns, which were not added.
    if (!frame.current || last.beside !== beside || (last.keys.join() === keys.join() && last.order === order)) return;
    const added = picked && keys.length - last.keys.length <= 1 ? keys.find((key) => !last.keys.includes(key)) : undefined;
    const sorted = last.order === order ? undefined : sorts.find(({ column }) => !last.sorts.some((one) => one.column === column))?.column;
    const touched = moving.findIndex(({ key }) => key === (added ?? sorted));
    if (touched >= 0) frame.current.scrollLeft = revealed(widths, touched, room, frame.current.scrollLeft);
  }, [keys.join(), order, beside]);
  const { filler } = edges(widths, room);
  const end = moving[moving.length - 1];
  return { columns: filler > 0 ? columns.map((one) => (one === end ? { ...one, width: one.width + filler } : one)) : columns, pinnedWidth };
}

const markScrolled = (element: HTMLElement): void => void element.classList.toggle('scrolled', element.scrollLeft > 0);

// The columns as the frame has room for them; of those beyond its right edge only the number is known outside.
function useColumns(props: Props, frame: { current: HTMLElement | null }, choiceWidth: number, frameWidth: number) {
  const beside = props.beside && !onPhone();
  const shaped = onPhone() ? onOneLine(props.columns, frameWidth - choiceWidth) : beside ? besidePanels(props.columns, props.all, props.grouped) : props.columns;
  // Beside panels the id scrolls away from a name.
  const pins = beside && shaped.some(({ class: name }) => name === 'small-id') ? props.pins.filter((key) => key !== 'id') : props.pins;
  const sized = fitted(shaped, frameWidth - choiceWidth, beside ? SCROLLING_WIDTH : 0);
  const { columns, pinnedWidth } = useScrolling(frame, sized, { pins, sorts: props.sorts, beside, picked: props.picked }, choiceWidth, frameWidth);
  const isBeyond = (at: number): boolean => columns.slice(0, at + 1).reduce((sum, { width }) => sum + width, choiceWidth) > frameWidth + 1;
  const hidden = onPhone() || frameWidth === 0 ? 0 : columns.filter((_, at) => isBeyond(at)).length;
  useLayoutEffect(() => void (props.hides.value = hidden), [hidden]);
  return { columns, pins, pinnedWidth, hidden };
}

// Follows the rows in sight. Returns the function that looks at them.
function useSight(frame: { current: HTMLElement | null }, items: Props['items'], height: number, changes: readonly unknown[]): () => void {
  const look = (): void => {
    const element = frame.current;
    if (!element?.firstElementChild) return;
    markScrolled(element);
    const first = Math.max(0, Math.floor(element.scrollTop / height) - MARGIN);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MARGIN;
    if (first !== sight.value.first || last !== sight.value.last) sight.value = { first, last };
    items.look(first, last);
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    // The frame grows with its rows, and with the window. Its first size is that of the first paint, which has its rows.
    let isFirst = true;
    const observer = new ResizeObserver(() => {
      if (!isFirst) latest.current();
      isFirst = false;
    });
    if (frame.current) observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (sight.value.last > 0) return look();
    const timer = setTimeout(() => latest.current(), FIRST_LOOK_MS);
    return () => clearTimeout(timer);
  }, [height, ...changes]);
  return look;
}

// The place of rows that are not rendered.
const Gap = ({ count, height, columns }: { count: number; height: number; columns: number }) =>
  count > 0 ? (
    <tr aria-hidden="true" style={{ height: `${count * height}px` }}>
      <td colSpan={columns + 1} class="gap" />
    </tr>
  ) : null;

// The rows in sight; those that the master has not sent yet have a sign in their place.
function Rows({ items, ...shared }: RowProps & Pick<Props, 'items' | 'closed'>) {
  const { columns, height } = shared;
  const total = items.total ?? 0;
  const first = Math.min(sight.value.first, Math.max(0, total - 1));
  const last = Math.min(total - 1, sight.value.last || Math.ceil(innerHeight / height));
  const indexes = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  const now = useNow(indexes.some((index) => !isEnded(items.at(index)?.run?.state ?? 'STATE_COMPLETED')));
  const row = (index: number) => {
    const item = items.at(index);
    if (item?.group) return <GroupRow key={index} {...shared} group={item.group} index={index} />;
    if (item) return <RunRow key={index} {...shared} index={index} isCursor={index === cursor.value} run={item.run} now={now} />;
    return (
      <tr key={index} style={{ height: `${height}px` }} aria-rowindex={index + 2}>
        <td colSpan={columns.length + 1} class="quiet">
          …
        </td>
      </tr>
    );
  };
  return (
    <>
      {shared.top.length > 0 && (
        <tbody class="top-rows">
          {shared.top.map((run) => (
            <RunRow key={run.id} {...shared} index={undefined} isCursor={false} run={run} now={now} />
          ))}
        </tbody>
      )}
      <tbody>
        <Gap count={first} height={height} columns={columns.length} />
        {indexes.map(row)}
        <Gap count={total - 1 - last} height={height} columns={columns.length} />
      </tbody>
    </>
  );
}

export function RunTable(props: Props) {
  const { items } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [measured, frameWidth] = useWidth<HTMLDivElement>(0);
  const host = useCallback((element: HTMLDivElement | null) => {
    frame.current = element;
    measured(element);
  }, []);
  const choiceWidth = firstWidth(props.chosen);
  const { columns, pins, pinnedWidth, hidden } = useColumns(props, frame, choiceWidth, frameWidth);
  const total = items.total ?? 0;
  const height = rowHeight();
  const look = useSight(frame, items, height, [total, columns.length, frameWidth > 0]);
  useTableKeys(props, frame);
  useHovered(frame);
  const width = columns.reduce((sum, column) => sum + column.width, choiceWidth);
  const shared = { ...props, columns, pins, height, filled: sight.value.last === 0 ? columns.length - hidden : columns.length };
  // The width is known before the table is drawn, so that it is laid out once; a scroll bar would change it.
  const isLong = total * height > innerHeight;
  const least = Math.min(LEAST_HEIGHT, HEAD_HEIGHT + (total + props.top.length) * height);
  return (
    <div
      class={`table-frame table-tall ${isLong ? 'table-long' : ''}`}
      style={{ minHeight: `${least}px`, scrollPaddingLeft: `${pinnedWidth}px` }}
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
          <Head {...shared} total={total} />
          <Rows {...shared} />
        </table>
      )}
    </div>
  );
}
