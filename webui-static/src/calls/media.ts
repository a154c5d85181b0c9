// API calls for media that trials report per step, and for files of a trial.
import { address, change, get } from '../http';

type MediaKind = 'KIND_IMAGE' | 'KIND_HISTOGRAM' | 'KIND_TEXT' | 'KIND_TABLE' | 'KIND_FILE';
// One entry; its content is loaded by digest.
export interface Media {
  trialId: number;
  name: string;
  step: number;
  kind: MediaKind;
  caption: string;
  digest: string;
  size: number; // bytes
  fileName: string;
}

// Entries of one answer, which is also the limit of the master.
const PAGE = 20_000;

type Listed = Omit<Media, 'step' | 'size'> & { stepsCompleted: string | number; size: string | number };

// All entries of trials, by trial, name and step.
export async function media(trialIds: readonly number[], signal?: AbortSignal): Promise<Media[]> {
  const found: Media[] = [];
  for (;;) {
    const answer = await get<{ media: Listed[]; total: number }>(address('/api/v1/media', { trialIds, offset: found.length, limit: PAGE }), signal);
    for (const { stepsCompleted, size, ...one } of answer.media) found.push({ ...one, step: Number(stepsCompleted), size: Number(size) });
    if (answer.media.length === 0 || found.length >= answer.total) return found;
  }
}

// The contents of entries, as many of the first ones as fit into an answer.
export async function contents(entries: readonly Media[]): Promise<Uint8Array<ArrayBuffer>[]> {
  const answer = await change<{ contents: string[] }>('POST', '/api/v1/media/contents', {
    trialIds: entries.map(({ trialId }) => trialId),
    digests: entries.map(({ digest }) => digest),
  });
  return answer.contents.map((text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
}

export interface TrialFile {
  path: string;
  size: number; // bytes
  changeTime: string;
}
interface TrialFileList {
  files: TrialFile[];
  truncated: boolean;
  note: string; // why files are missing; '' if none are
}
export async function trialFiles(trialId: number, signal?: AbortSignal): Promise<TrialFileList> {
  const answer = await get<Omit<TrialFileList, 'files'> & { files: (Omit<TrialFile, 'size'> & { size: string | number })[] }>(
    `/api/v1/trials/${trialId}/files`,
    signal,
  );
  return { ...answer, files: answer.files.map((file) => ({ ...file, size: Number(file.size) })) };
}
// The address of a file for downloads. The master sends it as an attachment.
export const fileAddress = (trialId: number, path: string): string =>
  `/trial-files/${trialId}/${path.split('/').map(encodeURIComponent).join('/')}`;
// The path of an entry among the files of its trial.
export const pathOf = (one: Media): string => `media/${one.name}/${one.step}-${one.digest}-${one.fileName}`;
