// Texts of the master in the words of the page: why something waits, lines of its log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outline } from '../../../webui-static/src/cluster/outline';
import { readable } from '../../../webui-static/src/cluster/masterLine';

test('why it waits, when it starts and the estimate are one paragraph; holders of slots are details', () => {
  const text = `trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue
too few slots are free
slots are kept for it on vm
  trial 60 of experiment 14 has 1 slot on vm
  and 4 more
starts when trial 60 ends
starts when command 7f ends
starts now at priority 41 (preempts trial 67)
estimate: in about 5 min, if runs take 10 min (median of 8 recent)
pilot det-1 is pending: Priority
`;
  const { headline, answer, details } = outline(text);
  assert.equal(headline, 'Trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue.');
  assert.equal(
    answer,
    'Too few slots are free; the next free ones on vm are kept for it. ' +
      'It starts when trial 60 or command 7f ends. It would start now at priority 41 (preempts trial 67). ' +
      'Estimate: in about 5 min, if runs take 10 min (median of 8 recent). Pilot det-1 is pending: Priority.',
  );
  assert.deepEqual(details, ['Trial 60 of experiment 14 has 1 slot on vm.', 'And 4 more.']);
});

test('many tasks whose end would start it are counted', () => {
  const ends = [1, 2, 3, 4, 5].map((id) => `starts when trial ${id} ends`).join('\n');
  assert.equal(outline(`trial 9 waits for 1 slot\ntoo few slots are free\n${ends}`).answer, 'Too few slots are free. It starts when one of 5 running tasks ends.');
});

const lineText = (message: string): string => readable(message).text;

test('an audited action is a sentence with its user, verb and object', () => {
  const of = (action: string, object: string, outcome = 'OK'): string =>
    lineText(`audit user=admin action=${action} object="${object}" outcome=${outcome} address=127.0.0.1`);
  assert.equal(of('ExperimentService/KillExperiment', 'experiment 14'), 'admin killed experiment 14');
  assert.equal(of('ExperimentService/UploadExperiment', 'experiment 3'), 'admin submitted experiment 3');
  assert.equal(of('ExperimentService/CreateExperiment', ''), 'admin checked a configuration');
  assert.equal(of('ExperimentService/CreateExperiment', 'check only'), 'admin checked a configuration');
  assert.equal(of('ExperimentService/ContinueExperiment', 'experiment 2, check only'), 'admin checked a configuration for experiment 2');
  assert.equal(of('JobService/UpdateJobQueue', ''), 'admin updated the job queue');
  assert.equal(of('ClusterService/DisableSlot', 'vm, 0'), 'admin disabled slot 0 of agent vm');
  assert.equal(of('ClusterService/DisableSlot', 'vm'), 'admin disabled a slot of agent vm');
  assert.equal(of('ModelService/DeleteModelVersion', 'model digits, 1'), 'admin deleted version 1 of model digits');
  assert.equal(of('ModelService/PatchModelVersion', 'model digits, model version 1'), 'admin changed version 1 of model digits');
  assert.equal(of('ModelService/PostModelVersion', 'model digits, checkpoint 2222, model version 2'), 'admin created version 2 of model digits');
  assert.equal(of('TemplateService/PutTemplate', 'shared'), 'admin set template shared');
  assert.equal(of('QuotaService/SetQuota', 'slots, user, 2'), 'admin set the quota slots of user 2');
  assert.equal(of('InteractiveService/LaunchShell', 'shell b708'), 'admin launched shell b708');
  assert.equal(of('CommandService/KillCommand', 'task b708, command b708'), 'admin killed task b708');
  assert.equal(of('UserService/PostUserSetting', ''), 'admin changed a setting');
  assert.equal(of('ClusterService/EnableAgent', 'vm, agent vm'), 'admin enabled agent vm');
  assert.equal(of('UserService/PostUser', 'ada, user 2'), 'admin created user 2 (ada)');
  assert.equal(of('UserService/PostUser', 'user ada', 'InvalidArgument'), 'admin tried to create user ada: invalid argument');
  assert.equal(of('CheckpointService/DeleteCheckpoints', 'checkpoint 1111'), 'admin deleted checkpoint 1111');
  assert.equal(of('RoleService/AssignRoles', ''), 'admin assigned roles');
  assert.equal(of('RoleService/AssignRoles', 'role Editor for group 2 in workspace 3'), 'admin assigned the role Editor for group 2 in workspace 3');
  assert.equal(of('ExperimentService/KillExperiments', '3, 4 (refused)'), 'admin killed experiments 3, 4 (refused)');
  assert.equal(of('JobService/UpdateJobQueue', 'job-4'), 'admin updated the job queue (job-4)');
  assert.equal(of('WebhookService/DeleteWebhook', '2'), 'admin deleted webhook 2');
  assert.equal(of('ExperimentService/ContinueExperiment', 'experiment 4', 'InvalidArgument'), 'admin tried to continue experiment 4: invalid argument');
  assert.equal(lineText('audit user=ann action=AuthService/Login outcome=OK address=10.0.0.3'), 'ann signed in from 10.0.0.3');
});

test('an agent that joins is named once', () => {
  assert.equal(lineText('audit action=JoinService/Join object="agent vm" outcome=OK address=127.0.0.1'), 'agent vm joined');
});

test('a refused action is marked, an action that was done is not', () => {
  const refused = (outcome: string): boolean | undefined =>
    readable(`audit user=admin action=ExperimentService/ContinueExperiment object="experiment 4" outcome=${outcome} address=127.0.0.1`).isRefused;
  assert.deepEqual([refused('InvalidArgument'), refused('OK'), readable('ready').isRefused], [true, false, undefined]);
});

test('reading the log is noise; other lines are not', () => {
  assert.equal(readable('audit user=admin action=MasterService/MasterLogs object="" outcome=OK address=127.0.0.1').isNoise, true);
  assert.equal(readable('ready').isNoise, false);
});

test('fields of other lines are words, and text that only resembles fields is unchanged', () => {
  assert.equal(lineText('agent connected agent=vm address=127.0.0.1 slots=3'), 'agent connected · agent vm · slots 3');
  for (const line of ['ready', 'agent <img src=x onerror="window.pwned=1"> is lost', 'a=b c', 'say x="1'])
    assert.equal(lineText(line), line);
});
