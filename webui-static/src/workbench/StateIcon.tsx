// The state of a run as an icon, for tables without room for a badge. Shapes differ, so that no state is told by its
// color alone; the ring of a running one is its progress.
import { percent, stateName, stateTone, type Tone } from '../format';
import { STOPPED_EARLY } from './runs';

const SIGNS: Record<Tone, string> = {
  good: 'M4.800 8.300l2.200 2.200 4.200-4.600',
  bad: 'M5.600 5.600l4.800 4.800M10.400 5.600l-4.800 4.800',
  busy: '',
  waiting: 'M8 4.800V8l2.200 1.500',
  idle: 'M4 12L12 4',
};
const OWN_SIGNS: Record<string, string> = { STATE_PAUSED: 'M6.400 5.500v5M9.600 5.500v5', [STOPPED_EARLY]: 'M5.500 8h5' };

export function StateIcon({ state, progress }: { state: string; progress: number | undefined }) {
  const tone = stateTone(state);
  const part = tone === 'busy' ? progress : undefined;
  const name = stateName(state);
  return (
    <span class={`state-icon tone-${tone}`} title={part === undefined ? name : `${name}, ${percent(part)}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.500" />
        {tone === 'busy' ? (
          <circle class="part" cx="8" cy="8" r="6.500" pathLength={100} stroke-dasharray={`${Math.max(8, 100 * (part ?? 0.25))} 100`} transform="rotate(-90 8 8)" />
        ) : (
          <path d={OWN_SIGNS[state] ?? SIGNS[tone]} />
        )}
      </svg>
      <span class="hidden">{name}</span>
    </span>
  );
}
