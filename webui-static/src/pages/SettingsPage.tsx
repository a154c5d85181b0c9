// Owns what a reader may choose for this browser.
import { useTitle } from '../address';
import { kShortcuts } from '../keys';
import { user } from '../session';
import { density, theme, views, type Density, type Theme } from '../settings';

function Choice<T extends string>(props: {
  name: string;
  title: string;
  value: T;
  options: [T, string][];
  choose: (value: T) => void;
}) {
  return (
    <fieldset>
      <legend>{props.title}</legend>
      {props.options.map(([value, label]) => (
        <label class="check" key={value}>
          <input
            type="radio"
            name={props.name}
            checked={props.value === value}
            onChange={() => props.choose(value)}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

export function SettingsPage() {
  useTitle('Settings');
  return (
    <div class="narrow">
      <h1>Settings</h1>
      <p class="quiet">
        Signed in as {user.value?.username}
        {user.value?.admin && ', an administrator'}. What you choose here stays in this browser.
      </p>
      <div class="card">
        <Choice<Theme>
          name="theme"
          title="Theme"
          value={theme.value}
          options={[
            ['system', 'As the system'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
          choose={(value) => (theme.value = value)}
        />
        <Choice<Density>
          name="density"
          title="Density"
          value={density.value}
          options={[
            ['roomy', 'Roomy'],
            ['dense', 'Dense'],
          ]}
          choose={(value) => (density.value = value)}
        />
      </div>
      <section aria-labelledby="views-title">
        <h2 id="views-title">Saved views</h2>
        {views.value.length === 0 && (
          <p class="quiet">None yet. The list of experiments can save what it shows under a name.</p>
        )}
        <ul class="plain-list">
          {views.value.map((view) => (
            <li key={view.name}>
              {view.name}{' '}
              <button
                type="button"
                class="plain"
                aria-label={`Remove the view ${view.name}`}
                onClick={() => (views.value = views.value.filter((other) => other !== view))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section aria-labelledby="shortcuts-title">
        <h2 id="shortcuts-title">Keys</h2>
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
      </section>
    </div>
  );
}
