// Actions on the selected experiments.
import type { Signal } from '@preact/signals';
import { paths } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { MAX_COMPARED } from '../compare/subjects';
import { isActive, isEnded, isStopping } from '../format';
import type { Experiment } from '../wire';
import type { Run } from '../workbench/runs';
import { Confirm } from './Confirm';
import { field, FormDialog } from './FormDialog';
import { ProjectChoice } from './ProjectChoice';
import { SelectionBar, useSelectionWork } from '../workbench/SelectionBar';

type Action = api.Action | 'archive' | 'unarchive' | 'delete' | 'move';

const POSSIBLE: Record<Action, (one: Experiment) => boolean> = {
  activate: ({ state }) => state === 'STATE_PAUSED',
  pause: ({ state }) => isActive(state),
  cancel: ({ state }) => !isEnded(state) && !isStopping(state),
  kill: ({ state }) => !isEnded(state),
  archive: ({ state, archived }) => isEnded(state) && !archived,
  unarchive: ({ archived }) => archived,
  delete: ({ state }) => isEnded(state),
  move: () => true,
};

function Compare({ all }: { all: Experiment[] }) {
  if (all.length < 2 || all.length > MAX_COMPARED) {
    return (
      <button type="button" disabled title={`Select 2 to ${MAX_COMPARED}`}>
        Compare
      </button>
    );
  }
  return (
    <a class="button" href={paths.compare(all.map((one) => one.id))}>
      Compare
    </a>
  );
}

interface Props {
  chosen: Signal<ReadonlyMap<number, Run>>;
  reload: () => void; // called after changes without an event
}

export function BulkActions({ chosen, reload }: Props) {
  const { busy, refusals, run: work } = useSelectionWork(chosen);
  const all = [...chosen.value.values()].map((one) => one.experiment);
  const able = (action: Action): number[] => all.filter(POSSIBLE[action]).map((one) => one.id);
  const run = async (action: Action, one: (id: number) => Promise<unknown>): Promise<void> => {
    await work(able(action), one);
    reload();
  };
  const button = (action: Action, label: string, one: (id: number) => Promise<unknown>) => (
    <button
      type="button"
      disabled={busy.value || able(action).length === 0}
      onClick={() => void run(action, one)}
    >
      {label} {able(action).length > 0 && able(action).length}
    </button>
  );
  const move = (fields: FormData): Promise<void> => run('move', (id) => changes.move(id, Number(field(fields, 'project'))));
  return (
    <SelectionBar label="Selected experiments" chosen={chosen} refusals={refusals}>
      <Compare all={all} />
      {button('pause', 'Pause', (id) => api.act(id, 'pause'))}
      {button('activate', 'Activate', (id) => api.act(id, 'activate'))}
      {button('cancel', 'Cancel', (id) => api.act(id, 'cancel'))}
      <Confirm
        label={`Kill ${able('kill').length || ''}`.trim() + '…'}
        title={`Kill ${able('kill').length} experiments?`}
        yes="Kill"
        no="Keep them running"
        disabled={busy.value || able('kill').length === 0}
        work={() => run('kill', (id) => api.act(id, 'kill'))}
      >
        Their trials end at once, without saving a checkpoint. This cannot be undone.
      </Confirm>
      {button('archive', 'Archive', (id) => changes.archive(id, true))}
      {able('unarchive').length > 0 && button('unarchive', 'Unarchive', (id) => changes.archive(id, false))}
      {all.length > 0 && (
        <FormDialog label={`Move ${all.length}…`} title={`Move ${all.length} experiments`} submit="Move" work={move}>
          {() => <ProjectChoice />}
        </FormDialog>
      )}
      <Confirm
        label={`Delete ${able('delete').length || ''}`.trim() + '…'}
        title={`Delete ${able('delete').length} experiments?`}
        yes="Delete"
        no="Keep them"
        disabled={busy.value || able('delete').length === 0}
        work={() => run('delete', changes.remove)}
      >
        Their metrics, logs and the files of their checkpoints go too. This cannot be undone.
      </Confirm>
    </SelectionBar>
  );
}
