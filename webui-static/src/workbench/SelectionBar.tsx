// The bar of actions on the selected rows of a run table, and their work: a few requests at a time, each failure kept
// with its reason.
import { useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { toError } from '../work';
import type { Run } from './runs';

// Concurrent requests.
const AT_ONCE = 6;

type Chosen = Signal<ReadonlyMap<number, Run>>;

interface SelectionWork {
  busy: Signal<boolean>;
  refusals: Signal<string[]>; // "ID: reason"
  // Calls `one` for each id, then clears the selection.
  run: (ids: readonly number[], one: (id: number) => Promise<unknown>) => Promise<void>;
}

export function useSelectionWork(chosen: Chosen): SelectionWork {
  const busy = useSignal(false);
  const refusals = useSignal<string[]>([]);
  const run: SelectionWork['run'] = async (ids, one) => {
    busy.value = true;
    refusals.value = [];
    const left = [...ids];
    const worker = async (): Promise<void> => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        try {
          await one(id);
        } catch (cause) {
          refusals.value = [...refusals.value, `${id}: ${toError(cause).message}`];
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    busy.value = false;
    chosen.value = new Map();
  };
  return { busy, refusals, run };
}

interface Props {
  label: string;
  chosen: Chosen;
  refusals: Signal<string[]>;
  children: ComponentChildren;
}

// Nothing without a selection and without refusals.
export function SelectionBar({ label, chosen, refusals, children }: Props) {
  if (chosen.value.size === 0 && refusals.value.length === 0) return null;
  return (
    <div class="bulk" role="group" aria-label={label}>
      <span role="status">{chosen.value.size} selected</span>
      {children}
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
