// Comparison of up to 20 experiments or trials: curves, hyperparameters, configuration, code.
import { paths, useQuery, useTitle } from '../address';
import { Metrics } from '../charts/Metrics';
import { seriesColors, useColors } from '../colors';
import { useNow } from '../components/clock';
import { DiffView } from '../components/DiffView';
import { ErrorNote, StateBadge } from '../components/notes';
import { currentTab, Tabs } from '../components/Tabs';
import { CodeCompare, Sides, useSides } from '../compare/CodeCompare';
import { CompareTable, ValueTable } from '../compare/CompareTable';
import { MAX_COMPARED, loadSubjects, readIds, rowsOf, type Subject } from '../compare/subjects';
import { counted, dateTime, isEnded, metric, span } from '../format';
import { useLive } from '../live';

const TABS = ['Curves', 'Hyperparameters', 'Configuration', 'Code'] as const;

function Overview({ all }: { all: Subject[] }) {
  const now = useNow(all.some((one) => !isEnded(one.experiment.state)));
  const state = (one: Subject): string => (one.path === 'trial' && one.trial ? one.trial.state : one.experiment.state);
  return (
    <CompareTable
      label="Summary"
      all={all}
      rows={[
        ['State', all.map((one) => <StateBadge state={state(one)} />), false],
        [
          'Best metric',
          all.map((one) => {
            const value = one.path === 'trial' ? one.trial?.searcherMetricValue : one.experiment.bestTrialSearcherMetric;
            return `${metric(value)} ${value == null ? '' : one.experiment.searcherMetric}`;
          }),
          false,
        ],
        ['Batches', all.map((one) => (one.trial?.totalBatchesProcessed ?? 0).toLocaleString()), false],
        ['Searcher', all.map((one) => `${one.experiment.searcherType}, ${counted(one.experiment.numTrials, 'trial')}`), false],
        ['Started', all.map((one) => dateTime(one.experiment.startTime)), false],
        ['Elapsed', all.map((one) => span(one.experiment.startTime, one.experiment.endTime, now)), false],
        ['User', all.map((one) => one.experiment.username), false],
      ]}
    />
  );
}

function Curves({ all }: { all: Subject[] }) {
  const drawn = all.flatMap((one) => (one.trial ? [one.trial] : []));
  useColors();
  const colors = seriesColors(drawn.length);
  const curves = all.flatMap(({ trial, name }) => (trial ? [{ ...trial, name }] : [])).map((one, at) => ({ ...one, color: colors[at] ?? '' }));
  if (drawn.length === 0) return <p class="quiet">None of them has a trial yet.</p>;
  return <Metrics curves={curves} ended={drawn.every((trial) => isEnded(trial.state))} />;
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
      <DiffView
        left={left.experiment.originalConfig}
        right={right.experiment.originalConfig}
        title={`${left.name} → ${right.name}`}
      />
    </>
  );
}

const Nothing = () => (
  <div class="empty">
    <h1>Nothing to compare</h1>
    <p>
      Choose 2 to {MAX_COMPARED} rows in <a href={paths.experiments}>the list of experiments</a> and press Compare, or
      do so with the trials of an experiment.
    </p>
  </div>
);

export function ComparePage() {
  useTitle('Compare');
  const { query } = useQuery();
  const experiments = readIds(query.experiments);
  const trials = readIds(query.trials).slice(0, MAX_COMPARED - experiments.length);
  const key = `compare ${experiments.join()} ${trials.join()}`;
  const live = useLive(
    key,
    (signal) => loadSubjects(experiments, trials, signal),
    (change) =>
      change === 'everything' ||
      ((change.kind === 'experiment' || change.kind === 'trial') &&
        (experiments.includes(change.experimentId ?? 0) || trials.includes(change.trialId ?? 0))),
    2000,
  );
  if (experiments.length + trials.length === 0) return <Nothing />;
  const all = live.data;
  if (!all) return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <h1>
        Compare {all.length} {trials.length === 0 ? 'experiments' : 'trials'}
      </h1>
      <ErrorNote error={live.error} retry={live.reload} />
      <Overview all={all} />
      <Tabs names={TABS} current={tab} keep={['experiments', 'trials']} />
      {tab === 'Curves' && <Curves all={all} />}
      {tab === 'Hyperparameters' && (
        <ValueTable
          label="Hyperparameters"
          all={all}
          rows={rowsOf(all.map((one) => one.trial?.hparams))}
          none="The hyperparameters are the same."
        />
      )}
      {tab === 'Configuration' && <Configuration all={all} />}
      {tab === 'Code' && (
        <>
          <Sides all={all} />
          <CodeCompare all={all} />
        </>
      )}
    </>
  );
}
