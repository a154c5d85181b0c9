// Why a trial failed: the error, the last lines of its output, and the way to its log.
import { paths } from '../address';
import { errorLine } from '../failure';
import { Icon } from './Icon';

export const Failure = ({ trial, reason }: { trial: number; reason: string }) => (
  <section class="failure" aria-label="Failure">
    <p>
      <Icon name="alert" />
      <strong>{errorLine(reason)}</strong>{' '}
      <a href={`${paths.trial(trial)}?tab=log`}>Open the log of trial {trial}</a>
    </p>
    {reason.includes('\n') && <pre tabIndex={0}>{reason}</pre>}
  </section>
);
