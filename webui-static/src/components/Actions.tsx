// Buttons that control an experiment. The page updates when the master reports the new state.
import { useLocation } from 'preact-iso';
import { paths } from '../address';
import * as api from '../api';
import * as changes from '../calls/changes';
import { isActive, isEnded, isStopping } from '../format';
import { useWork } from '../work';
import type { Experiment } from '../wire';
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
    <FormDialog label="Edit…" title={`Experiment ${experiment.id}`} submit="Save" work={save}>
      {() => (
        <Words name={experiment.name} description={experiment.description} labels={experiment.labels} />
      )}
    </FormDialog>
  );
}

function Running({ experiment }: { experiment: Experiment }) {
  const { id, state } = experiment;
  const { busy, error, run } = useWork();
  const button = (action: api.Action, label: string, possible: boolean) => (
    <button type="button" disabled={!possible || busy} onClick={() => void run(() => api.act(id, action))}>
      {label}
    </button>
  );
  return (
    <>
      {state === 'STATE_PAUSED' ? button('activate', 'Activate', true) : button('pause', 'Pause', isActive(state))}
      {button('cancel', 'Cancel', !isStopping(state))}
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
  const then = async (work: () => Promise<unknown>): Promise<void> => {
    if (await run(work)) reload();
  };
  return (
    <>
      {experiment.state === 'STATE_ERROR' && (
        <button type="button" disabled={busy} onClick={() => void then(() => changes.retry(id))}>
          Retry
        </button>
      )}
      <a class="button" href={paths.goOn(id)}>
        Continue…
      </a>
      <button type="button" disabled={busy} onClick={() => void then(() => changes.archive(id, !archived))}>
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
      {isEnded(experiment.state) ? (
        <Ended experiment={experiment} reload={reload} />
      ) : (
        <Running experiment={experiment} />
      )}
      <a class="button" href={paths.fork(experiment.id)}>
        Fork…
      </a>
      <Edit experiment={experiment} reload={reload} />
      <FormDialog label="Move…" title={`Move experiment ${experiment.id}`} submit="Move" work={move}>
        {() => <ProjectChoice current={experiment.projectId} />}
      </FormDialog>
      {isEnded(experiment.state) && <Remove id={experiment.id} />}
    </div>
  );
}
