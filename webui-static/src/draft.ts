// Text that was typed and not yet saved: kept in this tab, so that neither a reload nor the end of the session loses it.
import { useSignal } from '@preact/signals';
import { user } from './session';

export interface Draft {
  text: string | undefined; // undefined: nothing is unsaved
  begin: (from: string) => void; // without anything typed, so that a reload shows what is stored by then
  change: (to: string) => void;
  drop: () => void; // the text was saved or is not wanted
}

// The draft of the signed-in user for `place`, for example "experiments/7 notes". A component that changes to another
// place needs a `key`.
export function useDraft(place: string): Draft {
  const key = `det.draft ${user.value?.id ?? ''} ${place}`;
  const text = useSignal(stored(() => sessionStorage.getItem(key)) ?? undefined);
  return {
    text: text.value,
    begin: (from) => (text.value = from),
    change: (to) => {
      text.value = to;
      stored(() => sessionStorage.setItem(key, to));
    },
    drop: () => {
      text.value = undefined;
      stored(() => sessionStorage.removeItem(key));
    },
  };
}

// Session storage may be disabled or full: the draft then lasts as long as the page.
function stored<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
