// Buttons that control an experiment. The page updates when the master reports the new state.
import { useLocation } from 'preact-iso';
import { paths } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { isActive, isEnded, isStopping } from '../format';
import { useWork } from '../work';
import type { Experiment } from '../wire';
import { ActionMenu } from './ActionMenu';
import { Confirm } from './Confirm';
import { field, FormDialog } from './FormDialog';
import { ErrorNote } from './notes';
import { ProjectChoice } from './ProjectChoice';
import { Words } from './Words';

interface Props {
  experiment: Experiment;
  reload: () => void; // called after changes without an event
}

function Edit({ experiment, reload }: Props) {
  const save = async (fields: FormData): Promise<void> => {
    const labels = field(fields, 'labels').split(',');
    await changes.patch(experiment.id, {
      name: field(fields, 'name'),
      description: field(fields, 'description'),
      labels: [...new Set(labels.map((one) => one.trim()).filter((one) => one !== ''))],
    });
    reload();
  };
  return (
    <FormDialog label="Edit…" title={`Edit experiment ${experiment.id}`} submit="Save" work={save}>
      {() => (
        <Words name={experiment.name} description={experiment.description} labels={experiment.labels} />
      )}
    </FormDialog>
  );
}

// Buttons that stand beside the menu: pause, go on, run again.
function First({ experiment, reload }: Props) {
  const { id, state } = experiment;
  const { busy, error, run } = useWork();
  const button = (label: string, possible: boolean, work: () => Promise<unknown>) => (
    <button type="button" disabled={!possible || busy} onClick={() => void run(work)}>
      {label}
    </button>
  );
  const again = async (): Promise<void> => {
    await changes.retry(id);
    reload();
  };
  return (
    <>
      {state === 'STATE_PAUSED' && button('Activate', true, () => api.act(id, 'activate'))}
      {!isEnded(state) && state !== 'STATE_PAUSED' && button('Pause', isActive(state), () => api.act(id, 'pause'))}
      {state === 'STATE_ERROR' && button('Retry', true, again)}
      <ErrorNote error={error} />
    </>
  );
}

function Running({ experiment }: { experiment: Experiment }) {
  const { id, state } = experiment;
  const { busy, error, run } = useWork();
  return (
    <>
      <button type="button" disabled={isStopping(state) || busy} onClick={() => void run(() => api.act(id, 'cancel'))}>
        Cancel experiment
      </button>
      <Confirm
        label="Kill…"
        title={`Kill experiment ${id}?`}
        yes="Kill"
        no="Keep it running"
        work={() => api.act(id, 'kill')}
      >
        Its trials end at once, without saving a checkpoint. This cannot be undone.
      </Confirm>
      <ErrorNote error={error} />
    </>
  );
}

function Ended({ experiment, reload }: Props) {
  const { id, archived } = experiment;
  const { busy, error, run } = useWork();
  const archive = async (): Promise<void> => {
    if (await run(() => changes.archive(id, !archived))) reload();
  };
  return (
    <>
      <a class="button" href={paths.goOn(id)}>
        Continue…
      </a>
      <button type="button" disabled={busy} onClick={() => void archive()}>
        {archived ? 'Unarchive' : 'Archive'}
      </button>
      <ErrorNote error={error} />
    </>
  );
}

function Remove({ id }: { id: number }) {
  const { route } = useLocation();
  return (
    <Confirm
      label="Delete…"
      title={`Delete experiment ${id}?`}
      yes="Delete"
      no="Keep it"
      work={() => changes.remove(id)}
      done={() => route(paths.experiments)}
    >
      Its metrics, logs and the files of its checkpoints go too. This cannot be undone.
    </Confirm>
  );
}

export function Actions({ experiment, reload }: Props) {
  const move = async (fields: FormData): Promise<void> => {
    await changes.move(experiment.id, Number(field(fields, 'project')));
    reload();
  };
  return (
    <div class="actions" role="group" aria-label="Actions">
      <First experiment={experiment} reload={reload} />
      <a class="button" href={paths.fork(experiment.id)}>
        Fork…
      </a>
      <ActionMenu>
        {isEnded(experiment.state) ? <Ended experiment={experiment} reload={reload} /> : <Running experiment={experiment} />}
        <Edit experiment={experiment} reload={reload} />
        <FormDialog label="Move…" title={`Move experiment ${experiment.id}`} submit="Move" work={move}>
          {() => <ProjectChoice current={experiment.projectId} />}
        </FormDialog>
        {isEnded(experiment.state) && <Remove id={experiment.id} />}
      </ActionMenu>
    </div>
  );
}
