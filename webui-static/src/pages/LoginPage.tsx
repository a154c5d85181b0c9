// Sign-in page: the form in the middle of the window, curves of a training below it.
import { useSignal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { safeNext, useTitle } from '../address';
import { masterInfo } from '../api';
import { Logo } from '../components/Icon';
import { useLive } from '../live';
import { signIn, user } from '../session';

// Falling loss curves across the lower part of the window.
const Curves = () => (
  <svg class="login-curves" viewBox="0 0 1200 300" preserveAspectRatio="none" aria-hidden="true">
    {[0, 1, 2, 3, 4].map((at) => (
      <path key={at} d={`M0 ${10 + 12 * at}C${90 + 70 * at} ${200 - 8 * at} ${300 + 40 * at} ${250 - 22 * at} 1200 ${282 - 26 * at}`} />
    ))}
  </svg>
);

function SignIn() {
  const error = useSignal('');
  const busy = useSignal(false);
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
  );
}

export function LoginPage() {
  const { query, route } = useLocation();
  const master = useLive('master', masterInfo, () => false);
  const name = master.data?.clusterName ?? '';
  useTitle('Sign in');
  const signedIn = Boolean(user.value);
  useEffect(() => {
    if (signedIn) route(safeNext(query.next), true);
  }, [signedIn]);

  return (
    <main class="login" id="content">
      <Curves />
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
      <SignIn />
      <details class="quiet">
        <summary>Where is the first password?</summary>
        <p>
          The first password of <code>admin</code> is in the file <code>admin-password</code> of the master's data
          directory. An administrator creates further users on the page Users, or by <code>det user create NAME</code>.
        </p>
      </details>
      <footer class="quiet">Determinant {master.data?.release}</footer>
    </main>
  );
}
