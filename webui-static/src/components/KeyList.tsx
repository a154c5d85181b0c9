// The list of keyboard shortcuts.
import { SHORTCUTS } from '../keys';

export const KeyList = () => (
  <dl class="keys">
    {SHORTCUTS.map(([keys, meaning]) => (
      <div key={keys}>
        <dt>{keys.split(' ').map((key) => (key === 'or' ? key : <kbd key={key}>{key}</kbd>))}</dt>
        <dd>{meaning}</dd>
      </div>
    ))}
  </dl>
);
