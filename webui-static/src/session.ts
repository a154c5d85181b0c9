// Owns who is signed in: undefined while nobody knows yet, null for nobody. Starts and stops the event stream
// with it.
import { effect, signal } from '@preact/signals';
import * as api from './api';
import { backoff, events } from './events';
import type { User } from './wire';

export const user = signal<User | null | undefined>(undefined);
// Why the first question could not be answered; it is asked again until it is.
export const startError = signal('');

export function sessionEnded(): void {
  user.value = null;
}

// Asks the master who we are, until it answers.
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
  user.value = await api.login(name, password);
}

export async function signOut(): Promise<void> {
  try {
    await api.logout();
  } catch (cause) {
    // A session that has ended already is signed out.
    if (!(cause instanceof api.ApiError && cause.status === 401)) throw cause;
  }
  user.value = null;
}

export function followSession(): void {
  effect(() => {
    if (user.value) events.start(sessionEnded);
    else events.stop();
  });
}
