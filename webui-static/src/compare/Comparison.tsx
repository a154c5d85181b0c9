// The Compare panel of the workbench: values, configurations and code of the drawn runs side by side.
import { useQuery } from '../address';
import { useNow } from '../components/clock';
import { DiffView } from '../components/DiffView';
import { ErrorNote, StateBadge } from '../components/notes';
import { counted, grouped, isEnded, metric, span } from '../format';
import { useLive } from '../live';
import type { Run } from '../workbench/runs';
import { readView, type View } from '../workbench/view';
import type { Objective } from '../workbench/Workbench';
import { CodeCompare, Sides, useSides } from './CodeCompare';
import { CompareTable, ValueTable } from './CompareTable';
import { against, bestPlace, loadSubjects, MAX_COMPARED, rowsOf, valueOfMetric, type Subject } from './subjects';

const PARTS = ['Values', 'Configuration', 'Code'] as const;
const RELOAD_GAP_MS = 2000;

// The metric with its difference from the first subject's; the best one is marked unless all read the same.
function Metrics({ all, smallerIsBetter }: { all: Subject[]; smallerIsBetter: boolean }) {
  const values = all.map(valueOfMetric);
  const best = new Set(values.map(metric)).size > 1 ? bestPlace(values, smallerIsBetter) : undefined;
  return values.map((value, at) => (
    <>
      {metric(value)} {at > 0 && <span class="quiet">{against(value, values[0])}</span>} {at === best && <span class="tag">best</span>}
    </>
  ));
}

function Values({ all, smallerIsBetter }: { all: Subject[]; smallerIsBetter: boolean }) {
  const now = useNow(all.some((one) => !isEnded(one.experiment.state)));
  const state = (one: Subject): string => (one.path === 'trial' && one.trial ? one.trial.state : one.experiment.state);
  const metricName = new Set(all.map((one) => one.experiment.searcherMetric)).size === 1 ? all[0]?.experiment.searcherMetric : undefined;
  return (
    <>
      <CompareTable
        label="Summary"
        all={all}
        rows={[
          ['State', all.map((one) => <StateBadge state={state(one)} />), false],
          [metricName || 'Best metric', Metrics({ all, smallerIsBetter }), false],
          ['Batches', all.map((one) => grouped(one.trial?.totalBatchesProcessed ?? 0)), false],
          ['Searcher', all.map((one) => `${one.experiment.searcherType}, ${counted(one.experiment.numTrials, 'trial')}`), false],
          [
            'Elapsed',
            all.map((one) => {
              const of = one.path === 'trial' && one.trial ? one.trial : one.experiment;
              return span(of.startTime, of.endTime, now);
            }),
            false,
          ],
        ]}
      />
      <ValueTable
        label="Hyperparameters"
        all={all}
        rows={rowsOf(all.map((one) => one.trial?.hparams))}
        none="The hyperparameters are the same."
      />
    </>
  );
}

function Configuration({ all }: { all: Subject[] }) {
  const { left, right } = useSides(all);
  return (
    <>
      <ValueTable
        label="Configurations"
        all={all}
        rows={rowsOf(all.map((one) => one.experiment.config))}
        none="The resolved configurations are the same."
      />
      <h2 class="gap-above">As submitted</h2>
      <Sides all={all} />
      <DiffView left={left.experiment.originalConfig} right={right.experiment.originalConfig} title={`${left.name} → ${right.name}`} />
    </>
  );
}

// Pinned runs, then the others in the order of the address: the others are compared with the first one.
function compareOrder(drawn: readonly Run[], { top, drawn: chosen }: View): Run[] {
  const ids = [...top, ...(chosen ?? drawn.map(({ id }) => id))];
  return [...drawn].sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
}

export interface Props {
  drawn: readonly Run[];
  colors: ReadonlyMap<number, string>; // by id of the run
  objective: Objective | undefined;
}

export function Comparison({ drawn, colors, objective }: Props) {
  const { query, setQuery } = useQuery();
  const runs = compareOrder(drawn, readView(query)).slice(0, MAX_COMPARED);
  const ids = (kind: Run['kind']): number[] => runs.filter((run) => run.kind === kind).map(({ id }) => id);
  const [experiments, trials] = [ids('experiment'), ids('trial')];
  const live = useLive(
    `compare ${experiments.join()} ${trials.join()}`,
    (signal) => loadSubjects(experiments, trials, signal),
    (change) =>
      change === 'everything' ||
      ((change.kind === 'experiment' || change.kind === 'trial') &&
        (experiments.includes(change.experimentId ?? 0) || trials.includes(change.trialId ?? 0))),
    RELOAD_GAP_MS,
  );
  if (runs.length === 0) return <p class="quiet">No run is drawn. The round button before a row adds it to the comparison.</p>;
  if (!live.data) return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  const all = live.data.map((one) => ({ ...one, color: colors.get(one.path === 'trial' ? (one.trial?.id ?? 0) : one.experiment.id) }));
  const part = PARTS.find((one) => one.toLowerCase() === query.of) ?? 'Values';
  return (
    <section aria-label="Comparison" class="comparison">
      <ErrorNote error={live.error} retry={live.reload} />
      <div class="controls">
        <div class="segments" role="group" aria-label="What is compared">
          {PARTS.map((one) => (
            <button type="button" key={one} aria-pressed={one === part} onClick={() => setQuery({ of: one === 'Values' ? '' : one.toLowerCase() })}>
              {one}
            </button>
          ))}
        </div>
        <span class="quiet">
          {counted(all.length, trials.length === 0 ? 'experiment' : 'trial')}
          {drawn.length > MAX_COMPARED && `, the first of ${drawn.length} drawn`}
          {all.length > 1 && part === 'Values' && '; differences are from the first'}
        </span>
      </div>
      {part === 'Values' && <Values all={all} smallerIsBetter={objective?.smallerIsBetter ?? true} />}
      {part === 'Configuration' && <Configuration all={all} />}
      {part === 'Code' && (
        <>
          <Sides all={all} />
          <CodeCompare all={all} />
        </>
      )}
    </section>
  );
}
