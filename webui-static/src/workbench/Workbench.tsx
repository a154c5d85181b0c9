// The workbench: a run table and, beside it, panels of the drawn runs. Selection, pointer and colors are one state
// over both; the view is part of the address.
import { grouped } from '../format';
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { choicesOf } from '../charts/search';
import { useAbove } from '../components/above';
import { ErrorNote } from '../components/notes';
import { Options } from '../components/Options';
import { SPLIT, split } from '../settings';
import { aligned, column, DEFAULT_COLUMNS, titled, usualColumns, withBest, type Column } from './columns';
import { groupsOf, inGroups, type Group } from './groups';
import { heatOf } from './heat';
import { coloringOf, Panels, PanelSelect, usePanel, useShades } from './Panels';
import { onPhone } from '../phone';
import { QueryField } from './QueryField';
import { print, stateWord, withTests, type Query } from './query';
import { RunTable, type Item } from './RunTable';
import { useColorOf } from './runColors';
import { inMemory, type RunSource } from './sources';
import { valueOf, type Run, type RunKind } from './runs';
import { drawnRuns, MAX_DRAWN, withRows } from './selection';
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

interface Props {
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

// Groups and their runs as rows; those of closed groups are left out.
const itemsOf = (groups: readonly Group[], closed: ReadonlySet<string>): Item[] =>
  groups.flatMap((group): Item[] => [{ group }, ...(closed.has(group.key) ? [] : group.runs.map((run) => ({ run })))]);

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
function useChosen(own: Props['chosen'], rows: readonly Run[], asked: boolean, single: boolean): Required<Props>['chosen'] | undefined {
  const local = useSignal<ReadonlyMap<number, Run>>(new Map());
  const chosen = own ?? local;
  useEffect(() => {
    chosen.value = withRows(chosen.value, rows);
  });
  return single || (onPhone() && !asked) ? undefined : chosen;
}

export function Workbench(props: Props) {
  const { kind, source } = props;
  const { query, setQuery } = useQuery();
  const own = readView(query);
  const view = own.sorts.length === 0 && props.sorts ? { ...own, sorts: [...props.sorts] } : own;
  const change = (part: Partial<View>): void => setQuery(writeView(part));
  const closed = useSignal<ReadonlySet<string>>(new Set());
  // On a phone a button shows the tools of table and charts.
  const hasTools = useSignal(false);
  const selects = useSignal(false);
  const hides = useSignal(0);
  const layout = LAYOUTS.find((one) => one === query.layout) ?? (matchMedia(NARROW).matches ? (kind === 'trial' || query.panels ? 'panels' : 'table') : (props.first ?? 'both'));
  const body = useAbove();
  const groupKeys = view.groups.join();
  const sortKey = JSON.stringify(view.sorts[0]);
  const groups = useMemo(() => groupsOf(source.grouped ?? [], view.groups, view.sorts[0]), [source.grouped, groupKeys, sortKey]);
  const items = useMemo(() => (groups.length > 0 ? inMemory(itemsOf(groups, closed.value)) : undefined), [groups, closed.value]);
  // All rows that are known, in the order of the table; a run that is drawn stays known when it is out of sight.
  const found = source.grouped ?? source.rows.loaded();
  const top = source.top.map((run) => found.find(({ id }) => id === run.id) ?? run);
  const above = top.filter(({ id }) => !found.some((run) => run.id === id));
  const loaded = above.length > 0 ? [...above, ...found] : found;
  // A group is drawn with all of its runs.
  const drawn = groups.length > 0 && !view.drawn ? loaded.slice(0, MAX_DRAWN) : drawnRuns(loaded, view.drawn, view.top, props.objective?.smallerIsBetter);
  const colorOf = useColorOf(kind, groups, drawn);
  const shownIds = new Set(drawn.map(({ id }) => id));
  const single = source.rows.total === 1 && view.text === '' && groups.length === 0 && above.length === 0;
  const chosen = useChosen(props.chosen, loaded, selects.value, single);
  const { total } = source.rows;
  // One message over the full width, unless the panels show the search itself.
  const isEmpty = total === 0 && loaded.length === 0 && !source.mistake && query.panels !== 'search';
  const shown = isEmpty ? 'table' : layout;
  const panel = usePanel(props.search !== undefined, single).current;
  const shadeOf = useShades(shown === 'both' && coloringOf(panel, query) === 'metric', loaded, props.objective);
  const showAll = (all: boolean): void => change({ drawn: all ? found.slice(0, MAX_DRAWN).map(({ id }) => id) : [] });
  const usual = kind === 'experiment' && !onPhone() ? usualColumns(loaded, layout !== 'table', innerWidth) : DEFAULT_COLUMNS[kind];
  // The labels of groups have the values of their columns.
  const keys = (view.columns ?? props.columns ?? usual).filter((key) => key === 'id' || !view.groups.includes(key));
  const ordered = [...keys.filter((key) => view.pins.includes(key)), ...keys.filter((key) => !view.pins.includes(key))];
  const oneMetric = new Set(loaded.slice(0, 200).map(({ experiment }) => experiment.searcherMetric)).size === 1;
  // The best of all experiments would be the best of several tasks.
  const isOneTask = kind === 'trial' || view.text !== '' || groups.length > 0;
  const columns = ordered
    .map((key) => column(key, kind))
    .filter((one): one is Column => one !== undefined)
    .map((one) => aligned(titled(one, oneMetric ? props.objective?.metric : undefined), loaded))
    .map((one) => (oneMetric && props.objective && isOneTask && loaded.length === source.rows.total ? withBest(one, loaded, props.objective.smallerIsBetter) : one))
    .map((one) => inGroups(one, groups));
  const draw = (run: Run): void => {
    const ids = new Set(drawn.map(({ id }) => id));
    if (!ids.delete(run.id)) ids.add(run.id);
    change({ drawn: [...ids] });
  };
  const setTests = (touched: readonly string[], tests: readonly Query[]): void => change({ text: print(withTests(source.query, touched, tests)) });
  // Rows that the master has not sent yet are undefined.
  const paged = { ...source.rows, at: (index: number) => wrap(source.rows.at(index)), loaded: () => [] };
  return (
    <div class={`workbench layout-${shown} of-${kind} ${single ? 'single' : ''} ${hasTools.value ? '' : 'no-tools'} ${keys.includes('numTrials') ? 'counts-trials' : ''}`}>
      <div class="workbench-bar">
        {props.title}
        {shown === 'both' && groups.length === 0 && !shadeOf && drawn.length < found.length && <span class="quiet found">{drawn.length} drawn</span>}
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
        {onPhone() && layout === 'panels' && <PanelSelect searches={props.search !== undefined} single={single} />}
        <Options open={hasTools} />
      </div>
      <ErrorNote error={source.rows.error} retry={source.rows.reload} />
      <div class="workbench-body" ref={body} style={{ '--split': `${split.value}%` }}>
        {shown !== 'panels' && (
          <div class="workbench-table">
            {source.mistake ? null : total === 0 && source.top.length === 0 ? (
              props.none
            ) : (
              <RunTable
                label={kind === 'trial' ? 'Trials' : 'Experiments'}
                items={items ?? paged}
                all={found}
                beside={shown === 'both'}
                single={single}
                grouped={view.groups.length > 0}
                picked={view.columns !== undefined}
                columns={columns}
                sorts={view.sorts.length === 0 && kind === 'experiment' ? NEWEST_FIRST : view.sorts}
                pins={view.pins}
                heat={heatOf(view.heat, view.heat.length > 0 ? loaded : [])}
                chosen={chosen}
                shown={shownIds}
                colorOf={colorOf}
                shadeOf={shadeOf}
                showAll={showAll}
                closed={closed}
                hides={hides}
                draw={draw}
                top={top}
                pin={(run) => change({ top: flipTop(view.top, run.id) })}
                sort={(key, add) =>
                  change({ sorts: nextSorts(view.sorts, key, add, key === 'searcherMetricsVal' && props.objective?.smallerIsBetter === false) })
                }
              />
            )}
            {total === 0 && source.top.length > 0 && props.none}
            {source.cut !== undefined && (
              <p class="quiet">The first {grouped(source.cut)} experiments are shown; a narrower query finds the others.</p>
            )}
          </div>
        )}
        {shown === 'both' && <Splitter />}
        {shown !== 'table' && (
          <Panels
            kind={kind}
            drawn={drawn}
            rows={loaded}
            colors={new Map(drawn.map(({ id }) => [id, colorOf(id)]))}
            groups={groups}
            objective={props.objective}
            keyed={layout === 'panels'}
            single={single}
            setTests={setTests}
            query={source.query}
            search={props.search}
            drawing={single ? null : <Drawing drawn={drawn.length} found={found} showAll={showAll} />}
          />
        )}
      </div>
      {props.bulk}
      {kind === 'trial' && chosen && <TrialActions chosen={chosen} change={change} />}
    </div>
  );
}

const wrap = (run: Run | undefined): Item | undefined => run && { run };
