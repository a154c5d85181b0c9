// Actions on many experiments at once; reports each failure with its reason.
import { useSignal, type Signal } from '@preact/signals';
import { paths } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { MAX_COMPARED } from '../compare/subjects';
import { isActive, isEnded, isStopping } from '../format';
import { toError } from '../work';
import type { Experiment } from '../wire';
import type { Run } from '../workbench/runs';
import { Confirm } from './Confirm';
import { field, FormDialog } from './FormDialog';
import { ProjectChoice } from './ProjectChoice';

// Concurrent requests.
const AT_ONCE = 6;

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

async function each<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

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
  const busy = useSignal('');
  const refusals = useSignal<string[]>([]);
  const all = [...chosen.value.values()].map((one) => one.experiment);
  if (all.length === 0 && refusals.value.length === 0) return null;
  const able = (action: Action): number[] => all.filter(POSSIBLE[action]).map((one) => one.id);
  const run = async (action: Action, one: (id: number) => Promise<unknown>): Promise<void> => {
    busy.value = action;
    refusals.value = [];
    await each(able(action), async (id) => {
      try {
        await one(id);
      } catch (cause) {
        refusals.value = [...refusals.value, `${id}: ${toError(cause).message}`];
      }
    });
    busy.value = '';
    chosen.value = new Map();
    reload();
  };
  const button = (action: Action, label: string, one: (id: number) => Promise<unknown>) => (
    <button
      type="button"
      disabled={busy.value !== '' || able(action).length === 0}
      onClick={() => void run(action, one)}
    >
      {label} {able(action).length > 0 && able(action).length}
    </button>
  );
  const move = (fields: FormData): Promise<void> => run('move', (id) => changes.move(id, Number(field(fields, 'project'))));
  return (
    <div class="bulk" role="group" aria-label="Selected experiments">
      <span role="status">{all.length} selected</span>
      <Compare all={all} />
      {button('pause', 'Pause', (id) => api.act(id, 'pause'))}
      {button('activate', 'Activate', (id) => api.act(id, 'activate'))}
      {button('cancel', 'Cancel', (id) => api.act(id, 'cancel'))}
      <Confirm
        label={`Kill ${able('kill').length || ''}`.trim() + '…'}
        title={`Kill ${able('kill').length} experiments?`}
        yes="Kill"
        no="Keep them running"
        disabled={busy.value !== '' || able('kill').length === 0}
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
        disabled={busy.value !== '' || able('delete').length === 0}
        work={() => run('delete', changes.remove)}
      >
        Their metrics, logs and the files of their checkpoints go too. This cannot be undone.
      </Confirm>
      <button type="button" class="plain" onClick={() => ((chosen.value = new Map()), (refusals.value = []))}>
        Clear selection
      </button>
      {refusals.value.map((text) => (
        <p class="note note-bad" role="alert" key={text}>
          {text}
        </p>
      ))}
    </div>
  );
}
