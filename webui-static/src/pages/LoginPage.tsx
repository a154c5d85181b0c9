// Sign-in page.
import { useSignal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { safeNext, useTitle } from '../address';
import { masterInfo } from '../api';
import { Logo } from '../components/Icon';
import { useLive } from '../live';
import { signIn, user } from '../session';

export function LoginPage() {
  const { query, route } = useLocation();
  const error = useSignal('');
  const busy = useSignal(false);
  const master = useLive('master', masterInfo, () => false);
  const name = master.data?.clusterName ?? '';
  useTitle('Sign in');
  const signedIn = Boolean(user.value);
  useEffect(() => {
    if (signedIn) route(safeNext(query.next), true);
  }, [signedIn]);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    busy.value = true;
    error.value = '';
    try {
      await signIn(String(fields.get('username')), String(fields.get('password')));
    } catch (cause) {
      error.value = cause instanceof Error ? cause.message : String(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <main class="login" id="content">
      <header>
        <Logo />
        <div>
          <h1>{name || 'Determinant'}</h1>
          <p class="quiet">
            {name ? 'Determinant cluster at ' : 'Cluster at '}
            {location.host}
          </p>
        </div>
      </header>
      <form onSubmit={(event) => void submit(event as unknown as SubmitEvent)}>
        <label>
          User name
          <input
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            autofocus
          />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        {error.value !== '' && (
          <p class="note note-bad" role="alert">
            {error.value}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy.value}>
          {busy.value ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
      <details class="quiet">
        <summary>First sign-in</summary>
        <p>
          The first password of <code>admin</code> is in the file <code>admin-password</code> of the master's data
          directory. An administrator creates further users on the page Users, or by <code>det user create NAME</code>.
        </p>
      </details>
      <footer class="quiet">Determinant {master.data?.release}</footer>
    </main>
  );
}
