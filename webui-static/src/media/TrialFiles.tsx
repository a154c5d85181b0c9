// Files of a trial beside its checkpoints: TensorBoard event files, traces of the profiler, reported media.
import { fileAddress, trialFiles } from '../calls/media';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Time } from '../components/Time';
import { bytes } from '../format';
import { useLive } from '../live';

export interface FilesProps {
  id: number; // of the trial
}

const RELOAD_GAP_MS = 5000;

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
          {truncated && <p class="note">Only the first {files.length.toLocaleString()} files are listed.</p>}
          {files.length === 0 && note === '' && (
            <Empty icon="download" title="No files">
              Event files, traces and reported media appear here.
            </Empty>
          )}
          {files.length > 0 && (
            <div class="table-frame" role="region" aria-label="Files" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Path</th>
                    <th scope="col" class="number">
                      Size
                    </th>
                    <th scope="col">Changed</th>
                  </tr>
                </thead>
                <tbody>
                  {files.map((file) => (
                    <tr key={file.path}>
                      <td>
                        <a href={fileAddress(id, file.path)} download>
                          {file.path}
                        </a>
                      </td>
                      <td class="number">{bytes(file.size)}</td>
                      <td>
                        <Time at={file.changeTime} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </Loaded>
  );
}
