// Owns what can be done to many experiments at once; says which of them refused and why.
import { useSignal, type Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { paths } from '../address';
import * as api from '../api';
import { kMostCompared } from '../compare/subjects';
import { isActive, isEnded, isStopping } from '../format';
import { sessionEnded } from '../session';
import type { FoundExperiment } from '../wire';

// Requests under way at once.
const kAtOnce = 6;

const kPossible: Record<api.Action, (state: string) => boolean> = {
  activate: (state) => state === 'STATE_PAUSED',
  pause: isActive,
  cancel: (state) => !isEnded(state) && !isStopping(state),
  kill: (state) => !isEnded(state),
};

async function each<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: kAtOnce }, worker));
}

export function BulkActions({ chosen }: { chosen: Signal<ReadonlyMap<number, FoundExperiment>> }) {
  const busy = useSignal('');
  const refusals = useSignal<string[]>([]);
  const dialog = useRef<HTMLDialogElement>(null);
  const all = [...chosen.value.values()].map((one) => one.experiment);
  if (all.length === 0 && refusals.value.length === 0) return null;
  const able = (action: api.Action): number[] =>
    all.filter((one) => kPossible[action](one.state)).map((one) => one.id);
  const act = async (action: api.Action): Promise<void> => {
    busy.value = action;
    refusals.value = [];
    await each(able(action), async (id) => {
      try {
        await api.act(id, action);
      } catch (cause) {
        if (cause instanceof api.ApiError && cause.status === 401) sessionEnded();
        refusals.value = [...refusals.value, `${id}: ${cause instanceof Error ? cause.message : String(cause)}`];
      }
    });
    busy.value = '';
    chosen.value = new Map();
  };
  const button = (action: api.Action, label: string) => (
    <button
      type="button"
      class={action === 'kill' ? 'danger' : ''}
      disabled={busy.value !== '' || able(action).length === 0}
      onClick={() => (action === 'kill' ? dialog.current?.showModal() : void act(action))}
    >
      {label} {able(action).length > 0 && able(action).length}
    </button>
  );
  return (
    <div class="bulk" role="group" aria-label="Chosen experiments">
      <span role="status">{all.length} chosen</span>
      {all.length > 1 && all.length <= kMostCompared ? (
        <a class="button" href={paths.compare('experiments', all.map((one) => one.id))}>
          Compare
        </a>
      ) : (
        <button type="button" disabled title={`Choose 2 to ${kMostCompared}`}>
          Compare
        </button>
      )}
      {button('pause', 'Pause')}
      {button('activate', 'Activate')}
      {button('cancel', 'Cancel')}
      {button('kill', 'Kill…')}
      <button type="button" class="plain" onClick={() => ((chosen.value = new Map()), (refusals.value = []))}>
        Choose none
      </button>
      {refusals.value.map((text) => (
        <p class="note note-bad" role="alert" key={text}>
          {text}
        </p>
      ))}
      <dialog ref={dialog} aria-labelledby="kill-many-title">
        <form method="dialog">
          <h2 id="kill-many-title">Kill {able('kill').length} experiments?</h2>
          <p>Their trials end at once, without saving a checkpoint. This cannot be undone.</p>
          <div class="actions">
            <button type="submit">Keep them running</button>
            <button type="submit" class="danger" onClick={() => void act('kill')}>
              Kill
            </button>
          </div>
        </form>
      </dialog>
    </div>
  );
}
