// The workbench: a run table and, beside it, panels of the drawn runs. Selection, pointer and colors are one state
// over both; the view is part of the address.
import { grouped } from '../format';
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { choicesOf } from '../charts/dimensions';
import { useAbove } from '../components/above';
import { ErrorNote } from '../components/notes';
import { Options } from '../components/Options';
import { SPLIT, split } from '../settings';
import { searchesByBest } from './groups';
import { heatOf } from './heat';
import { coloringOf, Panels, PanelSelect, usePanel, useShades } from './Panels';
import { onPhone } from '../phone';
import { QueryField } from './QueryField';
import { print, stateWord, withTests } from './query';
import { RunTable } from './RunTable';
import { useColorOf } from './runColors';
import type { RunSource } from './sources';
import { isSearch, valueOf, type Run, type RunKind } from './runs';
import { flipDrawn, MAX_DRAWN, withRows } from './selection';
import { columnsOf, keysOf, useRows, type ViewRows } from './tableView';
import { TableTools } from './TableTools';
import { TrialActions } from './TrialActions';
import { flipTop, nextSorts, readView, writeView, type Sort, type View } from './view';

const LAYOUTS = ['table', 'both', 'panels'] as const;
type Layout = (typeof LAYOUTS)[number];

// What the panels know about the search: one experiment's, or that of the drawn experiments.
export interface Objective {
  metric: string;
  smallerIsBetter: boolean;
}

export interface WorkbenchProps {
  kind: RunKind;
  title: ComponentChildren; // before the query
  source: RunSource;
  columns?: readonly string[]; // default columns
  sorts?: readonly Sort[]; // order without a choice in the address
  objective: Objective | undefined;
  chosen?: Signal<ReadonlyMap<number, Run>>;
  first?: Layout; // without a choice in the address
  none: ComponentChildren; // shown without rows
  bulk?: ComponentChildren; // actions on selected rows
  search?: ComponentChildren; // the panels of the search
}

// The order of experiments without another one.
const NEWEST_FIRST: readonly Sort[] = [{ column: 'id', descending: true }];
const NARROW = '(max-width: 60rem)';
const STATES = ['active', 'queued', 'building', 'running', 'paused', 'completed', 'canceled', 'error'];

// Values to complete: those of the loaded rows, after those that the configuration of the first one lists.
function valuesOf(rows: readonly Run[], key: string, kind: RunKind): string[] {
  if (key === 'state' && kind === 'experiment') return STATES;
  const declared = key.startsWith('hp.') ? choicesOf(rows[0]?.experiment.config?.hyperparameters, key.slice(3)) : [];
  const found = new Set<string>(declared);
  for (const run of rows.slice(0, 500)) {
    const value = valueOf(run, key);
    for (const one of Array.isArray(value) ? value : [value]) if (typeof one === 'string' || typeof one === 'number') found.add(String(one));
  }
  return [...found].map((one) => (key === 'state' ? stateWord(one) : one)).slice(0, 50);
}

// Divides the width between table and panels, by pointer or arrow keys.
function Splitter() {
  const host = useRef<HTMLDivElement>(null);
  const set = (value: number): void => void (split.value = Math.round(Math.min(SPLIT.max, Math.max(SPLIT.min, value))));
  const onPointerMove = (event: PointerEvent): void => {
    const frame = host.current?.parentElement?.getBoundingClientRect();
    if (!frame || !host.current?.hasPointerCapture(event.pointerId)) return;
    set(((event.clientX - frame.left) / frame.width) * 100);
  };
  return (
    <div
      ref={host}
      class="splitter"
      role="separator"
      aria-label="Width of the table"
      aria-orientation="vertical"
      aria-valuemin={SPLIT.min}
      aria-valuemax={SPLIT.max}
      aria-valuenow={split.value}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={onPointerMove}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        set(split.value + by);
      }}
    />
  );
}

// A phone has no room for table and panels beside each other.
function LayoutChoice({ layout }: { layout: Layout }) {
  const { setQuery } = useQuery();
  const offered = LAYOUTS.filter((one) => one !== 'both' || layout === 'both' || !onPhone());
  return (
    <div class="segments" role="group" aria-label="Layout">
      {offered.map((one) => (
        <button type="button" key={one} aria-pressed={one === layout} onClick={() => setQuery({ layout: one })}>
          {{ table: 'Table', both: 'Both', panels: 'Charts' }[one]}
        </button>
      ))}
    </div>
  );
}

// The number of shown runs, with buttons that show and hide all.
function Drawing(props: { drawn: number; found: readonly Run[]; showAll: (shown: boolean) => void }) {
  const { drawn, found, showAll } = props;
  const most = Math.min(found.length, MAX_DRAWN);
  return (
    <span class="quiet drawing">
      {drawn} shown
      {drawn < most && (
        <button type="button" class="plain" onClick={() => showAll(true)}>
          Show {found.length <= MAX_DRAWN ? `all ${most}` : `the first ${MAX_DRAWN}`}
        </button>
      )}
      {drawn > 0 && (
        <button type="button" class="plain" onClick={() => showAll(false)}>
          Hide all
        </button>
      )}
    </span>
  );
}

// The selected rows, which keep the states of their rows; undefined where rows have no check boxes: on a phone until
// they are asked for, and with a single run. `own` belongs to the page that acts on them.
function useChosen(own: WorkbenchProps['chosen'], rows: readonly Run[], asked: boolean, single: boolean): Required<WorkbenchProps>['chosen'] | undefined {
  const local = useSignal<ReadonlyMap<number, Run>>(new Map());
  const chosen = own ?? local;
  useEffect(() => {
    chosen.value = withRows(chosen.value, rows);
  });
  return single || (onPhone() && !asked) ? undefined : chosen;
}

// Without a choice in the address a narrow window shows the charts of trials, or the table of experiments.
const layoutOf = ({ kind, first = 'both' }: WorkbenchProps, { layout, panels }: Record<string, string | undefined>): Layout =>
  LAYOUTS.find((one) => one === layout) ?? (matchMedia(NARROW).matches ? (kind === 'trial' || panels ? 'panels' : 'table') : first);

// Shared by the parts of a workbench.
interface Shared extends WorkbenchProps {
  view: View;
  change: (part: Partial<View>) => void;
  keys: readonly string[]; // of the columns
  rows: ViewRows;
  shown: Layout;
  shadeOf: ((run: Run) => string) | undefined; // the colors of the dots, where the charts beside the table have those of the metric
  showAll: (shown: boolean) => void;
  hides: Signal<number>; // columns beyond the edge of the table
}

interface BarProps extends Shared {
  layout: Layout;
  selects: Signal<boolean>;
  hasTools: Signal<boolean>;
}

// The row above table and charts: the title of the page, the query, and tools.
function Bar({ kind, source, title, search, view, keys, rows, layout, shown, shadeOf, change, selects, hides, hasTools }: BarProps) {
  const { single, loaded, drawn, found, groups } = rows;
  const groupsSearches = groups.some((group) => searchesByBest(group) > 0);
  const hasItalics = shown !== 'panels' && keys.some((key) => key.startsWith('hp.')) && found.some(isSearch);
  return (
    <div class="workbench-bar">
      {title}
      {shown === 'both' && groups.length === 0 && !shadeOf && drawn.length < found.length && (
        <span class="quiet found" title={`${view.drawn ? 'The chosen ones' : kind === 'trial' ? 'The first ones of the table' : 'Those that run, the newest, and the best one'}. The circles before the rows show and hide curves.`}>
          {drawn.length} {kind === 'trial' ? 'in color' : 'drawn'}
        </span>
      )}
      {(groupsSearches || hasItalics) && (
        <span class={`quiet found ${groupsSearches ? '' : 'by-width'}`} title="The hyperparameters of a search, in italics, are those of its best trial, by which it counts in groups; its other trials may have other values">
          searches by best trial
        </span>
      )}
      {!single && (
        <QueryField
          label={kind === 'trial' ? 'Search trials' : 'Search experiments'}
          value={view.text}
          known={source.known}
          valuesOf={(key) => valuesOf(loaded, key, kind)}
          say={(text) => change({ text })}
        />
      )}
      <TableTools kind={kind} view={view} columns={keys} names={source.names} change={change} single={single} selects={selects} hides={shown === 'panels' ? undefined : hides} />
      <LayoutChoice layout={layout} />
      {onPhone() && layout === 'panels' && <PanelSelect searches={search !== undefined} single={single} />}
      <Options open={hasTools} />
    </div>
  );
}

interface TableProps extends Shared {
  chosen: Required<WorkbenchProps>['chosen'] | undefined;
  colorOf: (id: number) => string;
  closed: Signal<ReadonlySet<string>>; // groups with hidden runs
}

// The table, or the page's message without rows.
function TableSide(props: TableProps) {
  const { kind, source, objective, none, view, change, rows } = props;
  const isEmpty = source.rows.total === 0;
  const draw = (run: Run): void => change({ drawn: flipDrawn(view.drawn, rows.drawn, run.id) });
  return (
    <div class="workbench-table">
      {source.mistake ? null : isEmpty && source.top.length === 0 ? (
        none
      ) : (
        <RunTable
          label={kind === 'trial' ? 'Trials' : 'Experiments'}
          items={rows.items}
          all={rows.found}
          beside={props.shown === 'both'}
          single={rows.single}
          grouped={view.groups.length > 0}
          picked={view.columns !== undefined}
          columns={columnsOf(props, view, rows, props.keys)}
          sorts={view.sorts.length === 0 && kind === 'experiment' ? NEWEST_FIRST : view.sorts}
          pins={view.pins}
          heat={heatOf(view.heat, view.heat.length > 0 ? rows.loaded : [])}
          chosen={props.chosen}
          shown={new Set(rows.drawn.map(({ id }) => id))}
          colorOf={props.colorOf}
          shadeOf={props.shadeOf}
          showAll={props.showAll}
          closed={props.closed}
          hides={props.hides}
          draw={draw}
          top={rows.top}
          pin={(run) => change({ top: flipTop(view.top, run.id) })}
          sort={(key, add) => change({ sorts: nextSorts(view.sorts, key, add, key === 'searcherMetricsVal' && objective?.smallerIsBetter === false) })}
        />
      )}
      {isEmpty && source.top.length > 0 && none}
      {source.cut !== undefined && (
        <p class="quiet">The first {grouped(source.cut)} experiments are shown; a narrower query finds the others.</p>
      )}
    </div>
  );
}

export function Workbench(props: WorkbenchProps) {
  const { kind, source, objective, search } = props;
  const { query, setQuery } = useQuery();
  const own = readView(query);
  const view = own.sorts.length === 0 && props.sorts ? { ...own, sorts: [...props.sorts] } : own;
  const change = (part: Partial<View>): void => setQuery(writeView(part));
  const closed = useSignal<ReadonlySet<string>>(new Set());
  // On a phone a button shows the tools of table and charts.
  const hasTools = useSignal(false);
  const selects = useSignal(false);
  const hides = useSignal(0);
  const layout = layoutOf(props, query);
  const body = useAbove();
  const rows = useRows(props, view, closed.value);
  const { groups, found, loaded, drawn, single } = rows;
  const colorOf = useColorOf(kind, groups, drawn);
  const chosen = useChosen(props.chosen, loaded, selects.value, single);
  // One message over the full width, unless the panels show the search itself.
  const isEmpty = source.rows.total === 0 && loaded.length === 0 && !source.mistake && query.panels !== 'search';
  const shown = isEmpty ? 'table' : layout;
  const panel = usePanel(search !== undefined, single).current;
  const shadeOf = useShades(shown === 'both' && coloringOf(panel, query) === 'metric', loaded, objective);
  const showAll = (all: boolean): void => change({ drawn: all ? found.slice(0, MAX_DRAWN).map(({ id }) => id) : [] });
  const keys = keysOf(props, view, loaded, layout !== 'table');
  const shared = { ...props, view, change, keys, rows, shown, shadeOf, showAll, hides } as const;
  return (
    <div class={`workbench layout-${shown} of-${kind} ${single ? 'single' : ''} ${hasTools.value ? '' : 'no-tools'} ${keys.includes('numTrials') ? 'counts-trials' : ''}`}>
      <Bar {...shared} layout={layout} selects={selects} hasTools={hasTools} />
      <ErrorNote error={source.rows.error} retry={source.rows.reload} />
      <div class="workbench-body" ref={body} style={{ '--split': `${split.value}%` }}>
        {shown !== 'panels' && <TableSide {...shared} chosen={chosen} colorOf={colorOf} closed={closed} />}
        {shown === 'both' && <Splitter />}
        {shown !== 'table' && (
          <Panels
            kind={kind}
            drawn={drawn}
            rows={loaded}
            colors={new Map(drawn.map(({ id }) => [id, colorOf(id)]))}
            groups={groups}
            objective={objective}
            keyed={layout === 'panels'}
            single={single}
            setTests={(touched, tests) => change({ text: print(withTests(source.query, touched, tests)) })}
            query={source.query}
            search={search}
            drawing={single ? null : <Drawing drawn={drawn.length} found={found} showAll={showAll} />}
          />
        )}
      </div>
      {props.bulk}
      {kind === 'trial' && chosen && <TrialActions chosen={chosen} change={change} />}
    </div>
  );
}
