// Owns the frame of every page: where one is, who one is, whether what one sees is fresh.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { paths } from '../address';
import { ApiError } from '../api';
import { connection } from '../events';
import { signOut, user } from '../session';
import { ErrorNote } from './notes';

function Freshness() {
  const lost = connection.value === 'lost';
  const text = { live: 'Live', connecting: 'Connecting…', lost: 'Reconnecting…' }[connection.value];
  return (
    <span
      class={`freshness freshness-${connection.value}`}
      role="status"
      title={lost ? 'What you see may be out of date' : undefined}
    >
      {text}
    </span>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const error = useSignal<ApiError | undefined>(undefined);
  const leave = (): void => {
    signOut().catch(
      (cause) => (error.value = cause instanceof ApiError ? cause : new ApiError(-1, String(cause))),
    );
  };
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={paths.experiments}>
          Determinant
        </a>
        <nav aria-label="Main">
          <a href={paths.experiments}>Experiments</a>
        </nav>
        <span class="spring" />
        <Freshness />
        <span class="who">{user.value?.displayName || user.value?.username}</span>
        <button type="button" class="plain" onClick={leave}>
          Sign out
        </button>
      </header>
      {connection.value === 'lost' && (
        <p class="banner" role="status">
          The connection to the master is lost: what you see may be out of date. Reconnecting…
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <ErrorNote error={error.value} />
        {children}
      </main>
    </>
  );
}
