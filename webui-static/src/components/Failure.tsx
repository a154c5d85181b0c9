// Why a trial failed: the error, the lines of its output above it unless brief, and the way to its log.
import { paths } from '../address';
import { errorContext, errorLine } from '../failure';
import { Icon } from './Icon';

export const Failure = ({ trial, reason, brief }: { trial: number; reason: string; brief: boolean }) => (
  <section class="failure" aria-label="Failure">
    <p>
      <Icon name="alert" />
      <strong>{errorLine(reason)}</strong>{' '}
      <a href={`${paths.trial(trial)}?tab=log`}>Open the log of trial {trial}</a>
    </p>
    {!brief && errorContext(reason) !== '' && <pre tabIndex={0}>{errorContext(reason)}</pre>}
  </section>
);
