// Trials of several experiments as a workbench; the address has their ids.
import { paths, useQuery, useTitle } from '../address';
import { RUNS_BEAT_MS } from '../beat';
import { loadSubjects, readIds, type Subject } from '../compare/subjects';
import { Empty } from '../components/Empty';
import { ErrorNote } from '../components/notes';
import { counted } from '../format';
import { useLive } from '../live';
import { WITH_EXPERIMENT } from '../workbench/columns';
import { ofTrial } from '../workbench/runs';
import { useRunsInMemory } from '../workbench/sources';
import { readView } from '../workbench/view';
import { Workbench } from '../workbench/Workbench';
import { smallerIsBetter } from './ExperimentsPage';
import { useMemo } from 'preact/hooks';

function Trials({ all }: { all: Subject[] }) {
  const { query } = useQuery();
  const first = all[0]?.experiment;
  const experiments = new Set(all.map(({ experiment }) => experiment.id)).size;
  const isOne = experiments === 1;
  const runs = useMemo(() => all.flatMap(({ experiment, trial }) => (trial ? [ofTrial(experiment, trial, !isOne)] : [])), [all]);
  const source = useRunsInMemory(readView(query), runs);
  return (
    <Workbench
      kind="trial"
      title={
        <>
          <h1>{counted(all.length, 'trial')}</h1>
          <span class="quiet found">of {counted(experiments, 'experiment')}</span>
        </>
      }
      source={source}
      {...(isOne ? {} : { columns: WITH_EXPERIMENT })}
      objective={first && { metric: first.searcherMetric, smallerIsBetter: smallerIsBetter(first) }}
      none={<p class="quiet">No trial matches the filter.</p>}
    />
  );
}

export function TrialsPage() {
  useTitle('Trials');
  const { query } = useQuery();
  const ids = readIds(query.ids);
  const live = useLive(
    `trials ${ids.join()}`,
    (signal) => loadSubjects([], ids, signal),
    (change) => change === 'everything' || (change.kind === 'trial' && ids.includes(change.trialId ?? 0)),
    RUNS_BEAT_MS,
  );
  if (ids.length === 0)
    return (
      <>
        <h1>Trials</h1>
        <Empty icon="experiments" title="No trials chosen">
          Open an experiment to see its trials, or mark several to compare them, in{' '}
          <a href={paths.experiments}>the list of experiments</a>.
        </Empty>
      </>
    );
  if (!live.data) return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  return <Trials all={live.data} />;
}
