// Owns the buttons that steer an experiment. The page changes when the master says that the state changed.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import * as api from '../api';
import { isActive, isEnded, isStopping } from '../format';
import { sessionEnded } from '../session';
import type { Experiment } from '../wire';
import { ErrorNote } from './notes';

export function Actions({ experiment }: { experiment: Experiment }) {
  const { id, state } = experiment;
  const busy = useSignal<api.Action | undefined>(undefined);
  const error = useSignal<api.ApiError | undefined>(undefined);
  const dialog = useRef<HTMLDialogElement>(null);
  if (isEnded(state)) return null;

  const act = async (action: api.Action): Promise<void> => {
    busy.value = action;
    error.value = undefined;
    try {
      await api.act(id, action);
    } catch (cause) {
      error.value = cause instanceof api.ApiError ? cause : new api.ApiError(-1, String(cause));
      if (error.value.status === 401) sessionEnded();
    } finally {
      busy.value = undefined;
    }
  };
  const button = (action: api.Action, label: string, possible: boolean) => (
    <button type="button" disabled={!possible || busy.value !== undefined} onClick={() => void act(action)}>
      {label}
    </button>
  );
  return (
    <div class="actions" role="group" aria-label="Actions">
      {state === 'STATE_PAUSED'
        ? button('activate', 'Activate', true)
        : button('pause', 'Pause', isActive(state))}
      {button('cancel', 'Cancel', !isStopping(state))}
      <button
        type="button"
        class="danger"
        disabled={busy.value !== undefined}
        onClick={() => dialog.current?.showModal()}
      >
        Kill…
      </button>
      <dialog ref={dialog} aria-labelledby="kill-title">
        <form method="dialog">
          <h2 id="kill-title">Kill experiment {id}?</h2>
          <p>Its trials end at once, without saving a checkpoint. This cannot be undone.</p>
          <div class="actions">
            <button type="submit">Keep it running</button>
            <button type="submit" class="danger" onClick={() => void act('kill')}>
              Kill
            </button>
          </div>
        </form>
      </dialog>
      <ErrorNote error={error.value} />
    </div>
  );
}
