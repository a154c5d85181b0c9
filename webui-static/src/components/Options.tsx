// A button that shows and hides the other tools of a row where a phone has no room for them.
import type { Signal } from '@preact/signals';
import { onPhone } from '../phone';

export const Options = ({ open }: { open: Signal<boolean> }) =>
  onPhone() ? (
    <button type="button" class="options" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
      Options
    </button>
  ) : null;
