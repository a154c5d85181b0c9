// Files of a trial beside its checkpoints: TensorBoard event files, traces of the profiler, reported media.
import { fileAddress, trialFiles, type TrialFile } from '../calls/media';
import { Icon } from '../components/Icon';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { bytes, counted, grouped } from '../format';
import { useLive } from '../live';

export interface FilesProps {
  id: number; // of the trial
}

const RELOAD_GAP_MS = 5000;
// The digest in the name of a media file.
const DIGEST = /-[0-9a-f]{64}-/;

const sizeOf = (files: readonly TrialFile[]): number => files.reduce((sum, { size }) => sum + size, 0);

// The files by the folder that contains them, in the order of the list; "" for those outside of folders.
function foldersOf(files: readonly TrialFile[]): [string, TrialFile[]][] {
  const found = new Map<string, TrialFile[]>();
  for (const file of files) {
    const folder = file.path.slice(0, file.path.lastIndexOf('/') + 1);
    found.set(folder, [...(found.get(folder) ?? []), file]);
  }
  return [...found];
}

const Folder = ({ id, name, files }: { id: number; name: string; files: readonly TrialFile[] }) => (
  <>
    {name !== '' && (
      <tr class="folder">
        <td colSpan={3}>
          <Icon name="workspaces" /> {name} <span class="quiet">{counted(files.length, 'file')}, {bytes(sizeOf(files))}</span>
        </td>
      </tr>
    )}
    {files.map((file) => (
      <tr key={file.path} class={name === '' ? '' : 'inner'}>
        <th scope="row">
          <a href={fileAddress(id, file.path)} download title={`Download ${file.path}`}>
            {file.path.slice(name.length).replace(DIGEST, '-')} <Icon name="download" />
          </a>
        </th>
        <td class="number">{bytes(file.size)}</td>
        <td>
          <Time at={file.changeTime} />
        </td>
      </tr>
    ))}
  </>
);

export function TrialFiles({ id }: FilesProps) {
  const live = useLive(
    `files ${id}`,
    (signal) => trialFiles(id, signal),
    (change) => change === 'everything' || (change.kind === 'metrics' && change.trialId === id),
    RELOAD_GAP_MS,
  );
  return (
    <Loaded live={live}>
      {({ files, truncated, note }) => (
        <>
          {note !== '' && <p class="note">{note}</p>}
          {truncated && <p class="note">Only the first {grouped(files.length)} files are listed.</p>}
          {files.length === 0 && note === '' && (
            <Empty icon="download" title="No files">
              Event files, traces and reported media appear here.
            </Empty>
          )}
          {files.length > 0 && (
            <>
              <p class="quiet" role="status">
                {counted(files.length, 'file')}, {bytes(sizeOf(files))}
              </p>
              <Table label="Files" heads={['Name', '#Size', 'Changed']}>
                {foldersOf(files).map(([folder, own]) => (
                  <Folder key={folder} id={id} name={folder} files={own} />
                ))}
              </Table>
            </>
          )}
        </>
      )}
    </Loaded>
  );
}
