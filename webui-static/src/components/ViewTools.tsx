// Tools above the experiment table: search, conditions, columns, saved views.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { paths } from '../address';
import { column, isOpen } from '../columns';
import { mayHeat } from '../heat';
import { stateName } from '../format';
import { views } from '../settings';
import { isComplete, OPERATORS, needsValue, type Condition, type View } from '../view';

const STATES = ['ACTIVE', 'PAUSED', 'COMPLETED', 'CANCELED', 'ERROR'].map((name) => `STATE_${name}`);
// Milliseconds without input before a text takes effect.
const REST_MS = 250;

interface Props {
  view: View;
  names: string[]; // available columns
  change: (change: Partial<View>) => void;
}

const title = (key: string): string => (isOpen(key) ? key : (column(key)?.title ?? key));

// A text field that reports its value when typing pauses, on Enter and when it loses the focus. New values from
// outside are shown only while it does not have the focus, so that a redraw never replaces what is being typed.
export function SearchField(props: { label: string; value: string; placeholder?: string; say: (v: string) => void }) {
  const timer = useRef<number>();
  const field = useRef<HTMLInputElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const report = (): void => {
    if (timer.current === undefined) return;
    clearTimeout(timer.current);
    timer.current = undefined;
    latest.current.say(field.current?.value ?? '');
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (field.current && document.activeElement !== field.current) field.current.value = props.value;
  }, [props.value]);
  return (
    <input
      ref={field}
      type="search"
      class="search"
      aria-label={props.label}
      placeholder={props.placeholder ?? props.label}
      defaultValue={props.value}
      onInput={() => {
        clearTimeout(timer.current);
        timer.current = window.setTimeout(report, REST_MS);
      }}
      onChange={report}
    />
  );
}

function ConditionRow(props: {
  one: Condition;
  place: number;
  names: string[];
  change: (one: Condition | undefined) => void;
}) {
  const { one, place } = props;
  const all = props.names.includes(one.column) ? props.names : [...props.names, one.column];
  return (
    <div class="condition">
      <select
        aria-label={`Column of condition ${place}`}
        value={one.column}
        onChange={(event) => props.change({ ...one, column: event.currentTarget.value })}
      >
        {all.map((key) => (
          <option key={key} value={key}>
            {title(key)}
          </option>
        ))}
      </select>
      <select
        aria-label={`Comparison of condition ${place}`}
        value={one.operator}
        onChange={(event) => props.change({ ...one, operator: event.currentTarget.value })}
      >
        {OPERATORS.map(([operator, label]) => (
          <option key={operator} value={operator}>
            {label}
          </option>
        ))}
      </select>
      {needsValue(one.operator) && (
        <SearchField
          label={`Value of condition ${place}`}
          placeholder="Value"
          value={one.value}
          say={(value) => props.change({ ...one, value })}
        />
      )}
      <button
        type="button"
        class="plain"
        aria-label={`Remove condition ${place}`}
        onClick={() => props.change(undefined)}
      >
        Remove
      </button>
    </div>
  );
}

function Conditions({ view, names, change }: Props) {
  const set = (place: number, one: Condition | undefined): void => {
    const next = [...view.conditions];
    if (one) next[place] = one;
    else next.splice(place, 1);
    change({ conditions: next });
  };
  const applied = view.conditions.filter(isComplete).length;
  return (
    <details class="tool">
      <summary>Filter{applied > 0 && ` (${applied})`}</summary>
      <div class="tool-body">
        {view.conditions.length > 1 && (
          <label class="check">
            <input
              type="checkbox"
              checked={view.any}
              onChange={(event) => change({ any: event.currentTarget.checked })}
            />
            Match any condition
          </label>
        )}
        {view.conditions.map((one, place) => (
          <ConditionRow
            key={place}
            one={one}
            place={place + 1}
            names={names}
            change={(next) => set(place, next)}
          />
        ))}
        <button
          type="button"
          onClick={() =>
            change({ conditions: [...view.conditions, { column: 'name', operator: 'contains', value: '' }] })
          }
        >
          Add a condition
        </button>
      </div>
    </details>
  );
}

const flip = (all: readonly string[], key: string): string[] =>
  all.includes(key) ? all.filter((other) => other !== key) : [...all, key];

function ColumnPicker({ view, names, change }: Props) {
  const find = useSignal('');
  const all = [...view.columns, ...names.filter((key) => !view.columns.includes(key))];
  const shown = all.filter((key) => title(key).toLowerCase().includes(find.value.toLowerCase()));
  const move = (key: string): void => {
    const next = [...view.columns];
    const place = next.indexOf(key);
    next.splice(place, 1);
    next.splice(place - 1, 0, key);
    change({ columns: next });
  };
  const toggle = (key: string): void => {
    const next = view.columns.includes(key)
      ? view.columns.filter((other) => other !== key)
      : [...view.columns, key];
    if (next.length > 0) change({ columns: next });
  };
  return (
    <details class="tool">
      <summary>Columns</summary>
      <div class="tool-body">
        <input
          type="text"
          aria-label="Find a column"
          placeholder="Find a column"
          onInput={(event) => (find.value = event.currentTarget.value)}
        />
        <ul class="picker">
          {shown.map((key) => (
            <li key={key}>
              <label class="check">
                <input type="checkbox" checked={view.columns.includes(key)} onChange={() => toggle(key)} />
                {title(key)}
              </label>
              {view.columns.indexOf(key) > 0 && (
                <button type="button" class="plain" aria-label={`Move ${title(key)} left`} onClick={() => move(key)}>
                  ←
                </button>
              )}
              {view.columns.includes(key) && (
                <button
                  type="button"
                  class="chip"
                  aria-label={`Pin ${title(key)}`}
                  aria-pressed={view.pins.includes(key)}
                  onClick={() => change({ pins: flip(view.pins, key) })}
                >
                  Pin
                </button>
              )}
              {view.columns.includes(key) && mayHeat(key) && (
                <button
                  type="button"
                  class="chip"
                  aria-label={`Heat ${title(key)}`}
                  aria-pressed={view.heat.includes(key)}
                  onClick={() => change({ heat: flip(view.heat, key) })}
                >
                  Heat
                </button>
              )}
            </li>
          ))}
        </ul>
      </div>
    </details>
  );
}

function SavedViews() {
  const { route } = useLocation();
  const name = useRef<HTMLInputElement>(null);
  const save = (event: Event): void => {
    event.preventDefault();
    const text = name.current?.value.trim() ?? '';
    if (text === '') return;
    const own = { name: text, query: location.search.replace(/^\?/, '') };
    views.value = [...views.value.filter((view) => view.name !== text), own];
    if (name.current) name.current.value = '';
  };
  return (
    <details class="tool">
      <summary>Views{views.value.length > 0 && ` (${views.value.length})`}</summary>
      <div class="tool-body">
        {views.value.map((view) => (
          <button
            type="button"
            class="link"
            key={view.name}
            onClick={() => route(view.query === '' ? paths.experiments : `${paths.experiments}?${view.query}`)}
          >
            {view.name}
          </button>
        ))}
        <form onSubmit={save} class="condition">
          <input ref={name} type="text" aria-label="Name of the view" placeholder="Name of the view" />
          <button type="submit">Save this view</button>
        </form>
      </div>
    </details>
  );
}

// Closes the open tool on Escape or a click elsewhere; one tool is open at a time.
function useClosing(host: { current: HTMLElement | null }): void {
  useEffect(() => {
    const close = (event: Event): void => {
      if (event instanceof KeyboardEvent && event.key !== 'Escape') return;
      const inside = event.type === 'click' ? (event.target as HTMLElement).closest?.('details.tool') : null;
      for (const tool of host.current?.querySelectorAll<HTMLDetailsElement>('details.tool[open]') ?? []) {
        if (tool === inside) continue;
        const held = tool.contains(document.activeElement);
        tool.open = false;
        if (held && event instanceof KeyboardEvent) tool.querySelector('summary')?.focus();
      }
    };
    document.addEventListener('click', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('click', close);
      document.removeEventListener('keydown', close);
    };
  }, []);
}

export function ViewTools(props: Props) {
  const { view, change } = props;
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  return (
    <div class="tools" ref={host}>
      <SearchField
        label="Search experiments"
        placeholder="Search id, name, description, label"
        value={view.text}
        say={(text) => change({ text })}
      />
      <select
        aria-label="State"
        value={view.state}
        onChange={(event) => change({ state: event.currentTarget.value })}
      >
        <option value="">All states</option>
        {STATES.map((state) => (
          <option key={state} value={state}>
            {stateName(state)}
          </option>
        ))}
      </select>
      <label class="check">
        <input
          type="checkbox"
          checked={view.archived}
          onChange={(event) => change({ archived: event.currentTarget.checked })}
        />
        Show archived
      </label>
      <Conditions {...props} />
      <ColumnPicker {...props} />
      <SavedViews />
    </div>
  );
}
