// The list of keyboard shortcuts.
import { kShortcuts } from '../keys';

export const KeyList = () => (
  <dl class="keys">
    {kShortcuts.map(([key, meaning]) => (
      <div key={key}>
        <dt>
          <kbd>{key}</kbd>
        </dt>
        <dd>{meaning}</dd>
      </div>
    ))}
  </dl>
);
