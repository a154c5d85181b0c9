// Text that was typed and not yet saved: kept in this tab until the user signs out, so that neither a reload nor a session that
// expires loses it.
import { useSignal } from '@preact/signals';
import { UNSAVED, user } from './session';

export interface Draft {
  text: string | undefined; // undefined: nothing is unsaved
  from: string | undefined; // the text that it began with
  begin: (from: string) => void; // without anything typed, so that a reload shows what is stored by then
  change: (to: string) => void;
  accept: (from: string) => void; // as if the draft had begun with this text
  drop: () => void; // the text was saved or is not wanted
}

interface Typed {
  text: string;
  from?: string | undefined;
}

// A stored draft; undefined if it cannot be read.
function read(stored: string | null | undefined): Typed | undefined {
  try {
    const { text, from } = JSON.parse(stored ?? '{}') as { text?: unknown; from?: unknown };
    return typeof text === 'string' ? { text, from: typeof from === 'string' ? from : undefined } : undefined;
  } catch {
    return undefined;
  }
}

// The draft of the signed-in user for `place`, for example "experiments/7 notes". A component that changes to another
// place needs a `key`.
export function useDraft(place: string): Draft {
  const key = `${UNSAVED} ${user.value?.id ?? ''} ${place}`;
  const typed = useSignal(read(stored(() => sessionStorage.getItem(key))));
  const keep = (now: Typed): void => {
    typed.value = now;
    stored(() => sessionStorage.setItem(key, JSON.stringify(now)));
  };
  return {
    text: typed.value?.text,
    from: typed.value?.from,
    begin: (from) => (typed.value = { text: from, from }),
    change: (text) => keep({ ...typed.value, text }),
    accept: (from) => typed.value && keep({ ...typed.value, from }),
    drop: () => {
      typed.value = undefined;
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
