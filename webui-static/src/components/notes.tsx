// Small components used on many pages: errors, states, progress.
import type { ApiError } from '../api';
import { connection } from '../events';
import { percent, stateName, stateTone } from '../format';

interface ErrorProps {
  error: ApiError | undefined;
  retry?: () => void;
}

// Messages start in lower case. Only a plain word is capitalized, not an identifier.
export const sentence = (message: string): string => message.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());

export function ErrorNote({ error, retry }: ErrorProps) {
  if (!error || error.status === 401) return null;
  // The page frame already shows a lost connection.
  if (error.status === 0 && connection.value === 'lost') return null;
  const lines = error.problems.map((one) => sentence(`${one.path} ${one.message}`.trim()));
  return (
    <p class="note note-bad" role="alert">
      <span class="lines-kept">{lines.join('\n') || sentence(error.message)}</span>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </p>
  );
}

// The progress of a running trial or experiment is the title of the badge.
export function StateBadge({ state, progress }: { state: string; progress?: number | undefined }) {
  const part = progress !== undefined && stateTone(state) === 'busy' ? percent(progress) : undefined;
  return (
    <span class={`state state-${stateTone(state)}`} title={part}>
      {stateName(state)}
    </span>
  );
}

export function Progress({ value, label }: { value: number | undefined; label: string }) {
  if (value === undefined) return null;
  return (
    <span class="progress">
      <progress max={1} value={value} aria-label={label} />
      <span>{percent(value)}</span>
    </span>
  );
}

export const Archived = () => <span class="tag muted">archived</span>;
