// Page for unknown addresses and missing objects.
import { paths, useTitle } from '../address';

export function NotFoundPage({ what = 'There is no page at this address.' }: { what?: string }) {
  useTitle('Not found');
  return (
    <div class="empty">
      <h1>Not found</h1>
      <p>{what}</p>
      <p>
        <a href={paths.experiments}>Go to the experiments</a>
      </p>
    </div>
  );
}
