// The warning about a GPU that is used unlike the others.
import { unevenText, type Uneven } from './uneven';

export const UnevenNote = ({ found }: { found: Uneven | undefined }) =>
  found ? (
    <p class="note note-wait uneven" role="status">
      {unevenText(found)}
    </p>
  ) : null;
