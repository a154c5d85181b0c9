// Maps addresses to pages. All pages except sign-in require a user.
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { paths, safeNext } from './address';
import { Shell } from './components/Shell';
import { DashboardPage } from './pages/DashboardPage';
import { ExperimentPage } from './pages/ExperimentPage';
import { ExperimentsPage } from './pages/ExperimentsPage';
import { LoginPage } from './pages/LoginPage';
import { NotFoundPage } from './components/NotFoundPage';
import { ProjectPage } from './pages/ProjectPage';
import { TrialPage } from './pages/TrialPage';
import { later } from './components/later';
import { startError, user } from './session';

const ClusterPage = later(async () => (await import('./pages/more')).ClusterPage);
const ComparePage = later(async () => (await import('./pages/more')).ComparePage);
const ContinuePage = later(async () => (await import('./pages/more')).ContinuePage);
const ForkPage = later(async () => (await import('./pages/more')).ForkPage);
const ModelPage = later(async () => (await import('./pages/more')).ModelPage);
const ModelsPage = later(async () => (await import('./pages/more')).ModelsPage);
const QuotasPage = later(async () => (await import('./pages/more')).QuotasPage);
const SettingsPage = later(async () => (await import('./pages/more')).SettingsPage);
const TaskPage = later(async () => (await import('./pages/more')).TaskPage);
const TasksPage = later(async () => (await import('./pages/more')).TasksPage);
const TrialsPage = later(async () => (await import('./pages/more')).TrialsPage);
const UsersPage = later(async () => (await import('./pages/more')).UsersPage);
const WebhooksPage = later(async () => (await import('./pages/more')).WebhooksPage);
const WorkspacePage = later(async () => (await import('./pages/more')).WorkspacePage);
const WorkspacesPage = later(async () => (await import('./pages/more')).WorkspacesPage);

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
    return <Redirect to={paths.login(safeNext(here) === paths.home ? '' : here)} />;
  }
  return <Shell>{children}</Shell>;
}

const Home = () => <Redirect to={paths.home} />;

// A page that requires a signed-in user.
const page = (Page: ComponentType) => () => (
  <SignedIn>
    <Page />
  </SignedIn>
);

// A page for the object with a numeric id.
const numbered =
  (Page: ComponentType<{ id: number }>) =>
  ({ params }: { params: { id: string } }) => (
    <SignedIn>
      {/^[1-9]\d{0,9}$/.test(params.id) ? <Page key={params.id} id={Number(params.id)} /> : <NotFoundPage />}
    </SignedIn>
  );

// A page for the object with a name as id.
const named =
  (Page: ComponentType<{ id: string }>) =>
  ({ params }: { params: { id: string } }) => (
    <SignedIn>
      <Page key={params.id} id={params.id} />
    </SignedIn>
  );

const Dashboard = page(DashboardPage);
const Experiments = page(ExperimentsPage);
const Compare = page(ComparePage);
const SomeTrials = page(TrialsPage);
const Cluster = page(ClusterPage);
const Settings = page(SettingsPage);
const Missing = page(() => <NotFoundPage />);
const OneExperiment = numbered(ExperimentPage);
const Fork = numbered(ForkPage);
const GoOn = numbered(ContinuePage);
const Users = page(UsersPage);
const Quotas = page(QuotasPage);
const Webhooks = page(WebhooksPage);
const Workspaces = page(WorkspacesPage);
const OneWorkspace = numbered(WorkspacePage);
const OneProject = numbered(ProjectPage);
const Models = page(ModelsPage);
const OneModel = named(ModelPage);
const Tasks = page(TasksPage);
const OneTask = named(TaskPage);
const OneTrial = numbered(TrialPage);

export function App() {
  return (
    <LocationProvider scope="/det/">
      <Router>
        <Route path="/" component={Home} />
        <Route path="/det" component={Dashboard} />
        <Route path="/det/login" component={LoginPage} />
        <Route path="/det/experiments" component={Experiments} />
        <Route path="/det/experiments/:id" component={OneExperiment} />
        <Route path="/det/experiments/:id/fork" component={Fork} />
        <Route path="/det/experiments/:id/continue" component={GoOn} />
        <Route path="/det/trials" component={SomeTrials} />
        <Route path="/det/trials/:id" component={OneTrial} />
        <Route path="/det/compare" component={Compare} />
        <Route path="/det/cluster" component={Cluster} />
        <Route path="/det/workspaces" component={Workspaces} />
        <Route path="/det/workspaces/:id" component={OneWorkspace} />
        <Route path="/det/projects/:id" component={OneProject} />
        <Route path="/det/models" component={Models} />
        <Route path="/det/models/:id" component={OneModel} />
        <Route path="/det/tasks" component={Tasks} />
        <Route path="/det/tasks/:id" component={OneTask} />
        <Route path="/det/users" component={Users} />
        <Route path="/det/quotas" component={Quotas} />
        <Route path="/det/webhooks" component={Webhooks} />
        <Route path="/det/settings" component={Settings} />
        <Route default component={Missing} />
      </Router>
    </LocationProvider>
  );
}
