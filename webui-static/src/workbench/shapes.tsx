// The columns of a run table where it has little room: beside panels, and on a phone.
import { paths } from '../address';
import { StateBadge } from '../components/notes';
import { isEnded, percent } from '../format';
import { partOf, type Column } from './columns';
import { NAMES } from './fitted';
import { shownState, type Run } from './runs';
import { StateIcon } from './StateIcon';

const METRIC = 'searcherMetricsVal';
// Pixels of an icon with its gap, and of the padding and a digit of a small id.
const ICON = 20;
const ID_PADDING = 26;
const ID_DIGIT = 7.5;
const ID_LEAST = 48;
// Width of the id where labels of groups have no other column, and the most that a column takes of the room beside a name.
const LABEL_WIDTH = 104;
const MOST_WIDTH = 180;

// The cells have less padding there (styles/rows.css).
const LESS_PADDING = 6;

// Beside panels: the state is an icon before the name, or before the id of a trial without a name; the id of a named
// run is small.
export function besidePanels(columns: readonly Column[], runs: readonly Run[], isGrouped: boolean): Column[] {
  const name = columns.find(({ key }) => NAMES.includes(key));
  const hasState = columns.some(({ key }) => key === 'state');
  const digits = String(runs.reduce((most, { id }) => Math.max(most, id), 0)).length;
  return columns.flatMap((column): Column[] => {
    if (column.key === 'state') return name || columns.some(({ key }) => key === 'id') ? [] : [column];
    if (column.key === 'id' && name) return [{ ...column, class: 'small-id', width: Math.max(ID_LEAST, Math.ceil(ID_PADDING + ID_DIGIT * digits)) }];
    if (!hasState || column !== (name ?? columns.find(({ key }) => key === 'id'))) return [{ ...column, width: Math.min(MOST_WIDTH, column.width - LESS_PADDING) }];
    const cell: Column['cell'] = (run, now) => (
      <span class="with-icon">
        <StateIcon state={shownState(run)} progress={partOf(run)} />
        {column.cell(run, now)}
      </span>
    );
    const { number: _, ...left } = column;
    return [{ ...left, width: Math.max(column.width + ICON, isGrouped && !name ? LABEL_WIDTH : 0), cell }];
  });
}

// On a phone: a row has the name on top and id, state, progress and metric below it; a trial has its id as name. The
// other columns follow beyond the edge of the frame.
export function onOneLine(columns: readonly Column[], room: number): Column[] {
  const name = columns.find(({ key }) => NAMES.includes(key)) ?? columns.find(({ key }) => key === 'id');
  if (!name) return [...columns];
  const metric = columns.find(({ key }) => key === METRIC);
  const cell: Column['cell'] = (run, now) => {
    const part = isEnded(run.state) ? undefined : partOf(run) || undefined;
    const id = run.kind === 'trial' ? <a href={paths.trial(run.id)}>{name.key === 'id' ? `Trial ${run.id}` : `#${run.id}`}</a> : `#${run.id}`;
    return (
      <>
        <span class="wrapped">{name.key === 'id' ? id : name.cell(run, now)}</span>
        <span class="below">
          {name.key !== 'id' && <span class="quiet">{id}</span>}
          <StateBadge state={shownState(run)} progress={part} />
          {part !== undefined && <span class="quiet">{percent(part)}</span>}
          {metric && <span class="value">{metric.cell(run, now)}</span>}
        </span>
      </>
    );
  };
  const folded: readonly string[] = ['id', 'state', 'progress', METRIC];
  const { number: _, ...rest } = name;
  return [{ ...rest, width: room, title: name.key === 'id' ? 'Trial' : name.title, cell, beside: metric }, ...columns.filter((column) => column !== name && !folded.includes(column.key))];
}
