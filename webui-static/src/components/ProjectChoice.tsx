// Selects a project that accepts new experiments; a form field named "project".
import { openProjects, type Project } from '../calls/places';
import { useLive } from '../live';
import { ErrorNote } from './notes';

export function ProjectChoice({ current }: { current?: number }) {
  const live = useLive('open projects', openProjects, () => false);
  const name = (one: Project): string => `${one.workspaceName} / ${one.name}`;
  return (
    <>
      <label>
        Project
        <select name="project">
          {live.data?.map((one) => (
            <option key={one.id} value={one.id} selected={one.id === current}>
              {name(one)}
            </option>
          ))}
        </select>
      </label>
      <ErrorNote error={live.error} retry={live.reload} />
    </>
  );
}
