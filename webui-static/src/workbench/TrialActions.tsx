// Actions on the selected trials.
import type { Signal } from '@preact/signals';
import { useQuery } from '../address';
import { killTrial } from '../api';
import { MAX_COMPARED } from '../compare/subjects';
import { Confirm } from '../components/Confirm';
import { SelectionBar, useSelectionWork } from './SelectionBar';
import { isEnded } from '../format';
import type { Run } from './runs';
import { writeView, type View } from './view';

interface Props {
  chosen: Signal<ReadonlyMap<number, Run>>;
  change: (part: Partial<View>) => void; // of the view
}

export function TrialActions({ chosen, change }: Props) {
  const { setQuery } = useQuery();
  const { busy, refusals, run } = useSelectionWork(chosen);
  const ids = [...chosen.value.keys()];
  const running = [...chosen.value.values()].filter(({ state }) => !isEnded(state));
  const comparable = ids.length >= 2 && ids.length <= MAX_COMPARED;
  return (
    <SelectionBar label="Selected trials" chosen={chosen} refusals={refusals}>
      <button
        type="button"
        disabled={!comparable}
        title={comparable ? undefined : `Select 2 to ${MAX_COMPARED}`}
        onClick={() => setQuery({ ...writeView({ drawn: ids }), panels: 'compare', layout: 'panels' })}
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
        disabled={busy.value || running.length === 0}
        work={() => run(running.map(({ id }) => id), killTrial)}
      >
        They end at once, without saving a checkpoint. This cannot be undone.
      </Confirm>
    </SelectionBar>
  );
}
