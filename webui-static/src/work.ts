// State of a button's action: busy while it runs, the error afterwards. One action runs at a time.
import { useSignal } from '@preact/signals';
import { ApiError } from './http';
import { sessionEnded } from './session';

interface Work {
  busy: boolean;
  error: ApiError | undefined;
  // Resolves to true on success. Does nothing while another action is running.
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
}

export function toError(cause: unknown): ApiError {
  const error = cause instanceof ApiError ? cause : new ApiError(-1, cause instanceof Error ? cause.message : String(cause));
  if (error.status === 401) sessionEnded();
  return error;
}

// `work` without overlap: a call while it runs joins that run.
export function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work().finally(() => (running = undefined)));
}

export function useWork(): Work {
  const busy = useSignal(false);
  const error = useSignal<ApiError | undefined>(undefined);
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    if (busy.value) return false;
    busy.value = true;
    error.value = undefined;
    try {
      await work();
      return true;
    } catch (cause) {
      error.value = toError(cause);
      return false;
    } finally {
      busy.value = false;
    }
  };
  return { busy: busy.value, error: error.value, run, clear: () => (error.value = undefined) };
}
