// Unified diff of two texts with both line numbers.
import { useSignal } from '@preact/signals';
import { diff, near } from '../diff';

// Further lines are omitted.
const MAX_LINES = 4000;
const SIGNS = { same: ' ', left: '−', right: '+' } as const;
const MEANINGS = { same: '', left: 'only left', right: 'only right' } as const;

export function DiffView({ left, right, title }: { left: string; right: string; title: string }) {
  const whole = useSignal(false);
  const all = diff(left, right);
  const count = (kind: 'left' | 'right'): number => all.filter((line) => line.kind === kind).length;
  const [added, removed] = [count('right'), count('left')];
  const changed = added + removed;
  const shortened = near(all);
  const isShorter = changed > 0 && shortened.length < all.length;
  const lines = (whole.value ? all : shortened).slice(0, MAX_LINES);
  return (
    <figure class="diff">
      <figcaption>
        {title}{' '}
        {changed === 0 ? (
          <span class="quiet">no difference</span>
        ) : (
          <span class="diff-count" title={`Lines only right: ${added}, only left: ${removed}`}>
            <span class="added">+{added}</span> <span class="removed">−{removed}</span>
          </span>
        )}{' '}
        {isShorter && (
          <button type="button" class="plain" onClick={() => (whole.value = !whole.value)}>
            {whole.value ? 'Only differences' : 'All lines'}
          </button>
        )}
      </figcaption>
      {changed > 0 && (
        <div class="diff-body" role="region" aria-label={title} tabIndex={0}>
          <table>
            <tbody>
              {lines.map((line, at) =>
                line ? (
                  <tr key={at} class={`diff-${line.kind}`}>
                    <td class="diff-number">{line.left || ''}</td>
                    <td class="diff-number">{line.right || ''}</td>
                    <td class="diff-sign">
                      <span aria-hidden="true">{SIGNS[line.kind]}</span>
                      <span class="hidden">{MEANINGS[line.kind]}</span>
                    </td>
                    <td class="diff-text">{line.text}</td>
                  </tr>
                ) : (
                  <tr key={at} class="diff-gap">
                    <td colSpan={4}>⋯</td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
    </figure>
  );
}
