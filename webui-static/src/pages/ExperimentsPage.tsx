// The list of experiments as a workbench. Its view is stored in the address; rows are loaded on scrolling.
import { grouped } from '../format';
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import * as api from '../api';
import { useQuery, useTitle } from '../address';
import { BulkActions } from '../components/BulkActions';
import { Copy } from '../components/Copy';
import { Icon } from '../components/Icon';
import { Loaded } from '../components/Loaded';
import { useLive } from '../live';
import type { Experiment } from '../wire';
import type { Run } from '../workbench/runs';
import { withRows } from '../workbench/selection';
import { useExperimentRuns } from '../workbench/sources';
import { readView, toSearch, writeView } from '../workbench/view';
import { Workbench, type Objective } from '../workbench/Workbench';

export const FirstExperiment = () => (
  <div class="empty">
    <Icon name="experiments" />
    <h1>No experiments yet</h1>
    <p>Create the first one from a directory with a trial and its configuration. It appears here at once.</p>
    <Copy text="det experiment create const.yaml ." />
  </div>
);

// Whether smaller values of the searcher metric are better, which is the default.
export const smallerIsBetter = (one: Experiment | undefined): boolean => {
  const searcher = one?.config?.searcher;
  return !(searcher && typeof searcher === 'object' && !Array.isArray(searcher) && searcher.smaller_is_better === false);
};

// The metric that most of the rows have, and its better direction by the configuration of one of them.
function useObjective(runs: readonly Run[]): Objective | undefined {
  const counts = new Map<string, number>();
  for (const { experiment } of runs) counts.set(experiment.searcherMetric, (counts.get(experiment.searcherMetric) ?? 0) + 1);
  const [name] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [];
  const id = runs.find(({ experiment }) => experiment.searcherMetric === name)?.id;
  const live = useLive(`objective ${name} ${id === undefined}`, (signal) => (id === undefined ? Promise.resolve(undefined) : api.experiment(id, signal)), () => false);
  return name === undefined ? undefined : { metric: name, smallerIsBetter: smallerIsBetter(live.data) };
}

// A list without experiments that are not archived. `empty` is shown when there are no others either.
function NoneShown({ projectId, empty }: { projectId: number; empty: ComponentChildren }) {
  const { setQuery } = useQuery();
  const live = useLive(
    `archived ${projectId}`,
    async (signal) => (await api.searchExperiments({ ...toSearch(undefined, { sorts: [], archived: true }), projectId }, 0, 1, signal)).pagination.total,
    (change) => change === 'everything',
  );
  return (
    <Loaded live={live}>
      {(total) =>
        total === 0 ? (
          empty
        ) : (
          <div class="empty">
            <p>{total === 1 ? 'The only experiment here is archived.' : `All ${grouped(total)} experiments here are archived.`}</p>
            <button type="button" onClick={() => setQuery(writeView({ archived: true }))}>
              Show archived
            </button>
          </div>
        )
      }
    </Loaded>
  );
}

// The experiments of a project, or of all (0). `empty` is shown when there are none.
export function ExperimentList({ projectId, empty }: { projectId: number; empty: ComponentChildren }) {
  const { query, setQuery } = useQuery();
  const view = readView(query);
  const source = useExperimentRuns(view, projectId);
  const { rows } = source;
  const chosen = useSignal<ReadonlyMap<number, Run>>(new Map());
  useEffect(() => {
    chosen.value = withRows(chosen.value, rows.loaded());
  });
  const objective = useObjective(rows.loaded().slice(0, 50));
  if (rows.total === 0 && view.text === '' && !view.archived && !rows.error) return <NoneShown projectId={projectId} empty={empty} />;
  return (
    <Workbench
      kind="experiment"
      title={
        <>
          {projectId === 0 ? <h1>Experiments</h1> : <h2>Experiments</h2>}
          <span class="quiet found" role="status">
            {rows.total === undefined ? 'Loading…' : `${grouped(rows.total)} ${view.text === '' ? 'in all' : 'found'}`}
          </span>
        </>
      }
      source={source}
      objective={objective}
      chosen={chosen}
      bulk={<BulkActions chosen={chosen} reload={rows.reload} />}
      none={
        <div class="empty">
          <p>No experiment matches the filter.</p>
          <button type="button" onClick={() => setQuery(writeView({ text: '', archived: false }))}>
            Show all
          </button>
        </div>
      }
    />
  );
}

export function ExperimentsPage() {
  useTitle('Experiments');
  return <ExperimentList projectId={0} empty={<FirstExperiment />} />;
}
