// The list of keyboard shortcuts.
import { SHORTCUTS } from '../keys';

export const KeyList = () => (
  <dl class="keys">
    {SHORTCUTS.map(([key, meaning]) => (
      <div key={key}>
        <dt>
          <kbd>{key}</kbd>
        </dt>
        <dd>{meaning}</dd>
      </div>
    ))}
  </dl>
);
