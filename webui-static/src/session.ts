// The signed-in user: undefined until known, null when signed out. Starts and stops the
// event stream with the session.
import { effect, signal } from '@preact/signals';
import * as api from './api';
import { backoff, events } from './events';
import type { User } from './wire';

export const user = signal<User | null | undefined>(undefined);
// Why the user could not be determined; findUser() retries.
export const startError = signal('');

export function sessionEnded(): void {
  user.value = null;
}

// Queries the current user; retries until the master responds.
export async function findUser(attempt = 0): Promise<void> {
  try {
    user.value = await api.currentUser();
    startError.value = '';
  } catch (cause) {
    if (cause instanceof api.ApiError && (cause.status === 401 || cause.status === 403)) {
      user.value = null;
      return;
    }
    startError.value = cause instanceof Error ? cause.message : String(cause);
    setTimeout(() => void findUser(attempt + 1), backoff(attempt, Math.random()));
  }
}

export async function signIn(name: string, password: string): Promise<void> {
  const found = await api.login(name, password);
  events.start(sessionEnded);
  events.renew();
  user.value = found;
}

export async function signOut(): Promise<void> {
  try {
    await api.logout();
  } catch (cause) {
    // A session that has already ended counts as signed out.
    if (!(cause instanceof api.ApiError && cause.status === 401)) throw cause;
  }
  user.value = null;
}

export function followSession(): void {
  effect(() => {
    // The stream is opened while the user is still unknown, so that it is live before pages load data.
    if (user.value === null) events.stop();
    else events.start(sessionEnded);
  });
}
