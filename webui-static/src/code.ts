// Owns the submitted code of experiments, unpacked in the browser; each is fetched once while a page shows it.
import * as api from './api';
import { asText, fromBase64, gunzip, untar, type CodeFile } from './tar';

// No files where an experiment was submitted without code.
export async function codeOf(experimentId: number, signal: AbortSignal): Promise<CodeFile[]> {
  try {
    return await untar(await gunzip(fromBase64(await api.modelDefinition(experimentId, signal))));
  } catch (cause) {
    if (cause instanceof api.ApiError && cause.status === 404) return [];
    throw cause;
  }
}

// Path → text, for comparing; of a file that is not text only its size.
export const asTexts = (files: readonly CodeFile[]): Map<string, string> =>
  new Map(files.map((file) => [file.path, asText(file.bytes) ?? `(not text, ${file.bytes.length} bytes)`]));
