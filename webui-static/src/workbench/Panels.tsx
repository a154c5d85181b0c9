// Panels of the workbench: curves of the drawn runs; hyperparameters and outcomes of all rows; the search.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { useQuery } from '../address';
import { firstTrial } from '../api';
import type { Props as ComparisonProps } from '../compare/Comparison';
import { later } from '../components/later';
import type { Props as HyperparameterProps } from '../charts/HyperparameterViews';
import { areFew } from '../charts/bands';
import { Menu } from '../charts/Axes';
import { Metrics, PanelBar, type Curve, type Other } from '../charts/Metrics';
import { TrialKey } from '../charts/Legend';
import { ColorBy, Colors, shade, type Coloring } from '../charts/paint';
import { ranks } from '../charts/dimensions';
import type { Props as OutcomeProps } from '../charts/OutcomeViews';
import type { Props as MediaProps } from '../media/MediaPanel';
import { counted, isEnded } from '../format';
import { useLive } from '../live';
import type { JsonValue, Trial } from '../wire';
import { bestFormat } from './columns';
import { groupColors } from './runColors';
import { spread, type Group } from './groups';
import { onPhone } from '../phone';
import type { Query } from './query';
import { isSearch, type Run, type RunKind } from './runs';
import { hasCurves, trialOf } from './selection';
import type { Objective } from './Workbench';

const Comparison = later<ComparisonProps>(async () => (await import('../pages/more')).Comparison);
const HyperparameterViews = later<HyperparameterProps>(async () => (await import('../pages/more')).HyperparameterViews);
const MediaPanel = later<MediaProps>(async () => (await import('../pages/more')).MediaPanel);
const Outcomes = later<OutcomeProps>(async () => (await import('../pages/more')).Outcomes);

const PANELS = ['Curves', 'Parameters', 'Compare', 'Media', 'Search'] as const;

interface Props {
  kind: RunKind;
  drawn: readonly Run[];
  rows: readonly Run[]; // of the table
  colors: ReadonlyMap<number, string>; // of the drawn runs, by id
  groups: readonly Group[];
  objective: Objective | undefined;
  keyed: boolean; // no table beside has the names of the curves
  single: boolean; // there is one run in all
  query: Query | undefined;
  setTests: (columns: readonly string[], tests: readonly Query[]) => void; // filters the table
  search: ComponentChildren;
  drawing: ComponentChildren;
}

// Trials of experiments without a best one: their first.
function useFirstTrials(drawn: readonly Run[]): ReadonlyMap<number, number> {
  const missing = drawn.filter((run) => trialOf(run) === undefined && run.experiment.numTrials > 0).map(({ id }) => id);
  const live = useLive(
    `first trials ${missing.join()}`,
    async (signal) => new Map(await Promise.all(missing.map(async (id) => [id, await firstTrial(id, signal)] as const))),
    () => false,
  );
  return new Map([...(live.data ?? [])].flatMap(([id, trial]) => (trial === undefined ? [] : [[id, trial] as const])));
}

// Whether the runs are trials of one experiment.
const isOneSearch = (runs: readonly Run[]): boolean => runs.every(({ kind, experiment }) => kind === 'trial' && experiment.id === runs[0]?.experiment.id);

// The trials of the drawn runs.
function useTrials({ drawn, colors }: Pick<Props, 'drawn' | 'colors'>): Curve[] {
  const first = useFirstTrials(drawn);
  const ofOne = isOneSearch(drawn);
  return drawn.flatMap((run): Curve[] => {
    const id = trialOf(run) ?? first.get(run.id);
    if (id === undefined) return [];
    const startTime = run.kind === 'trial' ? run.trial?.startTime : run.experiment.startTime;
    // The curve of a search is that of one trial.
    const name = isSearch(run) ? `${run.label} · trial ${id}` : run.label;
    return [{ id, name, tag: String(run.id), startTime, color: colors.get(run.id) ?? '', isPaced: ofOne && run.state === 'STATE_RUNNING' }];
  });
}

const NO_RUN = <p class="quiet">No run is shown. The dot before a row shows its curves.</p>;

// The choice of a panel, and the menu of the drawn runs.
interface Bar {
  lead: ComponentChildren;
  tools: ComponentChildren;
}

// The colors of the drawn runs, where no table beside the charts has them.
const KeyOfRuns = (props: Pick<Props, 'drawn' | 'colors'>) => <TrialKey curves={useTrials(props)} panels={[]} narrow={onPhone()} />;

function MediaOfRuns(props: Pick<Props, 'drawn' | 'colors'>) {
  const curves = useTrials(props);
  return curves.length === 0 ? NO_RUN : <MediaPanel curves={curves} />;
}

// Trials of a search with pale curves behind the drawn ones, at most.
const MAX_OTHERS = 64;

// The trials of one search that are not drawn.
function othersOf({ drawn, rows }: Pick<Props, 'drawn' | 'rows'>): Other[] {
  if (!isOneSearch(rows)) return [];
  const rest = rows.filter((run) => run.trial && hasCurves(run) && !drawn.includes(run));
  return rest.slice(0, MAX_OTHERS).map(({ id, trial }) => ({ id, startTime: trial?.startTime }));
}

function Curves({ drawn, rows, colors, groups, keyed, objective, lead, tools }: Pick<Props, 'drawn' | 'rows' | 'colors' | 'groups' | 'keyed' | 'objective'> & Bar) {
  const curves = useTrials({ drawn, colors });
  if (curves.length === 0)
    return (
      <>
        <PanelBar lead={lead}>{tools}</PanelBar>
        {NO_RUN}
      </>
    );
  const places = new Map(groups.flatMap((group, place) => group.runs.map((run) => [trialOf(run), { place, label: group.label }] as const)));
  return (
    <Metrics
      curves={curves}
      others={groups.length > 0 ? [] : othersOf({ drawn, rows })}
      ended={drawn.every(({ state }) => isEnded(state))}
      objective={objective}
      single={rows.length === 1}
      running={rows.filter(({ state }) => state === 'STATE_RUNNING').length}
      keyed={keyed}
      lead={lead}
      tools={tools}
      groups={
        groups.length > 0
          ? {
              of: (trial) => places.get(trial),
              colors: groupColors(groups),
              names: groups.map(({ label }) => label),
              tags: groups.map(({ tag }) => tag),
              best: groups.map((group) => spread(group.runs, 'searcherMetricsVal')),
              metricName: objective?.metric ?? 'metric',
              few: areFew(groups.map(({ runs }) => runs.length)),
            }
          : undefined
      }
    />
  );
}

// The metric of a failed run says how far it came, so failed runs are left out unless all are.
function withoutFailed(rows: readonly Run[]): readonly Run[] {
  const kept = rows.filter(({ state }) => state !== 'STATE_ERROR');
  return kept.some(({ trial }) => trial !== undefined) ? kept : rows;
}

function Parameters({ rows, objective, hyperparameters, query, setTests }: Pick<Props, 'rows' | 'objective' | 'query' | 'setTests'> & { hyperparameters: JsonValue | undefined }) {
  const kept = withoutFailed(rows);
  const trials: Trial[] = kept.flatMap(({ trial }) => (trial && trial.id > 0 ? [trial] : []));
  const { metric = '', smallerIsBetter = true } = objective ?? {};
  return (
    <>
      <HyperparameterViews
        trials={trials}
        failed={rows.length - kept.length}
        waiting={kept.length - trials.length}
        running={new Set(kept.flatMap(({ state, trial }) => (trial && !isEnded(state) ? [trial.id] : [])))}
        hyperparameters={hyperparameters}
        metricName={metric}
        smallerIsBetter={smallerIsBetter}
        query={query}
        setTests={setTests}
      />
      <Outcomes trials={trials} metricName={metric} smallerIsBetter={smallerIsBetter} />
    </>
  );
}

type PanelName = (typeof PANELS)[number];

// The colors of panels whose marks are trials, without a choice in the address: charts of hyperparameters are read for what
// the metric depends on; in those of a search the colors find the shown runs, with the others pale.
const USUAL_COLORS: Partial<Record<PanelName, Coloring>> = { Parameters: 'metric', Search: 'run' };

// The colors of a panel's marks; undefined where its curves always have those of the runs.
export function coloringOf(panel: PanelName, { color }: Record<string, string | undefined>): Coloring | undefined {
  const usual = USUAL_COLORS[panel];
  return usual && (color === 'run' || color === 'metric' ? color : usual);
}

// The classes of the rows' dots beside charts whose marks have colors of the metric.
export function useShades(byMetric: boolean, rows: readonly Run[], objective: Objective | undefined): ((run: Run) => string) | undefined {
  const rank = useMemo(() => (byMetric ? ranks(withoutFailed(rows).flatMap(({ trial }) => trial ?? []), objective?.smallerIsBetter ?? true) : undefined), [byMetric, rows, objective?.smallerIsBetter]);
  return rank && ((run) => shade(rank.get(run.trial?.id ?? 0)));
}

// A single run has nothing to compare or to search.
export function usePanel(searches: boolean, single: boolean): { offered: readonly PanelName[]; current: PanelName; choose: (name: string) => void } {
  const { query, setQuery } = useQuery();
  const offered = PANELS.filter((name) => (single ? name === 'Curves' || name === 'Media' : name !== 'Search' || searches));
  return {
    offered,
    current: offered.find((name) => name.toLowerCase() === query.panels) ?? 'Curves',
    choose: (name) => setQuery({ panels: name === 'Curves' ? '' : name.toLowerCase() }),
  };
}

// The choice of a panel where a row of buttons has no room.
export function PanelSelect({ searches, single }: { searches: boolean; single: boolean }) {
  const { offered, current, choose } = usePanel(searches, single);
  return (
    <select aria-label="Panel" value={current} onChange={(event) => choose(event.currentTarget.value)}>
      {offered.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

export function Panels(props: Props) {
  const { kind, drawn, rows, colors, search, drawing } = props;
  const { query } = useQuery();
  const { offered, current, choose } = usePanel(search !== undefined, props.single);
  const lead = !(props.keyed && onPhone()) && (
    <div class="segments" role="group" aria-label="Panels">
      {offered.map((name) => (
        <button type="button" key={name} aria-pressed={name === current} onClick={() => choose(name)}>
          {name}
        </button>
      ))}
    </div>
  );
  const [usual, color] = [USUAL_COLORS[current], coloringOf(current, query)];
  const byMetric = color === 'metric';
  // Beside a table the eyes of its rows do the same.
  const tools = props.keyed && rows.length > 1 && <Menu label={drawn.length < rows.length ? `${drawn.length} of ${counted(rows.length, 'run')}` : counted(rows.length, 'run')}>{drawing}</Menu>;
  // By trial: charts of hyperparameters and of the search are about trials.
  const byTrial = new Map(rows.flatMap((run) => (run.trial && colors.has(run.id) ? [[run.trial.id, colors.get(run.id) ?? ''] as const] : [])));
  return (
    <div class="workbench-panels">
      {current === 'Curves' && <Curves {...props} lead={lead} tools={tools} />}
      {current !== 'Curves' && (
        <PanelBar lead={lead}>
          {usual && color ? <ColorBy color={color} usual={usual} /> : tools}
        </PanelBar>
      )}
      {props.keyed && color === 'run' && <KeyOfRuns {...props} />}
      <Colors.Provider value={{ byMetric, runs: byTrial }}>
        {current === 'Parameters' && <Parameters {...props} hyperparameters={kind === 'trial' ? rows[0]?.experiment.config?.hyperparameters : undefined} />}
        {current === 'Search' && search}
      </Colors.Provider>
      {current === 'Compare' && <Comparison drawn={drawn} colors={colors} objective={props.objective} format={bestFormat(rows)} />}
      {current === 'Media' && <MediaOfRuns {...props} />}
    </div>
  );
}
