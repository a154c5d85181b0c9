// The signed-in user: undefined until known, null when signed out. Starts and stops the
// event stream with the session. A browser remembers its last user: pages load their data at once, and the
// response to their first request ends a session that has expired.
import { effect, signal } from '@preact/signals';
import * as api from './api';
import { backoff, events } from './events';
import type { User } from './wire';

const KEY = 'det.user';
// Start of the keys of session storage with text that was typed and not yet saved.
export const UNSAVED = 'det.draft';

// Parses the remembered user; undefined if there is none.
export function readUser(text: string | null): User | undefined {
  try {
    const raw = JSON.parse(text ?? 'null');
    if (typeof raw?.id !== 'number' || typeof raw.username !== 'string') return undefined;
    return { id: raw.id, username: raw.username, admin: raw.admin === true, displayName: String(raw.displayName ?? '') };
  } catch {
    return undefined;
  }
}

function remembered(): User | undefined {
  try {
    return readUser(localStorage.getItem(KEY));
  } catch {
    return undefined; // local storage is absent or disabled
  }
}

function remember(found: User | null): void {
  try {
    if (found) localStorage.setItem(KEY, JSON.stringify(found));
    else localStorage.removeItem(KEY);
  } catch {
    // Local storage is full or disabled: the next page asks the master first.
  }
}

const isSame = (a: User, b: User | null | undefined): boolean =>
  a.id === b?.id && a.username === b.username && a.admin === b.admin && a.displayName === b.displayName;

export const user = signal<User | null | undefined>(remembered());
// Why the user could not be determined; findUser() retries.
export const startError = signal('');

export function sessionEnded(): void {
  user.value = null;
}

// Queries the current user; retries until the master responds.
export async function findUser(attempt = 0): Promise<void> {
  try {
    const found = await api.currentUser();
    if (!isSame(found, user.value)) user.value = found; // else the page would be drawn again
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

function dropUnsaved(): void {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(UNSAVED)) sessionStorage.removeItem(key);
  } catch {
    // Session storage is disabled: nothing was kept.
  }
}

// Ends the session. Nothing that the user typed stays in this tab, unlike at the end of a session that expired.
export async function signOut(): Promise<void> {
  try {
    await api.logout();
  } catch (cause) {
    // A session that has already ended counts as signed out.
    if (!(cause instanceof api.ApiError && cause.status === 401)) throw cause;
  }
  dropUnsaved();
  user.value = null;
}

export function followSession(): void {
  effect(() => {
    // The stream is opened while the user is still unknown, so that it is live before pages load data.
    if (user.value !== undefined) remember(user.value);
    if (user.value === null) events.stop();
    else events.start(sessionEnded);
  });
  // Another tab has signed out, or in as another user: the session cookie is that of all tabs.
  addEventListener('storage', ({ key, newValue }) => {
    if (key !== KEY || !user.value) return;
    if (newValue === null) sessionEnded();
    else if (readUser(newValue)?.id !== user.value.id) location.reload();
  });
}
