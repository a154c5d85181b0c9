// Head and rows of a run table: runs, and groups of them.
import type { Signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { Icon } from '../components/Icon';
import { Swatch } from '../components/Swatch';
import { metric } from '../format';
import { onPhone } from '../phone';
import { None, type Column } from './columns';
import { NAMES } from './fitted';
import { deviationText, rangeText, searchesByBest, sizeText, spread, spreadText, type Group } from './groups';
import type { Heat } from './heat';
import type { Run } from './runs';
import { hasCurves, hovered, trialOf } from './selection';
import type { Sort } from './view';

// Width of the first column: the dot, and a check box before it. On a phone one of them.
const DOT_WIDTH = 34;
const BOX_WIDTH = 24;
const PHONE_WIDTH = 36;

// Properties that all rows share.
export interface RowProps {
  columns: Column[];
  pins: readonly string[]; // leading columns that stay visible
  heat: Heat;
  chosen: Signal<ReadonlyMap<number, Run>> | undefined; // undefined: rows have no check boxes
  shown: ReadonlySet<number>; // ids of the drawn runs
  colorOf: (id: number) => string;
  shadeOf?: ((run: Run) => string) | undefined; // classes of the dots, instead of the colors of the drawn runs
  draw: (run: Run) => void; // draws or removes its curves
  top: readonly Run[]; // stay below the head while the others scroll
  pin: (run: Run) => void; // puts a run there or takes it away
  height: number; // pixels
  filled: number; // columns with contents: before the first look those in sight
}

export const firstWidth = (chosen: RowProps['chosen']): number => (onPhone() ? PHONE_WIDTH : DOT_WIDTH + (chosen ? BOX_WIDTH : 0));

type Placed = Pick<RowProps, 'columns' | 'pins' | 'chosen'>;

// The left offset of a pinned column.
function pinned({ columns, pins, chosen }: Placed, key: string): { left: string } | undefined {
  if (!pins.includes(key)) return undefined;
  const before = columns.slice(0, columns.findIndex((one) => one.key === key)).filter((one) => pins.includes(one.key));
  return { left: `${before.reduce((sum, one) => sum + one.width, firstWidth(chosen))}px` };
}

const pinClass = ({ columns, pins }: Placed, key: string): string =>
  !pins.includes(key) ? '' : columns.filter((one) => pins.includes(one.key)).slice(-1)[0]?.key === key ? 'pinned pinned-last' : 'pinned';

const numberClass = ({ number, inGroup }: Column): string => (number ? (inGroup === 'mean' ? 'number deviating' : 'number') : '');

export interface HeadProps extends Placed {
  sorts: readonly Sort[];
  sort: (column: string, add: boolean) => void;
  all: readonly Run[]; // the rows that are known
  total: number;
  shown: RowProps['shown'];
  showAll: (shown: boolean) => void;
}

const Box = (props: JSX.InputHTMLAttributes<HTMLInputElement>) => (
  <label>
    <input type="checkbox" {...props} />
  </label>
);

// The check box of all rows and the eye of all curves. On a phone the line above the table has the latter.
function HeadChoice({ chosen, all, total, shown, showAll }: HeadProps) {
  const count = all.filter(({ id }) => chosen?.value.has(id)).length;
  const isWhole = all.length > 0 && count === all.length;
  const drawn = shown.size > 0;
  const rows = all.length < total ? `the ${all.length} loaded rows` : 'all rows';
  return (
    <span class="choice">
      {chosen && (
        <Box
          aria-label="Select all"
          title={isWhole ? 'Clear the selection' : `Select ${rows}`}
          checked={isWhole}
          indeterminate={count > 0 && !isWhole}
          onChange={() => (chosen.value = new Map(isWhole ? [] : all.map((run) => [run.id, run] as const)))}
        />
      )}
      {!onPhone() && (
        <button
          type="button"
          class="plain all-eye"
          aria-label="Shown"
          aria-pressed={drawn}
          title={drawn ? 'Hide the curves of all runs' : 'Show the curves of all runs'}
          onClick={() => showAll(!drawn)}
        >
          <Icon name="eye" />
        </button>
      )}
    </span>
  );
}

function SortButton({ column, sorts, sort }: Pick<HeadProps, 'sorts' | 'sort'> & { column: Column }) {
  const place = sorts.findIndex((one) => one.column === column.key);
  const own = sorts[place];
  return (
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
  );
}

// `single`: one run has nothing to select from or to hide.
export function Head(props: HeadProps & { single: boolean }) {
  const { columns, sorts, sort } = props;
  return (
    <thead>
      <tr>
        <th scope="col">{props.single || (onPhone() && !props.chosen) ? <span class="hidden">Color</span> : <HeadChoice {...props} />}</th>
        {columns.map((column) => {
          const own = sorts.find((one) => one.column === column.key);
          return (
            <th
              scope="col"
              key={column.key}
              class={`${numberClass(column)} ${pinClass(props, column.key)} ${column.class ?? ''}`}
              style={pinned(props, column.key)}
              aria-sort={own ? (own.descending ? 'descending' : 'ascending') : undefined}
            >
              <SortButton column={column} sorts={sorts} sort={sort} />
              {column.beside && <SortButton column={column.beside} sorts={sorts} sort={sort} />}
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

// The check box of a row, its dot and its pin. On a phone the box replaces the dot.
function RowChoice({ run, chosen, shown, colorOf, shadeOf, draw, pin, top }: RowProps & { run: Run }) {
  const isTop = top.some(({ id }) => id === run.id);
  const isShown = shown.has(run.id);
  const color = colorOf(run.id);
  return (
    <span class="choice">
      {chosen && (
        <Box
          aria-label={`Select ${run.kind} ${run.id}`}
          checked={chosen.value.has(run.id)}
          onChange={() => (chosen.value = toggled(chosen.value, run))}
        />
      )}
      {!(chosen && onPhone()) && (
        <button
          type="button"
          class={`eye ${hasCurves(run) ? '' : 'no-curves'} ${shadeOf?.(run) ?? ''}`}
          aria-label={`Show ${run.kind} ${run.id}`}
          aria-pressed={isShown}
          title={`${isShown ? 'Shown. Hide its curves' : 'Hidden. Show its curves'}${hasCurves(run) ? '' : '. It has none yet'}`}
          style={isShown && !shadeOf ? { background: hasCurves(run) ? color : '', borderColor: color } : undefined}
          onClick={() => draw(run)}
        />
      )}
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
  );
}

const orNone = (content: ComponentChildren): ComponentChildren => (content === '' || content == null ? <None /> : content);

interface RunRowProps extends RowProps {
  index: number | undefined; // undefined: the row stays below the head
  isCursor: boolean;
  run: Run;
  now: number;
}

export function RunRow(props: RunRowProps) {
  const { index, isCursor, run, now, columns, heat, chosen, shown, filled } = props;
  const isShown = shown.has(run.id);
  return (
    <tr
      style={{ height: `${props.height}px` }}
      class={`${isCursor ? 'cursor' : ''} ${chosen?.value.has(run.id) ? 'chosen' : ''} ${isShown ? 'drawn' : ''}`}
      aria-rowindex={index === undefined ? undefined : index + 2}
      data-id={run.id}
      data-trial={trialOf(run)}
      onPointerEnter={() => (hovered.value = trialOf(run))}
      onPointerLeave={() => (hovered.value = undefined)}
    >
      <td>
        <RowChoice {...props} />
      </td>
      {columns.map((column, at) => {
        if (at >= filled) return <td key={column.key} />;
        const more = `${pinClass(props, column.key)} ${column.class ?? ''}`;
        return column.key === 'name' ? (
          <th scope="row" key="name" class={more} style={pinned(props, 'name')}>
            {column.cell(run, now)}
          </th>
        ) : (
          <td key={column.key} class={`${numberClass(column)} ${more} ${heat(column.key, run)}`} style={pinned(props, column.key)}>
            {orNone(column.cell(run, now))}
          </td>
        );
      })}
    </tr>
  );
}

function Summary({ group, column }: { group: Group; column: Column }) {
  const [only] = group.runs;
  if (column.inGroup === 'range') return <>{only && group.runs.length === 1 ? column.cell(only, 0) : rangeText(group.runs, column)}</>;
  const own = column.number && column.key !== 'id' ? spread(group.runs, column.key) : undefined;
  if (!own) return null;
  return (
    <>
      {(column.text ?? metric)(own.mean)}
      {own.count > 1 && <span class="deviation"> ± {(column.deviation ?? deviationText)(own.deviation)}</span>}
    </>
  );
}

interface GroupRowProps extends Pick<RowProps, 'columns' | 'shown' | 'colorOf' | 'height'> {
  group: Group;
  index: number;
  closed: Signal<ReadonlySet<string>>; // groups with hidden runs
}

// Pixels of a character of the head of a group, and of "12 running".
const CHARACTER = 6.8;
const RUNNING_WIDTH = 80;

// A group: its label over the first columns, then mean ± deviation of results and ranges of hyperparameters.
export function GroupRow({ group, index, columns, closed, shown, colorOf, height }: GroupRowProps) {
  const drawn = group.runs.find(({ id }) => shown.has(id));
  const color = drawn && colorOf(drawn.id);
  const open = !closed.value.has(group.key);
  const toggle = (): void => {
    const next = new Set(closed.value);
    if (!next.delete(group.key)) next.add(group.key);
    closed.value = next;
  };
  const firstNumber = columns.findIndex((column, at) => at > 0 && column.number && column.key !== 'id');
  const beside = columns[0]?.beside;
  const named = beside ? 1 : firstNumber < 0 ? columns.length : firstNumber;
  const searches = searchesByBest(group);
  const hasRoom = !beside && columns.some(({ key }) => NAMES.includes(key));
  const running = group.runs.filter(({ state }) => state === 'STATE_RUNNING').length;
  const isMixed = hasRoom && running > 0 && running < group.runs.length;
  const room = columns.slice(0, named).reduce((sum, { width }) => sum + width, 0);
  const leavesRoom = (text: string): boolean => room - CHARACTER * (group.label.length + text.length) >= RUNNING_WIDTH;
  // The running runs are named rather than the searches, which the title names.
  const sizeOf = (of: Group): string => sizeText(of, beside ?? columns[named], hasRoom);
  const [long, short] = [sizeOf(group), sizeOf({ ...group, byHyperparameter: false })];
  const size = isMixed && !leavesRoom(long) && leavesRoom(short) ? short : long;
  const hasRunning = isMixed && leavesRoom(size);
  return (
    <tr class="group" style={{ height: `${height}px` }} aria-rowindex={index + 2}>
      <th scope="rowgroup" colSpan={named + 1}>
        <span class="group-head">
          <button type="button" class="plain" aria-expanded={open} onClick={toggle}>
            <Icon name={open ? 'down' : 'right'} />
            {color && <Swatch color={color} />}
            {group.label}
          </button>
          <span class="quiet" title={searches > 0 ? `${searches === 1 ? 'One search is' : `${searches} searches are`} in this group by the value of the best trial; other trials may have another value` : undefined}>
            {size}
          </span>
          {hasRunning && <span class="quiet of-best">{running} running</span>}
          {beside && (
            <span class="value">
              <Summary group={group} column={beside} />
            </span>
          )}
        </span>
      </th>
      {columns.slice(named).map((column) => (
        <td key={column.key} class={numberClass(column)} onPointerEnter={(event) => (event.currentTarget.title = column.number ? spreadText(group.runs, column) : '')}>
          <Summary group={group} column={column} />
        </td>
      ))}
    </tr>
  );
}
