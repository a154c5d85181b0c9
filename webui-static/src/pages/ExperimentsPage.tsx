// The list of experiments. Its view is stored in the address; rows are loaded on scrolling and kept fresh.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import * as api from '../api';
import { useQuery, useTitle } from '../address';
import { available, column, type Column } from '../columns';
import { BulkActions } from '../components/BulkActions';
import { ExperimentTable } from '../components/ExperimentTable';
import { ErrorNote } from '../components/notes';
import { ViewTools } from '../components/ViewTools';
import { withEvent, type ServerEvent } from '../events';
import { heatOf } from '../heat';
import { usePaged, type RowUpdates } from '../paged';
import { keepsOrder, nextSorts, readView, toSearch, withIds, writeView, type View } from '../view';
import type { FoundExperiment } from '../wire';

export const FirstExperiment = () => (
  <div class="empty">
    <h1>No experiments yet</h1>
    <p>Create the first one from a directory with a trial and its configuration:</p>
    <pre tabIndex={0}>
      <code>det experiment create const.yaml .</code>
    </pre>
    <p class="quiet">It appears here at once.</p>
  </div>
);

const RELOAD_GAP_MS = 300;
const SORTED_GAP_MS = 3000;

const isOfRow = (event: ServerEvent): boolean => ['experiment', 'trial', 'checkpoint'].includes(event.kind);

const rowUpdates = (search: api.SearchQuery, projectId: number): RowUpdates<FoundExperiment> => ({
  id: (row) => row.experiment.id,
  changedId: (event) => (isOfRow(event) ? event.experimentId : undefined),
  apply: (row, event) => ({ ...row, experiment: withEvent(row.experiment, event) }),
  load: async (ids, signal) =>
    (await api.searchExperiments({ ...withIds(search, ids), projectId }, 0, ids.length, signal)).experiments,
});

// The experiments of a project, or of all (0). `empty` is shown when there are none.
export function ExperimentList({ projectId, empty }: { projectId: number; empty: ComponentChildren }) {
  const { query, setQuery } = useQuery();
  const view = readView(query);
  const search = toSearch(view);
  const list = usePaged<FoundExperiment>(
    `experiments ${projectId} ${JSON.stringify(search)}`,
    async (offset, limit, signal) => {
      const answer = await api.searchExperiments({ ...search, projectId }, offset, limit, signal);
      return { rows: answer.experiments, total: answer.pagination.total };
    },
    // An event of an experiment that is not in the list: a new one, or one that may match the filter now.
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState) || (!keepsOrder(view) && isOfRow(change)),
    keepsOrder(view) ? RELOAD_GAP_MS : SORTED_GAP_MS,
    keepsOrder(view) ? rowUpdates(search, projectId) : undefined,
  );
  const chosen = useSignal<ReadonlyMap<number, FoundExperiment>>(new Map());
  const change = (part: Partial<View>): void => setQuery(writeView(part));
  const narrowed = search.text !== '' || search.filter !== '';
  if (list.total === 0 && !narrowed && !list.error) return <>{empty}</>;
  const inOrder = [...view.columns.filter((key) => view.pins.includes(key)), ...view.columns.filter((key) => !view.pins.includes(key))];
  const columns = inOrder.map(column).filter((one): one is Column => one !== undefined);
  return (
    <>
      <div class="section-head">
        {projectId === 0 ? <h1>Experiments</h1> : <h2>Experiments</h2>}
        <span class="quiet" role="status">
          {list.total === undefined
            ? 'Loading…'
            : `${list.total.toLocaleString()} ${narrowed ? 'found' : 'in all'}`}
        </span>
      </div>
      <ViewTools view={view} names={available(list.loaded())} change={change} />
      <ErrorNote error={list.error} retry={list.reload} />
      <BulkActions chosen={chosen} reload={list.reload} />
      {list.total === 0 && narrowed ? (
        <div class="empty">
          <p>No experiment matches the filter.</p>
          <button type="button" onClick={() => change({ text: '', state: '', conditions: [], any: false, archived: false })}>
            Show all
          </button>
        </div>
      ) : (
        <ExperimentTable
          list={list}
          columns={columns}
          sorts={view.sorts}
          pins={view.pins}
          heat={heatOf(view.heat, list.loaded())}
          chosen={chosen}
          sort={(key, add) => change({ sorts: nextSorts(view.sorts, key, add) })}
        />
      )}
    </>
  );
}

export function ExperimentsPage() {
  useTitle('Experiments');
  return <ExperimentList projectId={0} empty={<FirstExperiment />} />;
}
