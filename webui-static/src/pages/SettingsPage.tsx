// Settings of this browser and of the signed-in user.
import { useTitle } from '../address';
import { refusal, setAlerts } from '../alerts';
import { Tokens } from '../accounts/Tokens';
import { patchUser } from '../calls/accounts';
import { field, FormDialog } from '../components/FormDialog';
import { KeyList } from '../components/KeyList';
import { user } from '../session';
import { alerts, density, theme, type Density, type Theme } from '../settings';

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

function Alerts() {
  const why = refusal();
  return (
    <fieldset>
      <legend>Alerts</legend>
      <label class="check">
        <input
          type="checkbox"
          checked={alerts.value}
          disabled={why !== '' && !alerts.value}
          onChange={(event) => void setAlerts(event.currentTarget.checked)}
        />
        Notify me when an experiment of mine ends while this page is hidden
      </label>
      {why !== '' && <span class="quiet">{why}</span>}
    </fieldset>
  );
}

function Account() {
  const set = async (fields: FormData): Promise<void> => {
    const own = user.value;
    if (!own) return;
    const displayName = field(fields, 'displayName');
    const password = String(fields.get('password') ?? '');
    await patchUser(own.id, { displayName, ...(password === '' ? {} : { password }) });
    user.value = { ...own, displayName };
  };
  return (
    <section class="card section-head" aria-labelledby="account-title">
      <h2 id="account-title">Account</h2>
      <span>
        {user.value?.username}
        {user.value?.admin && <span class="quiet">, an administrator</span>}
      </span>
      <span class="spring" />
      <FormDialog label="Name and password…" title="Name and password" submit="Save" work={set}>
        {() => (
          <>
            <label>
              Name to show
              <input type="text" name="displayName" defaultValue={user.value?.displayName} />
            </label>
            <label>
              New password (leave empty to keep the current one)
              <input type="password" name="password" autocomplete="new-password" />
            </label>
            <p class="quiet">A new password ends your other sessions and access tokens.</p>
          </>
        )}
      </FormDialog>
    </section>
  );
}

export function SettingsPage() {
  useTitle('Settings');
  return (
    <div class="settings">
      <h1>Settings</h1>
      <p class="intro">Theme, density and alerts stay in this browser.</p>
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
        <Alerts />
      </div>
      <Account />
      <Tokens />
      <section aria-labelledby="shortcuts-title" class="card shortcuts">
        <h2 id="shortcuts-title">Keys</h2>
        <KeyList />
      </section>
    </div>
  );
}
