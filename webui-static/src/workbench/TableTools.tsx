// Tools of a run table: columns, groups, saved views.
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { savedViews, saveViews, withView } from '../calls/views';
import { useClosing } from '../closing';
import { ErrorNote } from '../components/notes';
import { useLive } from '../live';
import { useWork } from '../work';
import { column } from './columns';
import { onPhone } from '../phone';
import { mayHeat } from './heat';
import { isOpen, type RunKind } from './runs';
import type { View } from './view';

interface Props {
  kind: RunKind;
  view: View;
  columns: readonly string[]; // shown
  names: readonly string[]; // available columns
  hides: Signal<number> | undefined; // columns beyond the edge of the table
  change: (change: Partial<View>) => void;
}

const title = (key: string, kind: RunKind): string => (isOpen(key) ? key : (column(key, kind)?.title ?? key));

// A menu; its content is rendered while it is open.
function Menu({ label, children }: { label: string; children: () => ComponentChildren }) {
  const open = useSignal(false);
  return (
    <details class="tool" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>{label}</summary>
      {open.value && <div class="tool-body">{children()}</div>}
    </details>
  );
}

const flip = (all: readonly string[], key: string): string[] =>
  all.includes(key) ? all.filter((other) => other !== key) : [...all, key];

function ColumnPicker({ kind, view, columns, names, hides, change }: Props) {
  const hidden = hides?.value ?? 0;
  const find = useSignal('');
  const all = [...columns, ...names.filter((key) => !columns.includes(key))];
  const shown = all.filter((key) => title(key, kind).toLowerCase().includes(find.value.toLowerCase()));
  const move = (key: string): void => {
    const next = [...columns];
    const place = next.indexOf(key);
    next.splice(place, 1);
    next.splice(place - 1, 0, key);
    change({ columns: next });
  };
  const toggle = (key: string): void => {
    const next = columns.includes(key)
      ? columns.filter((other) => other !== key)
      : [...columns, key];
    if (next.length > 0) change({ columns: next });
  };
  return (
    <Menu label={hidden > 0 ? `Columns (${hidden} hidden)` : 'Columns'}>
      {() => (
        <>
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
                  <input type="checkbox" checked={columns.includes(key)} onChange={() => toggle(key)} />
                  {title(key, kind)}
                </label>
                {columns.indexOf(key) > 0 && (
                  <button type="button" class="plain" aria-label={`Move ${title(key, kind)} left`} onClick={() => move(key)}>
                    ←
                  </button>
                )}
                {columns.includes(key) && (
                  <button
                    type="button"
                    class="chip"
                    aria-label={`Pin ${title(key, kind)}`}
                    aria-pressed={view.pins.includes(key)}
                    onClick={() => change({ pins: flip(view.pins, key) })}
                  >
                    Pin
                  </button>
                )}
                {columns.includes(key) && mayHeat(key) && (
                  <button
                    type="button"
                    class="chip"
                    aria-label={`Heat ${title(key, kind)}`}
                    aria-pressed={view.heat.includes(key)}
                    onClick={() => change({ heat: flip(view.heat, key) })}
                  >
                    Heat
                  </button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </Menu>
  );
}

// Columns that group the rows, outermost first.
function Groups({ kind, view, names, change }: Props) {
  const offered = names.filter((key) => key.startsWith('hp.') || ['name', 'experiment', 'state', 'user', 'searcherType', 'searcherMetric', 'resourcePool'].includes(key));
  return (
    <Menu label={view.groups.length > 0 ? `Group (${view.groups.length})` : 'Group'}>
      {() => (
        <>
          <ul class="picker simple">
            {offered.map((key) => (
              <li key={key}>
                <label class="check">
                  <input type="checkbox" checked={view.groups.includes(key)} onChange={() => change({ groups: flip(view.groups, key) })} />
                  {title(key, kind)}
                </label>
              </li>
            ))}
          </ul>
          <p class="quiet">A group shows mean ± deviation of metrics and the range of hyperparameters; its curves become one with a band.</p>
        </>
      )}
    </Menu>
  );
}

// Views of this user, for the page they were saved on.
function SavedViews() {
  const { path, route } = useLocation();
  const name = useRef<HTMLInputElement>(null);
  const live = useLive('views', savedViews, () => false);
  const { error, run } = useWork();
  const all = live.data ?? [];
  // Other pages may have saved views since these were read.
  const store = async (view: string, query?: string): Promise<void> => {
    if (await run(async () => saveViews(withView(await savedViews(), view, query)))) live.reload();
  };
  const save = (event: Event): void => {
    event.preventDefault();
    const text = name.current?.value.trim() ?? '';
    if (text === '') return;
    void store(text, location.search.replace(/^\?/, ''));
    if (name.current) name.current.value = '';
  };
  return (
    <Menu label={all.length > 0 ? `Views (${all.length})` : 'Views'}>
      {() => (
        <>
          <ErrorNote error={error ?? live.error} retry={live.reload} />
          {all.map((view) => (
            <div class="condition" key={view.name}>
              <button type="button" class="link" onClick={() => route(view.query === '' ? path : `${path}?${view.query}`)}>
                {view.name}
              </button>
              <button
                type="button"
                class="plain"
                aria-label={`Remove the view ${view.name}`}
                onClick={() => void store(view.name)}
              >
                Remove
              </button>
            </div>
          ))}
          <form onSubmit={save} class="condition">
            <input ref={name} type="text" aria-label="Name of the view" placeholder="Name of the view" />
            <button type="submit">Save this view</button>
          </form>
        </>
      )}
    </Menu>
  );
}

// `single`: there is one run, which needs no groups. `selects`: rows have check boxes on a phone.
export function TableTools(props: Props & { single: boolean; selects: Signal<boolean> }) {
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  const { kind, view, change, single, selects } = props;
  return (
    <div class="table-tools" ref={host}>
      {onPhone() && !single && (
        <button type="button" aria-pressed={selects.value} onClick={() => (selects.value = !selects.value)}>
          Select
        </button>
      )}
      {!single && <Groups {...props} />}
      {props.hides && <ColumnPicker {...props} />}
      <SavedViews />
      {kind === 'experiment' && (
        <label class="check">
          <input type="checkbox" checked={view.archived} onChange={(event) => change({ archived: event.currentTarget.checked })} />
          Show archived
        </label>
      )}
    </div>
  );
}
