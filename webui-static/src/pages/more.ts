// Pages that are loaded together, when one of them is first shown: one file rather than one for each.
export { Comparison } from '../compare/Comparison';
export { ComparePage } from './ComparePage';
export { ContinuePage } from './ContinuePage';
export { ForkPage } from './ForkPage';
export { ModelPage } from './ModelPage';
export { ModelsPage } from './ModelsPage';
export { SettingsPage } from './SettingsPage';
export { TaskPage } from './TaskPage';
export { TasksPage } from './TasksPage';
export { TrialsPage } from './TrialsPage';
export { UsersPage } from './UsersPage';
export { WebhooksPage } from './WebhooksPage';
export { WorkspacePage } from './WorkspacePage';
export { WorkspacesPage } from './WorkspacesPage';
