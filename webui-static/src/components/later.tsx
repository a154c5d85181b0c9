// Pages that are loaded when they are first shown, so that the first load stays small.
import { useSignal } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';

// A component that `load` brings; until then `waiting` is shown. If it cannot be loaded, a button loads the page again: after an update of the
// master the files of the old version are gone.
export function later<P extends object = {}>(
  load: () => Promise<ComponentType<P>>,
  waiting: ComponentChildren = <p role="status">Loading…</p>,
): ComponentType<P> {
  let known: ComponentType<P> | undefined;
  return function Later(props: P) {
    const state = useSignal<'loading' | 'ready' | 'failed'>(known ? 'ready' : 'loading');
    useEffect(() => {
      // Also when it is known: it may have come between the first drawing and this effect.
      load().then(
        (found) => {
          known = found;
          state.value = 'ready';
        },
        () => (state.value = 'failed'),
      );
    }, []);
    if (state.value === 'ready' && known) {
      const Page = known;
      return <Page {...props} />;
    }
    if (state.value === 'loading') return <>{waiting}</>;
    return (
      <p class="note note-bad" role="alert">
        This page could not be loaded.
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </p>
    );
  };
}
