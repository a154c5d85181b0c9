// Actions on the selected trials of a run table; reports each failure with its reason.
import { useSignal, type Signal } from '@preact/signals';
import { useQuery } from '../address';
import { killTrial } from '../api';
import { MAX_COMPARED } from '../compare/subjects';
import { Confirm } from '../components/Confirm';
import { isEnded } from '../format';
import { toError } from '../work';
import type { Run } from './runs';
import { writeView, type View } from './view';

interface Props {
  chosen: Signal<ReadonlyMap<number, Run>>;
  change: (part: Partial<View>) => void; // of the view
}

export function TrialActions({ chosen, change }: Props) {
  const { setQuery } = useQuery();
  const refusals = useSignal<string[]>([]);
  const ids = [...chosen.value.keys()];
  const running = [...chosen.value.values()].filter(({ state }) => !isEnded(state));
  if (ids.length === 0 && refusals.value.length === 0) return null;
  const kill = async (): Promise<void> => {
    const answers = await Promise.all(running.map(({ id }) => killTrial(id).then(() => '', (cause) => `${id}: ${toError(cause).message}`)));
    refusals.value = answers.filter((one) => one !== '');
    chosen.value = new Map();
  };
  const comparable = ids.length >= 2 && ids.length <= MAX_COMPARED;
  return (
    <div class="bulk" role="group" aria-label="Selected trials">
      <span role="status">{ids.length} selected</span>
      <button
        type="button"
        disabled={!comparable}
        title={comparable ? undefined : `Select 2 to ${MAX_COMPARED}`}
        onClick={() => setQuery({ ...writeView({ drawn: ids }), panels: 'compare', layout: 'both' })}
      >
        Compare
      </button>
      <button type="button" disabled={ids.length === 0} onClick={() => change({ drawn: ids })}>
        Show only these
      </button>
      <Confirm
        label={`Kill ${running.length || ''}`.trim() + '…'}
        title={`Kill ${running.length} trials?`}
        yes="Kill"
        no="Keep them running"
        disabled={running.length === 0}
        work={kill}
      >
        They end at once, without saving a checkpoint. This cannot be undone.
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
