// Owns which page stands at which address, and that all but the sign-in need a user.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { paths, safeNext } from './address';
import { Shell } from './components/Shell';
import { ExperimentPage } from './pages/ExperimentPage';
import { ExperimentsPage } from './pages/ExperimentsPage';
import { LoginPage } from './pages/LoginPage';
import { NotFoundPage } from './pages/NotFoundPage';
import { startError, user } from './session';

function Redirect({ to }: { to: string }) {
  const { route } = useLocation();
  useEffect(() => route(to, true), [to]);
  return null;
}

function SignedIn({ children }: { children: ComponentChildren }) {
  if (user.value === undefined) {
    return (
      <p class="starting" role="status">
        {startError.value === '' ? 'Loading…' : `Waiting: ${startError.value}.`}
      </p>
    );
  }
  if (user.value === null) {
    const here = location.pathname + location.search;
    return <Redirect to={paths.login(safeNext(here) === paths.experiments ? '' : here)} />;
  }
  return <Shell>{children}</Shell>;
}

const Home = () => <Redirect to={paths.experiments} />;

const List = () => (
  <SignedIn>
    <ExperimentsPage />
  </SignedIn>
);

const One = ({ params }: { params: { id: string } }) => (
  <SignedIn>
    {/^[1-9]\d*$/.test(params.id) ? (
      <ExperimentPage key={params.id} id={Number(params.id)} />
    ) : (
      <NotFoundPage />
    )}
  </SignedIn>
);

const Missing = () => (
  <SignedIn>
    <NotFoundPage />
  </SignedIn>
);

export function App() {
  return (
    <LocationProvider scope="/det/">
      <Router>
        <Route path="/" component={Home} />
        <Route path="/det" component={Home} />
        <Route path="/det/login" component={LoginPage} />
        <Route path="/det/experiments" component={List} />
        <Route path="/det/experiments/:id" component={One} />
        <Route default component={Missing} />
      </Router>
    </LocationProvider>
  );
}
