// Submitted code of experiments, unpacked in the browser.
import * as api from './api';
import { asText, fromBase64, gunzip, untar, type CodeFile } from './tar';

// The files of an experiment; empty when it was submitted without code.
export async function codeOf(experimentId: number, signal: AbortSignal): Promise<CodeFile[]> {
  try {
    return await untar(await gunzip(fromBase64(await api.modelDefinition(experimentId, signal))));
  } catch (cause) {
    if (cause instanceof api.ApiError && cause.status === 404) return [];
    throw cause;
  }
}

// Path → text, for comparisons. Binary files are represented by their size.
export const asTexts = (files: readonly CodeFile[]): Map<string, string> =>
  new Map(files.map((file) => [file.path, asText(file.bytes) ?? `(not text, ${file.bytes.length} bytes)`]));
