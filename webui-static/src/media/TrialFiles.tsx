// Files of a trial beside its checkpoints: TensorBoard event files, traces of the profiler, reported media.
import { fileAddress, trialFiles } from '../calls/media';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { bytes, grouped } from '../format';
import { useLive } from '../live';

export interface FilesProps {
  id: number; // of the trial
}

const RELOAD_GAP_MS = 5000;
// The digest in the name of a media file.
const DIGEST = /-[0-9a-f]{64}-/;

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
            <Table label="Files" heads={['Path', '#Size', 'Changed']}>
              {files.map((file) => (
                <tr key={file.path}>
                  <th scope="row">
                    <a href={fileAddress(id, file.path)} download title={file.path}>
                      {file.path.replace(DIGEST, '-')}
                    </a>
                  </th>
                  <td class="number">{bytes(file.size)}</td>
                  <td>
                    <Time at={file.changeTime} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}
    </Loaded>
  );
}
